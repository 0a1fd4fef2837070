"""Measures kerncap on this machine and prints a table: python tests/bench/run.py [--json FILE] [GROUP ...]"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.report import Report

GROUPS = ("interpreter", "interception", "hip", "snapshot", "validation", "wrong_variant", "edit_loop", "tui")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write the figures there")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(GROUPS)}; default: all")
    options = parser.parse_args()
    unknown = set(options.groups) - set(GROUPS)
    if unknown:
        parser.error(f"no group {', '.join(sorted(unknown))}; there are {', '.join(GROUPS)}")
    report = Report()
    for group in options.groups or GROUPS:
        importlib.import_module(f"bench.{group}").measure(report)
    if options.json:
        report.write(options.json)
    missed = [figure.name for figure in report.figures if figure.met is False]
    print(
        f"\n{len(report.figures)} figures, {len(missed)} below their aim"
        + (f": {', '.join(missed)}" if missed else "")
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
