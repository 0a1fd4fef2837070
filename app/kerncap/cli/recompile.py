"""`python -m kerncap.cli.recompile DIR [OUTPUT]`: what the Makefile of a reproducer calls to rebuild its
variant.
"""

from __future__ import annotations

import sys


def main() -> int:
    """Returns the exit code; ctrl-C while it is being loaded ends it without a traceback, too."""
    try:
        from kerncap.cli.output import open_streams
        from kerncap.core.recompile import main as run

        open_streams()
        return run(sys.argv[1:])
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
