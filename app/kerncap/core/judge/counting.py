"""Which speeds count: a result that is wrong, or was never compared, has none.

An attempt is timed before it is validated, so its record has a speedup before there is a verdict. `counted`
takes it out where the verdict is not a pass, and makes it again from the samples where a later comparison is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SPEEDS = ("speedup", "ratio", "ratio_ci95", "verdict", "speed")


def counted(timing: Mapping[str, Any], counts: bool) -> dict[str, Any]:
    """`timing` of an attempt's record with its speedup where it counts, with null in its place where not.

    Samples and medians stay in any case.
    """
    if not counts:
        return {name: None if name in _SPEEDS else value for name, value in timing.items()} | {
            "counts": False
        }
    found = {**timing, "counts": True}
    if found.get("speedup") is None:
        found |= _speeds(timing)
    return found


def _speeds(timing: Mapping[str, Any]) -> dict[str, Any]:
    import numpy as np

    from kerncap.core.replay.timing import ratio_interval, speed_of

    baseline = np.asarray(timing.get("baseline_ns") or [], np.float64)
    variant = np.asarray(timing.get("variant_ns") or [], np.float64)
    if not len(baseline) or not len(variant) or not np.median(variant) or not np.median(baseline):
        return {}
    ratio = float(np.median(variant) / np.median(baseline))
    low, high = ratio_interval(variant, baseline)
    speed = speed_of(low, high, float(timing.get("noise") or 0.0)).value
    return {
        "speedup": 1.0 / ratio,
        "ratio": ratio,
        "ratio_ci95": [low, high],
        "verdict": speed,
        "speed": speed,
    }
