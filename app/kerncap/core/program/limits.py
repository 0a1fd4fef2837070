"""How long anything may be told to take."""

MOST_SECONDS = 1e7  # 115 days; KERNCAP_SIM_MAX_SECONDS has the same limit
