"""The registry of actions: everything a key can do, declared once, for bindings, help and the palette.

A screen lists its actions in a table and takes its `BINDINGS` from `bindings(...)`. From the same table come
the key bar, `?`, the command palette, and the names under `[keys]` in the user's configuration: an action's
id is `group.name`, for instance `leaderboard.filter`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from textual.binding import Binding, BindingType
from textual.keys import key_to_character

_SHOWN = {
    "escape": "esc",
    "enter": "⏎",
    "space": "space",
    "question_mark": "?",
    "colon": ":",
    "slash": "/",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "pageup": "pgup",
    "pagedown": "pgdn",
}


@dataclass(frozen=True, slots=True)
class Action:
    """One thing a key can do on a screen.

    `call` is the method without `action_`, with arguments where it needs them: `sort('total')`. `keys` are
    Textual's names of keys, joined by commas; empty: palette only. `bar` is its word in the key bar; empty:
    not shown there. `priority`: the key is acted on before it reaches the widget with the focus, so that what
    is typed right after it cannot overtake it.
    """

    name: str
    keys: str
    title: str
    help: str = ""
    bar: str = ""
    call: str = ""
    priority: bool = False

    @property
    def method(self) -> str:
        """What Textual is to run."""
        return self.call or self.name


@dataclass(frozen=True, slots=True)
class Group:
    """The actions of one screen."""

    name: str
    title: str
    actions: tuple[Action, ...]

    def ident(self, action: Action) -> str:
        """The action's id, as the configuration names it."""
        return f"{self.name}.{action.name}"


REGISTRY: dict[str, Group] = {}


def bindings(group: str, title: str, actions: Sequence[Action]) -> list[BindingType]:
    """Registers the actions of a screen and returns its Textual bindings.

    Raises ValueError where two actions have one name or one key: a mistake in the program.
    """
    entry = Group(group, title, tuple(actions))
    used: dict[str, str] = {}
    for action in actions:
        for key in filter(None, action.keys.split(",")):
            if key in used:
                raise ValueError(f"{group}: {key} means both {used[key]} and {action.name}")
            used[key] = action.name
    if len({action.name for action in actions}) != len(actions):
        raise ValueError(f"{group}: two actions have one name")
    REGISTRY[group] = entry
    return [
        Binding(
            a.keys,
            a.method,
            a.title,
            show=bool(a.bar),
            id=entry.ident(a),
            tooltip=a.help,
            priority=a.priority,
        )
        for a in actions
        if a.keys
    ]


def fitting(screen: object, group: Group) -> Sequence[Action]:
    """The actions of `group` that are of use on `screen` as it is now, the most useful first."""
    choose = getattr(screen, "fitting", None) if getattr(screen, "GROUP", "") == group.name else None
    found: Sequence[Action] = group.actions if choose is None else choose(group.actions)
    return found


def keys_of(group: Group, action: Action, keymap: Mapping[str, str]) -> list[str]:
    """The keys of an action, Textual's names, with the user's keymap applied."""
    return [key.strip() for key in keymap.get(group.ident(action), action.keys).split(",") if key.strip()]


def shown_key(key: str) -> str:
    """A key as a person reads it: `?` for question_mark, `^s` for ctrl+s."""
    if key in _SHOWN:
        return _SHOWN[key]
    if key.startswith("ctrl+"):
        return "^" + key.removeprefix("ctrl+")
    if len(key) > 1 and "+" not in key:
        return key_to_character(key) or key
    return key


def keymap_problems(keymap: Mapping[str, str], group: Group) -> list[str]:
    """A sentence for each entry of the keymap that names no action of `group`, or gives a key a second
    meaning there.
    """
    known = {group.ident(action) for action in group.actions}
    problems = [
        f"[keys] {name} is no action; `?` lists them"
        for name in keymap
        if name.partition(".")[0] == group.name and name not in known
    ]
    used: dict[str, str] = {}
    for action in group.actions:
        for key in keys_of(group, action, keymap):
            if key in used:
                both = f"{used[key]} and {group.ident(action)}"
                problems.append(f"[keys] key {shown_key(key)} means both {both}; change one")
            else:
                used[key] = group.ident(action)
    return problems
