"""What runs inside of a watched Python program: it writes down what Triton compiles there.

The modules here use the standard library alone, and run under Python 3.8 and newer: the program's, which
need not have kerncap. `start.py` is executed by native/interpose/common/python_hook.cpp at the first `import
triton`.
"""
