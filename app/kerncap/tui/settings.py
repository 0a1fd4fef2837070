"""What the user has configured (one TOML that kerncap only reads), and what kerncap remembers (one JSON).

Configuration: `tui.toml` in the user's configuration directory. Remembered (sort, layout, the last program, a
session that was cut off): `tui.json` in the user's state directory. Either may be missing or damaged: the
defaults hold then, and `problems` says so in sentences.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import platformdirs

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # the same, for Python 3.10

CONFIG_NAME = "tui.toml"
STATE_NAME = "tui.json"
DEFAULT_THEME = "kerncap-dark"
LOCAL_HZ = 4.0
SSH_HZ = 2.0
HZ_RANGE = (0.2, 30.0)
POLL_RANGE = (10, 60_000)  # milliseconds

TEMPLATE = """\
# The terminal UI of kerncap. Everything here is optional; `?` lists the actions that [keys] can name.
# theme = "kerncap-dark"     # or kerncap-light, ansi-dark, ansi-light, nord, gruvbox, ...
# refresh_hz = 4             # how often figures are shown anew; over SSH the default is 2
# mouse = true
# poll_ms = 0                # 10 to 60000: look for saved files this often, not for notices (NFS, Lustre)
# editor = "vim"             # default: VISUAL, then EDITOR
# editor_split = true        # inside tmux: the editor in a split beside the workbench

[keys]
# "leaderboard.filter" = "slash,f3"
"""


def config_path() -> Path:
    """Where the configuration is looked for."""
    return Path(platformdirs.user_config_dir("kerncap")) / CONFIG_NAME


def state_path() -> Path:
    """Where kerncap remembers things."""
    return Path(platformdirs.user_state_dir("kerncap")) / STATE_NAME


def over_ssh(environment: Mapping[str, str] | None = None) -> bool:
    """Whether the terminal is at the other end of an SSH connection."""
    variables = os.environ if environment is None else environment
    return bool(variables.get("SSH_CONNECTION"))


@dataclass(frozen=True)
class Settings:
    """The configuration, checked."""

    theme: str = DEFAULT_THEME
    refresh_hz: float = LOCAL_HZ
    mouse: bool = True
    poll_ms: int | None = None  # None: notices from the kernel where they work
    editor: str | None = None
    editor_split: bool = True
    keymap: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @classmethod
    def load(cls, path: Path | None = None) -> Settings:
        """Reads the configuration; what is wrong in it becomes a sentence in `problems`."""
        where = path or config_path()
        values: dict[str, Any] = {"refresh_hz": SSH_HZ if over_ssh() else LOCAL_HZ}
        try:
            document = tomllib.loads(where.read_text())
        except FileNotFoundError:
            return cls(**values)
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            return cls(**values, problems=(f"{where} is not used: {reason}",))
        problems: list[str] = []
        kinds: dict[str, tuple[type, ...]] = {
            "theme": (str,),
            "refresh_hz": (int, float),
            "mouse": (bool,),
            "poll_ms": (int,),
            "editor": (str,),
            "editor_split": (bool,),
        }
        for name, value in document.items():
            if name == "keys":
                continue
            if name not in kinds:
                problems.append(f"{where}: {name} is no setting; there are {', '.join(kinds)} and [keys]")
            elif not isinstance(value, kinds[name]) or (isinstance(value, bool) and bool not in kinds[name]):
                problems.append(f"{where}: {name} = {value!r} is not of type {kinds[name][-1].__name__}")
            else:
                values[name] = value
        hertz = float(values["refresh_hz"])
        if not HZ_RANGE[0] <= hertz <= HZ_RANGE[1]:
            problems.append(f"{where}: refresh_hz = {hertz:g} is outside {HZ_RANGE[0]:g} to {HZ_RANGE[1]:g}")
            hertz = min(max(hertz, HZ_RANGE[0]), HZ_RANGE[1])
        values["refresh_hz"] = hertz
        poll = values["poll_ms"] = values.get("poll_ms") or None
        if poll is not None and not POLL_RANGE[0] <= poll <= POLL_RANGE[1]:
            problems.append(
                f"{where}: poll_ms = {poll} is outside {POLL_RANGE[0]} to {POLL_RANGE[1]} (0: off)"
            )
            values["poll_ms"] = min(max(poll, POLL_RANGE[0]), POLL_RANGE[1])
        keys = document.get("keys", {})
        keymap: dict[str, str] = {}
        if not isinstance(keys, dict):
            problems.append(f"{where}: keys is no table; write [keys]")
            keys = {}
        for name, value in _flat(keys):
            if isinstance(value, str):
                keymap[name] = value
            else:
                problems.append(f"{where}: [keys] {name} = {value!r} is no string of keys")
        return cls(**values, keymap=keymap, problems=tuple(problems))


def _flat(table: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """[keys] may be written with dotted names or nested tables."""
    found: list[tuple[str, Any]] = []
    for name, value in table.items():
        if isinstance(value, dict):
            found += _flat(value, f"{prefix}{name}.")
        else:
            found.append((f"{prefix}{name}", value))
    return found


class Remembered:
    """What kerncap remembers between runs: JSON values by dotted names. Writing never fails loudly."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or state_path()
        self._values: dict[str, Any] = {}
        self._read()

    def _read(self) -> None:
        try:
            document = json.loads(self.path.read_text())
            if isinstance(document, dict):
                self._values = document
        except (OSError, ValueError):
            pass

    def get(self, name: str, default: Any = None) -> Any:
        """The value, or `default` where there is none, or one of another type than the default's."""
        value = self._values.get(name, default)
        if default is not None and not isinstance(value, type(default)):
            return default
        return value

    def set(self, name: str, value: Any) -> None:
        """Remembers a JSON value (None: forgets it), at once on disk; the others stay as they are there."""
        self._read()  # another session may have written since
        if self._values.get(name) == value:
            return
        if value is None:
            self._values.pop(name, None)
        else:
            self._values[name] = value
        self.save()

    def save(self) -> bool:
        """Writes the file beside its name and renames it; False where that is not possible."""
        temporary = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(json.dumps(self._values, indent=1))
            temporary.replace(self.path)
        except OSError:
            return False
        return True
