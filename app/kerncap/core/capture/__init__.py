"""A capture on disk: its records, its memory, its manifest."""
