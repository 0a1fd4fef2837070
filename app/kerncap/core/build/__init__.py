"""Compile commands, and code objects that are built from edited sources."""
