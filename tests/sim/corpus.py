"""What every kernel of tests/kernels is run with. Inputs come from a fixed seed."""

from __future__ import annotations

import corpus_dense  # noqa: F401 (fills CASES)
import corpus_irregular  # noqa: F401
import numpy as np
from corpus_case import CASES, Case

__all__ = ["Case", "all_cases"]


def all_cases() -> list[Case]:
    return [make(np.random.default_rng(index + 1)) for index, make in enumerate(CASES)]
