"""The `kerncap` command: one thin module a subcommand, over kerncap.core."""

from __future__ import annotations

import sys


def main() -> None:
    """`kerncap` on the command line; ctrl-C while it is being loaded ends it without a traceback, too."""
    try:
        try:
            from kerncap.cli.entry import main as run
        except (ImportError, OSError, MemoryError) as error:
            # Too few file descriptors, too little memory, or an install that is broken.
            sys.stderr.write(f"kerncap: cannot be loaded: {error}\n")
            sys.exit(3)
        run()
    except KeyboardInterrupt:
        sys.stderr.write("kerncap: interrupted\n")
        sys.exit(130)
