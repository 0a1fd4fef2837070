"""The edits that the demonstration makes to the captured kernel, as text to find and what replaces it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kerncap.core.errors import KerncapError
from kerncap.core.files import write_atomically
from kerncap.core.units import times

KERNEL = "mul_mat_vec_q"
_LOOP = """\
    for (int b = lane; b < blocks_per_row; b += LANES_PER_ROW) {
      const size_t at = (size_t)row * blocks_per_row + b;
      const block_q8_0* bx = x + at;
      const block_q8_0* bg = gate + at;
      const block_q8_1* by = y + b;

      int dot = 0;
      int dot_gate = 0;
#pragma unroll
      for (int i = 0; i < QK / 4; ++i) {
        const int u = get_int_b4(by->qs, i);
        dot = dp4a(get_int_b2(bx->qs, i), u, dot);
        if (use_gate) {
          dot_gate = dp4a(get_int_b2(bg->qs, i), u, dot_gate);
        }
      }

      const float d = half_to_float(by->d);
      sum += half_to_float(bx->d) * d * (float)dot;
      if (use_gate) {
        sum_gate += half_to_float(bg->d) * d * (float)dot_gate;
      }
    }
"""

_TWO_LOOPS = """\
    if (use_gate) {
      for (int b = lane; b < blocks_per_row; b += LANES_PER_ROW) {
        const size_t at = (size_t)row * blocks_per_row + b;
        const block_q8_0* bx = x + at;
        const block_q8_0* bg = gate + at;
        const block_q8_1* by = y + b;

        int dot = 0;
        int dot_gate = 0;
#pragma unroll
        for (int i = 0; i < QK / 4; ++i) {
          const int u = get_int_b4(by->qs, i);
          dot = dp4a(get_int_b2(bx->qs, i), u, dot);
          dot_gate = dp4a(get_int_b2(bg->qs, i), u, dot_gate);
        }

        const float d = half_to_float(by->d);
        sum += half_to_float(bx->d) * d * (float)dot;
        sum_gate += half_to_float(bg->d) * d * (float)dot_gate;
      }
    } else {
      for (int b = lane; b < blocks_per_row; b += LANES_PER_ROW) {
        const block_q8_0* bx = x + (size_t)row * blocks_per_row + b;
        const block_q8_1* by = y + b;

        int dot = 0;
#pragma unroll
        for (int i = 0; i < QK / 4; ++i) {
          dot = dp4a(get_int_b2(bx->qs, i), get_int_b4(by->qs, i), dot);
        }
        sum += half_to_float(bx->d) * half_to_float(by->d) * (float)dot;
      }
    }
"""


@dataclass(frozen=True)
class Edit:
    """One change of a source file. `what` says it in a line."""

    what: str
    old: str
    new: str

    def apply(self, path: Path) -> None:
        """Change the file. Raises KerncapError where the text is not there exactly once."""
        text = path.read_text(encoding="utf-8")
        found = text.count(self.old)
        if found != 1:
            raise KerncapError(
                f"{path}: the text that the edit {self.what!r} replaces is there {times(found)}, not once: "
                "the demonstration's kernel and its edits do not belong together."
            )
        write_atomically(path, text.replace(self.old, self.new).encode(), mode=0o644)

    def diff(self, longest: int = 8) -> list[str]:
        """The change as lines with - and +, or how large it is where that is more than `longest` lines."""
        old, new = self.old.splitlines(), self.new.splitlines()
        if len(old) + len(new) > longest:
            return [f"({len(old)} lines become {len(new)})"]
        return [f"- {line.strip()}" for line in old] + [f"+ {line.strip()}" for line in new]

    def undo(self, path: Path) -> None:
        """Take the change back."""
        Edit(f"undo: {self.what}", self.new, self.old).apply(path)


HOIST = Edit("take the use_gate branch out of the loops", _LOOP, _TWO_LOOPS)
WRONG = Edit(
    "scale the gate's sums by the other matrix's scale",
    "sum_gate += half_to_float(bg->d) * d * (float)dot_gate;",
    "sum_gate += half_to_float(bx->d) * d * (float)dot_gate;",
)
