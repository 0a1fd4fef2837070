"""Modules that a key will need, imported in the background while nobody waits for them."""

from __future__ import annotations

import contextlib
import importlib
import threading
import time

_MODULES = (
    "kerncap.tui.extract.dialog",
    "kerncap.core.extract.extract_running",
    "kerncap.core.extract.reproducer",
    "kerncap.core.judge.validate",
    "kerncap.tui.services.extraction",
    "kerncap.tui.services.source_sites",
    "kerncap.tui.screens.help",
    "kerncap.tui.workbench.screen",
)
_PAUSE_S = 0.05  # between modules, so that the event loop gets its turns


def preload() -> None:
    """Begins, in a thread of its own. What cannot be imported is reported by whoever needs it."""

    def work() -> None:
        for name in _MODULES:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
            time.sleep(_PAUSE_S)

    threading.Thread(target=work, name="kerncap-preload", daemon=True).start()
