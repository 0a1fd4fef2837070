"""The whole loop in a real terminal, on the simulated GPU: keys are typed, the screen is read."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kerncap.demo.building import BuiltDemo, build
from tui.terminal import Terminal, needs_tmux

pytestmark = [needs_tmux, pytest.mark.timeout(600)]
KERNCAP = [sys.executable, "-m", "kerncap"]
DEVICE = ["--device", "sim:gfx942"]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> BuiltDemo:
    """The demonstration program, built once."""
    return build(tmp_path_factory.mktemp("demo") / "decode", device="sim:gfx942")


def long_run(demo: BuiltDemo) -> list[str]:
    """Long enough to choose a kernel while it runs."""
    return [demo.command[0], "--tokens", "2000", "--no-check"]


def processes(marker: str, home: Path | None = None) -> list[str]:
    """Command lines of the processes that carry `marker` in them; with `home`, of this test's alone, which
    have it in their environment: other tests may run beside.
    """
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if home is not None and bytes(home) not in (entry / "environ").read_bytes():
                    continue
            except OSError:
                continue
            if words and marker.encode() in words[0]:
                found.append(b" ".join(words).decode(errors="replace"))
    return found


def wait_until(condition, what: str, limit_s: float = 30.0) -> None:
    until = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.1)


@pytest.fixture
def leaves_nothing(demo: BuiltDemo, own_home: Path) -> Iterator[None]:
    """After the test no program of ours runs, and no session or half a capture is left."""
    yield
    wait_until(lambda: not processes(demo.command[0]), "the program still runs")
    wait_until(lambda: not processes("kerncap-replay", own_home.parent / "home"), "a replayer still runs")


def start(demo: BuiltDemo, where: Path, *, size: tuple[int, int] = (120, 40), **variables: str) -> Terminal:
    command = [*KERNCAP, "tui", *DEVICE, "--source-dir", str(demo.source_dir), "--", *long_run(demo)]
    return Terminal(command, size=size, directory=where, environment={**os.environ, **variables})


def extract_the_hottest(terminal: Terminal) -> None:
    """Filters for mul_mat_vec_q and takes its next dispatch out of the running program."""
    terminal.wait("mul_mat_vec_q")
    terminal.keys("/")
    terminal.wait("regular expression")
    terminal.type("^mul_mat")
    terminal.keys("Enter")
    terminal.wait("1 of 12 kernels")
    terminal.keys("e")
    terminal.wait("the program that runs")
    terminal.keys("Enter")
    text = terminal.wait(r"baseline +[A-Z]|esc leaves", 120)
    assert "IDENTICAL" in text, text
    assert "kernel_variant" in text


def test_run_filter_extract_edit_see_the_verdict_and_quit(
    demo: BuiltDemo, own_home: Path, leaves_nothing: None
) -> None:
    editor = own_home / "editor"
    editor.write_text(
        f"#!{sys.executable}\nimport sys\nfrom pathlib import Path\nfrom kerncap.demo.edits import HOIST\n"
        "HOIST.apply(Path(sys.argv[-1].split(':')[0]))\n"
    )
    editor.chmod(0o755)
    with start(demo, own_home, EDITOR=str(editor), VISUAL="") as terminal:
        extract_the_hottest(terminal)
        terminal.keys("Enter")
        terminal.wait(r"attempt 1 IDENTICAL", 120)
        variant = next((own_home / "isolated/mul_mat_vec_q").glob("kernel_variant.*"))

        terminal.keys("e")  # the user's editor makes the kernel faster
        text = terminal.wait(r"attempt 2 IDENTICAL", 120)
        assert "FASTER" in text

        text = variant.read_text()  # another program saves a wrong one
        variant.write_text(text.replace("sum += half_to_float", "sum += 2.0f * half_to_float"))
        text = terminal.wait(r"attempt 3 FAIL", 120)
        assert "FASTER" not in text.splitlines()[1]
        terminal.keys("4")
        terminal.wait(r"expected")

        variant.write_text(variant.read_text().replace("float sum = 0.0f;", "float sum = nothing;"))
        terminal.wait(r"undeclared identifier 'nothing'", 120)

        terminal.keys("Escape")
        terminal.wait("1 of 12 kernels")
        terminal.keys("c")
        terminal.wait(r"mul_mat_vec_q +[0-9a-f]{6} +gfx942 \(simulated\)")
        terminal.keys("Escape")
        terminal.wait("1 of 12 kernels")
        terminal.keys("q")
        assert terminal.exit_status() == 0
    kept = sorted(p.name for p in (own_home / "isolated").iterdir())
    assert kept == ["mul_mat_vec_q"]


def test_cancelling_an_extraction_leaves_nothing(
    demo: BuiltDemo, own_home: Path, leaves_nothing: None
) -> None:
    with start(demo, own_home, size=(80, 24)) as terminal:
        terminal.wait("mul_mat_vec_q")
        terminal.keys("e")
        terminal.wait("the program that runs")
        # A grid that never comes: it would wait for ever.
        terminal.keys("Tab")
        terminal.type("7")
        terminal.wait(r"grid +7 ")
        terminal.keys("Enter")
        terminal.wait("waiting for the dispatch")
        terminal.keys("Escape")
        terminal.wait("nothing was left")
        terminal.wait_gone("waiting for the dispatch")
        terminal.keys("x")
        terminal.wait(r"stopped \(")
        terminal.keys("q")
        assert terminal.exit_status() == 0
    assert not (own_home / "isolated").exists()


def test_the_slowest_dispatch_by_a_rerun(demo: BuiltDemo, own_home: Path, leaves_nothing: None) -> None:
    """The attention of the demonstration looks at one more token each time: its last launches are slowest."""
    command = [*KERNCAP, "tui", *DEVICE, "--source-dir", str(demo.source_dir), "--", *demo.command]
    with Terminal(command, directory=own_home) as terminal:
        terminal.wait("exit status 0")
        terminal.keys("/")
        terminal.wait("regular expression")
        terminal.type("^attention")
        terminal.wait("1 of 12 kernels")
        terminal.keys("Enter", "e")
        number = int(re.search(r"slowest \(#(\d+), ", terminal.wait("slowest"))[1])
        assert 100 < number <= 108
        terminal.keys("Right")
        terminal.wait(r"\(•\) slowest")
        text = terminal.wait(r"\(•\) a rerun")
        assert "KB" in text or "MB" in text
        terminal.keys("Enter")
        text = terminal.wait(r"baseline +[A-Z]|esc leaves", 120)
        assert f"attention, dispatch {number}," in text
        assert "IDENTICAL" in text
        terminal.keys("Escape")
        terminal.wait_gone("baseline")
        terminal.keys("q")
        assert terminal.exit_status() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signals_end_the_program_and_the_session_can_be_resumed(
    number: signal.Signals, demo: BuiltDemo, own_home: Path, leaves_nothing: None
) -> None:
    with start(demo, own_home) as terminal:
        terminal.wait("mul_mat_vec_q")
        terminal.wait("running")
        os.kill(terminal.pid, number)
        assert terminal.exit_status() == 128 + number
        wait_until(lambda: not processes(demo.command[0]), "the program outlived kerncap")
    with Terminal([*KERNCAP, "tui", *DEVICE], directory=own_home) as terminal:
        terminal.wait("was cut off while it ran")
        terminal.keys("y")
        terminal.wait("mul_mat_vec_q")
        terminal.keys("q")
        assert terminal.exit_status() == 0


def test_a_terminal_that_vanishes_takes_the_program_with_it(
    demo: BuiltDemo, own_home: Path, leaves_nothing: None
) -> None:
    with start(demo, own_home) as terminal:
        terminal.wait("mul_mat_vec_q")
        terminal.kill_server()
    wait_until(lambda: not processes(demo.command[0]), "the program outlived the terminal")


def test_after_a_lost_connection_the_workbench_goes_on_with_its_attempts(
    demo: BuiltDemo, own_home: Path, leaves_nothing: None
) -> None:
    with start(demo, own_home, size=(80, 24)) as terminal:
        extract_the_hottest(terminal)
        terminal.keys("Enter")
        terminal.wait("attempt 1 IDENTICAL", 120)
        terminal.keys("E")
        text = terminal.wait("attempt 2 IDENTICAL", 120)
        speedup = re.search(r"([0-9.]+x) FASTER", text)
        assert speedup
        terminal.kill_server()
    wait_until(lambda: not processes(demo.command[0]), "the program outlived the terminal")
    wait_until(
        lambda: not processes("kerncap-replay", own_home.parent / "home"),
        "the replayer outlived the terminal",
    )
    with Terminal([*KERNCAP, "tui", *DEVICE], size=(80, 24), directory=own_home) as terminal:
        terminal.wait("was cut off, with the workbench on")
        terminal.keys("y")
        terminal.wait("2 attempts of earlier sessions", 120)
        terminal.wait(f"attempt 2 IDENTICAL  {speedup[1]} FASTER", 120)
        terminal.keys("E")  # and another one is made
        terminal.wait("attempt 3 FAIL", 120)
        terminal.keys("q")
        assert terminal.exit_status() == 0


def test_a_full_disk_is_a_sentence_and_nothing_is_left(
    demo: BuiltDemo, own_home: Path, leaves_nothing: None
) -> None:
    full = own_home / "full"
    full.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=20m", "none", str(full)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        (full / "ballast").write_bytes(bytes(3 << 20))
        with start(demo, full) as terminal:
            terminal.wait("mul_mat_vec_q")
            with (full / "ballast-2").open("wb", buffering=0) as file, contextlib.suppress(OSError):
                while True:
                    file.write(bytes(4096))
            terminal.keys("e")
            terminal.wait("the program that runs")
            terminal.keys("Enter")
            terminal.wait(r"make room|full|No space")
            terminal.keys("Escape")
            terminal.wait_gone("the program that runs")
            terminal.keys("q")
            assert terminal.exit_status() == 0
        assert not list(full.glob("isolated/*"))
    finally:
        subprocess.run(["umount", "-l", str(full)], check=True)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
def test_demo_on_a_terminal_leads_through_the_loop(size: tuple[int, int], own_home: Path) -> None:
    """Only what the hints say is typed."""
    command = [*KERNCAP, "demo", *DEVICE]
    variables = {**os.environ, "TMPDIR": str(own_home)}
    with Terminal(command, size=size, directory=own_home, environment=variables) as terminal:
        terminal.wait("Press e to take mul_mat_vec_q out of", 180)
        terminal.keys("e")
        terminal.wait("enter extracts")
        terminal.keys("Enter")
        terminal.wait("IDENTICAL", 120)
        terminal.wait("enter opens the workbench")
        terminal.keys("Enter")
        terminal.wait("Press E for the demonstration's edit", 120)
        terminal.keys("E")
        terminal.wait("attempt 2 IDENTICAL +[0-9.]+x FASTER", 120)
        terminal.wait("E makes a wrong edit", 120)
        terminal.keys("E")
        text = terminal.wait("attempt 3 FAIL", 120)
        assert re.search(r"^ +3 .* -  FAIL", text, re.MULTILINE)
        terminal.wait("E takes the wrong edit\\s+back")
        terminal.keys("E")
        terminal.wait("attempt 4 IDENTICAL", 120)
        terminal.keys("P")
        terminal.wait("Wrote variant.patch .1 file.; this applies it: git -C")
        terminal.keys("Escape")
        terminal.wait("Every capture is under c", 60)
        terminal.keys("q")
        assert terminal.exit_status() == 0
        assert "isolated" in terminal.screen()


def test_without_a_terminal_the_ui_says_what_to_use_instead(own_home: Path) -> None:
    done = subprocess.run(
        [*KERNCAP, "tui"], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 2
    assert "needs a terminal" in done.stderr
    assert "kerncap profile" in done.stderr
    bare = subprocess.run(KERNCAP, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert bare.returncode == 0
    assert "Commands:" in bare.stdout
