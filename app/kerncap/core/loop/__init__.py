"""The edit loop: saves, attempts, their history, and captures on disk as somebody's work."""
