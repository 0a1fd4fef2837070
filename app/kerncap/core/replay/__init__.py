"""Running a captured kernel, or a variant of it, from the captured memory: launches, timings, counters."""
