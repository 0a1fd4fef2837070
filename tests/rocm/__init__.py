"""Unmodified HIP on the simulated GPU."""
