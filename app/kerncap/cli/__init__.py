"""The `kerncap` command: one thin module a subcommand, over kerncap.core."""

from kerncap.cli.main import main

__all__ = ["main"]
