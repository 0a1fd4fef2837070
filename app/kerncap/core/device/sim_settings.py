"""The variables that the simulated device reads, checked before a program or the replayer is started with
them: these would only say that their runtime did not start (native/sim/hsa/config.cpp has the same rules).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from kerncap.core.errors import UsageError

_WHOLE = re.compile(r"[0-9]{1,30}")
_DECIMAL = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
# Least and most; of decimals, the whole part of the least is 0.
_NUMBERS: dict[str, tuple[float, float, str]] = {
    "KERNCAP_SIM_THREADS": (0, 1024, "a whole number from 0 (one a core) to 1024"),
    "KERNCAP_SIM_DETERMINISTIC": (0, 1, "0 or 1"),
    "KERNCAP_SIM_MAX_SECONDS": (0.001, 1e7, "seconds from 0.001 to 10000000"),
    "KERNCAP_SIM_MAX_INSTRUCTIONS": (1, 2**64 - 1, "a whole number from 1"),
    "KERNCAP_SIM_MEMORY_GIB": (1, 4096, "a whole number from 1 to 4096"),
}
_WORDS = {
    "KERNCAP_SIM_INTERCEPT": ("batch", "single"),
    "KERNCAP_SIM_LEVEL": ("x86-64",),
    "KERNCAP_SIM_HIP": ("auto", "own", "system"),
}


def check_settings(environment: Mapping[str, str]) -> None:
    """Raises UsageError naming the first variable whose value the simulator cannot use, and what it takes."""
    for name, (least, most, takes) in _NUMBERS.items():
        text = environment.get(name, "")
        decimal = name == "KERNCAP_SIM_MAX_SECONDS"
        if text and not (
            (_DECIMAL if decimal else _WHOLE).fullmatch(text)
            and least <= (float(text) if decimal else int(text)) <= most
        ):
            raise UsageError(f"{name}={text!r} is not usable: it takes {takes}")
    for name, words in _WORDS.items():
        text = environment.get(name, "")
        if text and text not in words:
            raise UsageError(f"{name}={text!r} is not usable: it takes {' or '.join(words)}")
