"""Words that point into the captured code object: does a kernel use them?

Addresses of functions and module variables lead a kernel that lies elsewhere to the captured code's own. But
memory also holds old addresses that no kernel uses: queues, the runtime's own records, freed blocks. So a
kernel is run once more with all of them pointing nowhere. If it comes to the same result, it uses none.
"""

from __future__ import annotations

from collections.abc import Callable

from kerncap.core.replay.replayer import Differences, KernelFault, KernelTimeout, Replayer, Variant

Outcome = Differences | KernelFault | KernelTimeout


class CodePointers:
    """The question, for one capture."""

    def __init__(self, replayer: Replayer) -> None:
        self._replayer = replayer

    def count(self, variant: Variant) -> int:
        """How many words there are, in memory and in the variant's variables."""
        self._replayer.start()
        return self._replayer.greeting.integer("code_pointers") + variant.guessed

    def matter(self, variant: Variant, scope: str, run_s: float, unmoved: Callable[[Outcome], bool]) -> bool:
        """Whether the variant may use one of them. `run_s`: what a run takes; `unmoved`: whether what a run
        without them comes to, compared over `scope`, is as it was with them. Memory is put back.
        """
        if not self.count(variant):
            return False
        replayer = self._replayer
        replayer.restore()
        if not replayer.code_pointers("alter", variant):
            return True
        try:
            replayer.run(variant, restore=False, limit_s=replayer.patience(run_s))
        except (KernelFault, KernelTimeout) as error:
            return not unmoved(error)
        replayer.code_pointers("back", variant)
        differences = replayer.compare(variant, scope=scope)
        replayer.restore()
        return not unmoved(differences)

    def reason(self, what: str, variant: Variant) -> str:
        """Why nothing is proven where they matter."""
        places = [text.replace(" ", " -> ") for text in self._replayer.greeting.noted("code_pointer")[:3]]
        named = f" ({', '.join(places)})" if places else ""
        return (
            f"{self.count(variant)} words of the captured memory point into the captured code object{named}: "
            f"addresses of functions or module variables, and {what} lies elsewhere"
        )


def same_outcome(one: Outcome, other: Outcome) -> bool:
    """Whether two runs left the same memory, or ended by the same fault."""
    if isinstance(one, Differences) and isinstance(other, Differences):
        names = ["address", "bytes"]
        return (
            one.different == other.different
            and one.runs[names].tolist() == other.runs[names].tolist()
            and one.data.tobytes() == other.data.tobytes()
        )
    if isinstance(one, KernelFault) and isinstance(other, KernelFault):
        return 0 != one.address == other.address
    return False
