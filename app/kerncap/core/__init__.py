"""What kerncap does, without any user interface: command line, terminal UI and Python API stand on this.

Nothing in here imports a front end, nor a library for drawing one.
"""
