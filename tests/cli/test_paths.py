"""Paths that lead to something else than what is wanted there: each option says what it is."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from whole import built, document, extracted

from kerncap.core.errors import UsageError
from kerncap.core.files import what_is

pytestmark = built
KINDS = {
    "pipe": "a pipe",
    "empty": "an empty file",
    "folder": "a directory",
    "socket": "a socket",
    "/dev/null": "a device",
}


@pytest.fixture(scope="module")
def advance(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return extracted("in_place", "advance", tmp_path_factory.mktemp("paths"))


@pytest.fixture
def things(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One of each, in the current directory."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    Path("empty").touch()
    Path("folder").mkdir()
    Path("gone").symlink_to("nowhere")
    Path("file").write_text("text")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("socket")
    return tmp_path


def refused(things: Path, *words: str) -> str:
    return str(document(*words, cwd=things, code=2)["error"])


def test_what_is_at_a_path(things: Path) -> None:
    for name, words in KINDS.items():
        assert what_is(name) == words
    assert what_is("file") == "a file"
    assert what_is("gone") == "a link to nowhere, which does not exist"
    assert what_is("nowhere") == what_is("file/inside") == ""
    Path("loop").symlink_to("loop")
    for hidden in ("n" * 300, "loop"):
        with pytest.raises(UsageError, match="cannot be read"):
            what_is(hidden)


@pytest.mark.parametrize("command", ["validate", "replay"])
def test_a_variant_is_a_file_with_something_in_it(advance: Path, things: Path, command: str) -> None:
    for name, words in KINDS.items():
        error = refused(things, command, str(advance), "--hsaco", name)
        assert error.startswith(
            f"{name} is {words}; --hsaco takes a code object, such as the optimized.hsaco"
        )
    assert "a link to nowhere, which does not exist" in refused(
        things, command, str(advance), "--hsaco", "gone"
    )
    assert "there is no such file" in refused(things, command, str(advance), "--hsaco", "nowhere")


def test_what_is_inspected_is_a_file_with_something_in_it(things: Path) -> None:
    for name, words in KINDS.items():
        if name != "folder":  # a capture is looked for there
            assert refused(things, "inspect", name) == f"{name} is {words}: no code object to read."
    assert "a link to nowhere, which does not exist" in refused(things, "inspect", "gone")
    assert refused(things, "inspect", "nowhere") == "nowhere does not exist"


def test_a_directory_is_one(advance: Path, things: Path) -> None:
    for name, words in {**KINDS, "file": "a file"}.items():
        if name == "folder":
            continue
        wanted = f"{name} is {words}, no directory"
        assert refused(things, "profile", "--session", name) == f"session {wanted}"
        assert refused(things, "extract", "k", "--session", name) == f"session {wanted}"
        told = refused(things, "extract", "k", "--source-dir", name, "--", "true")
        assert told == f"source directory {wanted}"
        told = refused(things, "replay", str(advance), "--dump", name)
        assert told.startswith(f"{name} is {words}; the memory is written to a directory")
        for force in ((), ("--force",)):
            told = refused(things, "extract", "k", "-o", name, *force, "--", "true")
            assert told.startswith(f"{name} is {words}; --force replaces only what an extraction has made")
    assert "does not exist" in refused(things, "profile", "--session", "nowhere")


def test_a_report_goes_to_a_file(things: Path) -> None:
    for name in ("folder", "socket"):
        told = refused(things, "profile", "-o", name, "--", "true")
        assert told == f"{name} is {KINDS[name]}; name a file"
