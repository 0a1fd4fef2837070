"""What a reproducer says of its capture, and what of its source was found and written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class CaptureFacts:
    """What a person should read about the capture. `command` is the program's argument list.

    `code_object` is the captured .hsaco, inside the reproducer's capture/code; `facts` are more (label, text)
    lines for the README, such as grid, block, regions and bytes.
    """

    symbol: str
    kernel: str
    code_object: Path
    command: tuple[str, ...]
    device: str
    simulated: bool = False
    facts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class ReproducerInfo:
    """What was written. Paths are relative to the reproducer; `variant` is None where there is no source, and
    `reason` says why.

    `rebuilt` is "identical" where compiling the unchanged copy gives the captured kernel's code byte for
    byte, "differs" where it gives other code, None where it was not compiled; `notes` are sentences for a
    person. `source_dirs` are the directories that the caller named, each with whether the kernel's source, or
    a header of it, is in it.
    """

    language: str
    variant: str | None
    files: tuple[str, ...] = ()
    reason: str | None = None
    rebuilt: str | None = None
    definition: str | None = None
    notes: tuple[str, ...] = field(default=())
    source_dirs: tuple[tuple[str, bool], ...] = ()

    @property
    def edit(self) -> tuple[str, int] | None:
        """The file to edit, relative to the reproducer, and the line (from 1) that the kernel is defined at;
        0 where that is not known. None without source.
        """
        if self.variant is None:
            return None
        return defined_at(self.definition, self.files) or (self.variant, 0)

    def to_json(self) -> dict[str, object]:
        """The `source` object of extract's document."""
        return {
            "language": self.language,
            "variant": self.variant,
            "files": list(self.files),
            "reason": self.reason,
            "rebuilt": self.rebuilt,
            "definition": self.definition,
            "notes": list(self.notes),
            "source_dirs": [{"directory": path, "used": used} for path, used in self.source_dirs],
        }


def defined_at(definition: str | None, files: Iterable[str]) -> tuple[str, int] | None:
    """A definition (`file:line`) as its two parts, where the file is one of the reproducer's `files`."""
    name, _, line = (definition or "").rpartition(":")
    return (name, int(line)) if name in files and line.isdecimal() else None
