"""What kerncap does, without any user interface: the command line, the terminal UI and the Python API stand on this.

Nothing in here imports a front end, nor a library for drawing one.
"""
