"""Words of the captured memory that point into the captured code object: does a kernel use them?

Addresses of functions and module variables lead a kernel that lies elsewhere to the captured code's own. But
memory also holds old addresses that no kernel uses: queues, the runtime's own records, freed blocks. So a
kernel is run once more with all of them pointing nowhere. If it comes to the same result, it uses none.
"""

from __future__ import annotations

from collections.abc import Callable

from kerncap.core.judge.compare import Analysis
from kerncap.core.replay.replayer import Differences, KernelFault, KernelTimeout, Replayer, Variant

# A kernel that waits for a value that was altered never ends: it gets so many times what it took before.
_PATIENCE, _LEAST_LIMIT_S = 50.0, 5.0


class CodePointers:
    """The question, for one capture."""

    def __init__(self, replayer: Replayer) -> None:
        self._replayer = replayer

    @property
    def count(self) -> int:
        """How many words there are."""
        self._replayer.start()
        return self._replayer.greeting.integer("code_pointers")

    def matter(
        self, variant: Variant, scope: str, run_s: float, analyse: Callable[[Differences], Analysis]
    ) -> bool:
        """Whether the variant may use one of them. `run_s`: what a run takes; `analyse` judges a run that was
        compared over `scope`. Memory is put back.
        """
        if not self.count:
            return False
        replayer = self._replayer
        replayer.restore()
        if not replayer.code_pointers("alter", variant):
            return True
        limit = min(replayer.limit_s, max(_LEAST_LIMIT_S, _PATIENCE * run_s))
        try:
            replayer.run(variant, restore=False, limit_s=limit)
        except (KernelFault, KernelTimeout):
            return True
        replayer.code_pointers("back", variant)
        differences = replayer.compare(variant, scope=scope)
        replayer.restore()
        return bool(analyse(differences).mismatches)

    def reason(self, what: str) -> str:
        """Why nothing is proven where they matter."""
        places = [text.replace(" ", " -> ") for text in self._replayer.greeting.noted("code_pointer")[:3]]
        return (
            f"{self.count} words of the captured memory point into the captured code object "
            f"({', '.join(places)}): addresses of functions or module variables, and {what} lies elsewhere"
        )
