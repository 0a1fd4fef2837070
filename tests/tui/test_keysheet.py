"""The tables of keys in docs/terminal-ui.md are made from the registry.

KERNCAP_UPDATE_SNAPSHOTS=1 writes them anew.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import kerncap.tui.app
import kerncap.tui.screens.captures
import kerncap.tui.screens.leaderboard
import kerncap.tui.workbench.screen  # noqa: F401
from kerncap.tui.actions import REGISTRY, Group, keys_of, shown_key

DOCUMENT = Path(__file__).resolve().parents[2] / "docs/terminal-ui.md"
BEGIN, END = "<!-- keys: made by tests/tui/test_keysheet.py -->", "<!-- end of keys -->"
ORDER = ("leaderboard", "workbench", "captures", "app")


def table(group: Group) -> str:
    """One screen's keys."""
    lines = [f"### {group.title}", "", "| key | action | name under `[keys]` |", "|---|---|---|"]
    for action in group.actions:
        keys = " ".join(f"`{shown_key(key)}`" for key in keys_of(group, action, {})) or "palette"
        what = f"**{action.title}**" + (f": {action.help}" if action.help else "")
        lines.append(f"| {keys} | {what.replace('|', chr(92) + '|')} | `{group.ident(action)}` |")
    return "\n".join(lines)


def test_the_document_has_the_keys_of_every_screen() -> None:
    assert set(REGISTRY) == set(ORDER)
    sheet = "\n\n".join(table(REGISTRY[name]) for name in ORDER)
    text = DOCUMENT.read_text()
    wanted = re.sub(
        f"{re.escape(BEGIN)}.*{re.escape(END)}",
        lambda _: f"{BEGIN}\n\n{sheet}\n\n{END}",
        text,
        flags=re.DOTALL,
    )
    if os.environ.get("KERNCAP_UPDATE_SNAPSHOTS"):
        DOCUMENT.write_text(wanted)
    assert wanted == DOCUMENT.read_text()
    assert "`leaderboard.filter`" in wanted
