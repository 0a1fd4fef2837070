"""Is the result right? Comparison with what the application computed, and the verdicts."""
