"""One launch of a kernel of tests/kernels, and its inputs (corpus_dense, corpus_irregular: the launches)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from device_code import ARCHES
from memory import Argument, Array

f16, f32, f64 = np.float16, np.float32, np.float64
i32, u32, u64 = np.int32, np.uint32, np.uint64


@dataclass
class Case:
    """One launch. Results must agree bit for bit, unless `rtol` allows for transcendental functions,
    whose last bits are the hardware's own (docs/simulator.md)."""

    source: str
    kernel: str
    grid: tuple[int, int, int]  # workgroups
    block: tuple[int, int, int]
    arguments: list[Argument]
    lds: int = 0  # dynamic
    rtol: float = 0.0
    atol: float = 0.0
    dtypes: dict[int, type] = field(default_factory=dict)  # view of buffer N for the tolerance
    arches: tuple[str, ...] = ARCHES
    in_order: bool = False  # the result depends on the order of workgroups
    variables: dict[str, Array] = field(default_factory=dict)  # device variables: set before, compared after

    @property
    def id(self) -> str:
        return f"{self.source}-{self.kernel}"


CASES: list[Callable[[np.random.Generator], Case]] = []


def case(make: Callable[[np.random.Generator], Case]) -> Callable[[np.random.Generator], Case]:
    CASES.append(make)
    return make


def normal(rng: np.random.Generator, *shape: int, dtype: type = f32) -> Array:
    return rng.standard_normal(shape).astype(dtype)


def small(rng: np.random.Generator, *shape: int, dtype: type = f32, scale: float = 0.25) -> Array:
    """Multiples of `scale` whose sums of products are exact in f32."""
    return (rng.integers(-8, 9, shape) * scale).astype(dtype)


def bf16(values: Array) -> Array:
    """Values that bf16 holds exactly, as its bits."""
    return (np.ascontiguousarray(values, f32).view(u32) >> 16).astype(np.uint16)
