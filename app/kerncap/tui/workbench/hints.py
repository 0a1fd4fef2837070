"""The guided line: what to do next, from the state of the workbench."""

from __future__ import annotations

from kerncap.tui.workbench.model import Model, Row


def hint(model: Model, shown: Row | None, trouble: str) -> str:
    """One sentence, or empty. `shown` is the selected attempt."""
    if trouble:
        return "b starts again, esc goes back."
    if not model.rows:
        return "The first attempt is the source as it stands: wait for its verdict."
    if model.attempt is not None and not model.attempt.repeat:
        return f"Attempt {model.attempt.number} is compiled, timed and compared: wait for its verdict."
    newest = model.rows[model.numbers[-1]]
    if shown is not None and shown.number != newest.number:
        return f"Attempt {shown.number} is selected: u puts its source back, c compares it with another one."
    if newest.verdict == "does not build":
        return "Pane 2 has the messages, n goes to the next; correct the source and save."
    if newest.verdict == "FAIL":
        return "Wrong, so its time does not count; pane 4 shows where. E takes the wrong edit back."
    if newest.passed and newest.changed and newest.changed != (0, 0):
        return "Right, and kept. E makes a wrong edit; 5 shows the change, P writes a patch, esc goes back."
    return "Press E for the demonstration's edit, or edit (e, i): a save is compiled, timed, compared."
