"""What keys do in the workbench; the key bar shows as many of the first as fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kerncap.tui.actions import Action

ACTIONS = (
    Action("build", "b", "Build", "Compile, replay and validate the source as it stands.", bar="build"),
    Action("edit", "e", "Open the editor", "VISUAL or EDITOR; inside tmux in a split.", bar="edit"),
    Action("go_back", "u", "Back to this source", "Put the selected attempt's source back.", bar="revert"),
    Action(
        "compare",
        "c",
        "Compare two",
        "Once on one attempt, once on another: their figures and their sources.",
        bar="compare",
    ),
    Action("next_file", "f", "Next file", "The reproducer's next source file.", bar="file"),
    Action(
        "patch",
        "P",
        "Write a patch",
        "The change as a patch of the program's tree, for git apply.",
        bar="patch",
    ),
    Action("edit_here", "i", "Edit here", "Edit the source in place: ^s saves, esc leaves.", bar="edit here"),
    Action("replay", "p", "Replay again", "Time the selected attempt again.", bar="replay"),
    Action(
        "validate",
        "v",
        "Validate again",
        "Compare what the selected attempt writes with what the application wrote.",
        bar="validate",
        call="validate('default')",
    ),
    Action(
        "validate_strict",
        "V",
        "Validate strictly",
        "Compare every captured byte, not only those that the kernel writes.",
        call="validate('strict')",
    ),
    Action(
        "tolerance",
        "t",
        "Tolerance",
        "How far floats may be off (atol, rtol, ulp), and what regions hold; remembered in the reproducer.",
        bar="tolerance",
    ),
    Action(
        "candidates",
        "T",
        "Try Triton's candidates",
        "Replay this capture under each configuration that the autotuner tried: time and difference.",
    ),
    Action("watching", "W", "Watching on/off", "Whether a save starts an attempt.", bar="watch"),
    Action(
        "example",
        "E",
        "Example edit",
        "In the demonstration's kernel: its edit, then a wrong one, then that one taken back.",
    ),
    Action("pane_source", "1", "Source", "The source pane.", call="pane('source')"),
    Action("pane_errors", "2", "Compiler messages", "The compiler's messages.", call="pane('errors')"),
    Action("pane_timing", "3", "Timing", "Times over the attempts, and the samples.", call="pane('timing')"),
    Action("pane_validation", "4", "Validation", "What differs, and where.", call="pane('validation')"),
    Action("pane_diff", "5", "Source diff", "What was changed in the source.", call="pane('diff')"),
    Action(
        "pane_config",
        "6",
        "Triton configuration",
        "What is pinned, and the autotuner's candidates.",
        call="pane('config')",
    ),
    Action("next_error", "n", "Next message", "The compiler's next message.", call="error(1)"),
    Action("previous_error", "N", "Previous message", "The one before.", call="error(-1)"),
    Action("raw", "r", "Raw compiler output", "The compiler's output as it came, or parsed."),
    Action(
        "against", "d", "Diff against another", "Against the captured source, the attempt before, the best."
    ),
    Action(
        "next_region",
        "right_square_bracket",
        "Next region",
        "The next region in the validation pane.",
        call="region(1)",
    ),
    Action(
        "previous_region",
        "left_square_bracket",
        "Previous region",
        "The region before.",
        call="region(-1)",
    ),
    Action("back", "escape", "Back", "Give up what is under way; else back to where you were.", bar="back"),
)

# Without source: what there is to do with the captured kernel itself, the most useful first.
_WITHOUT_SOURCE = (
    "replay",
    "validate",
    "validate_strict",
    "tolerance",
    "pane_timing",
    "pane_validation",
    "pane_config",
    "next_region",
    "previous_region",
    "pane_source",
    "back",
)
_MORE_WORDS = {"validate_strict": "strict", "pane_timing": "timing", "pane_validation": "validation"}
_OF_TRITON = ("candidates", "pane_config")


def fitting(actions: Sequence[Action], *, replay_only: bool, triton: bool) -> Sequence[Action]:
    """Those that are of use on a reproducer: with or without source, of Triton or not."""
    found = {action.name: action for action in actions if triton or action.name not in _OF_TRITON}
    if not replay_only:
        return tuple(found.values())
    # The bar has room for more of them then.
    return [
        replace(found[name], bar=found[name].bar or _MORE_WORDS.get(name, ""))
        for name in _WITHOUT_SOURCE
        if name in found
    ]
