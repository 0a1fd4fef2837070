"""How long anything may be told to take."""

MOST_SECONDS = 1e7  # 115 days; KERNCAP_SIM_MAX_SECONDS has the same limit


def too_long(given: str) -> str:
    """The sentence on a limit of more."""
    return f"{given} is more than {MOST_SECONDS:.0f} seconds, the most that it can be"
