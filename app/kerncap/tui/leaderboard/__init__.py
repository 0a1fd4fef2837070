"""The leaderboard: what the program's kernels cost, live."""
