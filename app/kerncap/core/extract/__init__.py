"""From a running program to a reproducer."""
