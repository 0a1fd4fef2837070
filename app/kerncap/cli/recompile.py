"""`python -m kerncap.cli.recompile DIR [OUTPUT]`: what the Makefile of a reproducer calls to rebuild its
variant.
"""

from __future__ import annotations

import sys

from kerncap.cli import end_in_order


def main() -> int:
    """Returns the exit code."""
    try:
        end_in_order()
        from kerncap.cli.output import open_streams
        from kerncap.core.build.recompile import main as run

        open_streams()
        return run(sys.argv[1:])
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
