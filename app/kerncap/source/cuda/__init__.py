"""CUDA C++: which translation unit makes a captured kernel, and with which nvcc command."""
