"""Code objects, of AMD and NVIDIA, bundles of them, and what they say of kernels and arguments."""
