"""Which saves are noticed: whatever takes a file's place, and folders that go and come back."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hip_tree import Tree
from project import program, reproducer

from kerncap.core.loop.watching import Sources


class Watched:
    """What is noticed of a reproducer's sources, by a thread of its own."""

    def __init__(self, directory: Path, poll_ms: int | None) -> None:
        self.noticed: list[list[str]] = []
        self.rounds = 0
        self._stop = threading.Event()
        self._sources = Sources(directory)
        self._poll_ms = poll_ms
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        for names in self._sources.changes(self._stop, poll_ms=self._poll_ms):
            self.rounds += 1
            if names:
                self.noticed.append(names)

    def settled(self) -> None:
        """Two more rounds: what was done before has been looked at."""
        self.until(lambda wanted=self.rounds + 2: self.rounds >= wanted)  # type: ignore[misc]

    def until(self, true: object) -> None:
        deadline = time.monotonic() + 20
        while not true():  # type: ignore[operator]
            assert time.monotonic() < deadline, self.noticed
            time.sleep(0.01)

    def notices(self, name: str) -> None:
        count = len(self.noticed)
        self.until(lambda: any(name in names for names in self.noticed[count:]))

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(20)
        assert not self._thread.is_alive()


@pytest.fixture
def out(tree: Tree, tmp_path: Path) -> Path:
    reproducer(tmp_path / "isolated", program(tree), tree.root)
    return tmp_path / "isolated"


@pytest.fixture(params=[None, 20])
def watched(out: Path, request: pytest.FixtureRequest) -> Iterator[Watched]:
    found = Watched(out, request.param)
    found.settled()
    yield found
    found.stop()


def after(watched: Watched, name: str, action: object) -> None:
    """Does something and waits until it is noticed as a save of that file."""
    thread = threading.Timer(0.05, action)  # type: ignore[arg-type]
    thread.start()
    watched.notices(name)
    thread.join()
    watched.settled()


NAME = "kernel_variant.cpp"


def test_a_link_that_takes_a_files_place_and_saves_of_what_it_leads_to(out: Path, watched: Watched) -> None:
    unit, other = out / NAME, out / "other.cpp"
    text = unit.read_text()

    def link() -> None:
        other.write_text(text + "// of the link\n")
        unit.unlink()
        unit.symlink_to("other.cpp")

    after(watched, NAME, link)
    for i in range(3):
        after(watched, NAME, lambda i=i: other.write_text(text + f"// {i}\n"))  # type: ignore[misc]


def test_a_folder_that_goes_and_comes_back(out: Path, watched: Watched) -> None:
    text, away = (out / NAME).read_text(), out.parent / "away"
    shutil.move(out, away)
    watched.settled()
    after(watched, NAME, lambda: (shutil.move(away, out), (out / NAME).write_text(text + "// back\n")))
    after(watched, NAME, lambda: (out / NAME).write_text(text + "// again\n"))
