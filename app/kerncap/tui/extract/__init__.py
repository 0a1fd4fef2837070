"""Extraction from the terminal UI: what to take, how far it is, what came of it."""
