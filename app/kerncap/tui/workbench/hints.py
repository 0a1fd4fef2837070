"""The guided line: what to do next, from the state of the workbench."""

from __future__ import annotations

from kerncap.tui.workbench.model import Model


def hint(model: Model, trouble: str) -> str:
    """One sentence, or empty."""
    if trouble:
        return "b starts again, esc goes back."
    if not model.rows:
        return "The source as it stands is the first attempt: wait for its verdict."
    newest = model.rows[model.numbers[-1]]
    if newest.verdict == "does not build":
        return "Pane 2 has the compiler's messages, n goes to the next; correct the source and save."
    if newest.verdict == "FAIL":
        return "Pane 4 shows which elements are wrong, and where. u puts a better attempt's source back."
    if newest.passed and newest.changed and newest.changed != (0, 0):
        return "Right, and kept. c on two attempts compares them, P writes the patch, esc goes back."
    return "Now edit: e opens your editor, i edits here. Each save is compiled, timed and compared."
