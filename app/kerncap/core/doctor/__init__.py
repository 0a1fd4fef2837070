"""What works on this machine, and what is missing."""
