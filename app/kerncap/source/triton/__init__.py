"""Kernels that Triton compiled: the variant to edit, written from what the program's own process told."""
