"""Long work of the terminal UI: threads over kerncap.core that only post messages."""
