"""Where a kernel is probably written: a quick look by name. Extraction proves it with the compiler."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

_LIMIT_S = 3.0


def site_of(symbol: str, roots: Sequence[Path]) -> str:
    """`path:line` of the first definition of that name below the roots; empty where there is none."""
    from kerncap.source.hip.lexer import symbol_words
    from kerncap.source.hip.tree import find_sites, source_files

    deadline = time.monotonic() + _LIMIT_S
    folders = [root if root.is_dir() else root.parent for root in roots]
    for folder in [*folders, *(f.parent for f in folders if f.name in ("build", "bin", "out"))]:
        try:
            sites = find_sites(source_files([folder], deadline), symbol_words(symbol), deadline)
        except OSError:
            continue
        if sites:
            site = sites[0]
            return f"{site.file}:{site.kernel.line}"
    return ""
