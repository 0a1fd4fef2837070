"""The program that is watched: starting it, steering what was preloaded into it, its live statistics."""
