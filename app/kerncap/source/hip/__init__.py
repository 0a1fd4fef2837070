"""HIP: which translation unit makes a captured kernel, and with which command."""
