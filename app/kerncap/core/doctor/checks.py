"""One finding of `kerncap doctor`, and the steps of its self-test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kerncap.core.errors import KerncapError

OK, NOTE, PROBLEM = "ok", "note", "problem"


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. `state` is ok, note (something optional is missing) or problem."""

    name: str
    state: str
    detail: str
    fix: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The JSON document."""
        return {slot: getattr(self, slot) for slot in self.__slots__}


class Steps:
    """Steps that each need the one before: the first that fails is the last."""

    def __init__(self, on_step: Callable[[str], None] | None = None) -> None:
        self._on_step = on_step
        self.checks: list[Check] = []

    def take(self, *steps: tuple[str, Callable[[], str]]) -> None:
        """(name, action) in order; an action says what it found, or raises KerncapError."""
        for name, action in steps:
            if self._on_step is not None:
                self._on_step(name)
            try:
                self.checks.append(Check(f"self-test {name}", OK, action()))
            except KerncapError as error:
                self.checks.append(Check(f"self-test {name}", PROBLEM, error.message))
                return
