"""What Triton said of the kernels that it compiled and launched."""
