"""The leaderboard's actions."""

from __future__ import annotations

from kerncap.tui.actions import Action

GROUP = "leaderboard"

ACTIONS = (
    Action(
        "extract",
        "e",
        "Extract",
        "Take a dispatch of the selected kernel out, with its memory, code and source. Enter does the same.",
        bar="extract",
    ),
    Action(
        "filter",
        "slash",
        "Filter",
        "Show what a regular expression fits; with ! before it, the rest.",
        "filter",
        priority=True,
    ),
    Action("freeze", "f", "Freeze the order", "Rows stay where they are; figures go on.", "freeze"),
    Action("pause", "p", "Pause the view", "Nothing moves on screen; collection goes on.", "pause"),
    Action("rerun", "r", "Run", "Run the program again, or name one to run.", "run"),
    Action("stop", "x", "Stop", "End the program and all that it started.", "stop"),
    Action("captures", "c", "Captures", "The captures on disk.", "captures"),
    Action("detail", "d", "Detail pane", "Show or hide all that is known of the selected kernel.", "detail"),
    Action("output", "o", "Output pane", "Show or hide what the program prints.", "output"),
    Action("wide", "w", "Wide names", "Give names most of the width, in full.", "wide"),
    Action(
        "mark", "space", "Mark", "Mark the selected kernel; save and copy then take the marked ones.", "mark"
    ),
    Action("unmark", "u", "Unmark all", "Take all marks away."),
    Action("save", "s", "Save", "Write what is shown (or marked) to a file: .json or .csv.", "save"),
    Action("copy", "y", "Copy", "Copy the names of the marked kernels, or the selected one."),
    Action(
        "sort_total", "t", "Sort by total time", "Pressed again: the other way round.", call="sort('total')"
    ),
    Action("sort_calls", "n", "Sort by number of calls", call="sort('calls')"),
    Action("sort_mean", "m", "Sort by mean time", call="sort('mean')"),
    Action("sort_min", "i", "Sort by minimum", call="sort('min')"),
    Action("sort_max", "a", "Sort by maximum", call="sort('max')"),
    Action("sort_name", "N", "Sort by name", call="sort('name')"),
    Action("sort_kind", "K", "Sort by kind", call="sort('kind')"),
    Action("sort_recent", "l", "Sort by last launch", call="sort('recent')"),
    Action("faster", "plus", "Refresh more often", call="rate(2.0)"),
    Action("slower", "minus", "Refresh less often", call="rate(0.5)"),
    Action("run_other", "R", "Run another program", "Name the program to run."),
    Action("device", "D", "Choose the device", "For the next run: rocm, cuda, sim:gfx942, sim:gfx90a, auto."),
    Action("back", "escape", "Back", "Close the filter; take a filter away."),
)
