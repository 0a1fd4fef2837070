"""`kerncap demo`."""
