"""Bad input, full disks, closed streams and signals: a sentence and an exit code, and nothing left behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kerncap.cli.entry import run
from kerncap.core.build.recompile import main as recompile_main
from kerncap.core.build.toolchain import run_tool
from kerncap.core.capture import manifest
from kerncap.core.code.shape import misshapen
from kerncap.core.errors import (
    DamagedCaptureError,
    Interrupted,
    ShortageError,
    UsageError,
    WorkloadError,
    explained,
    unwritable,
)
from kerncap.core.files import json_text, write_atomically, write_json
from kerncap.core.interrupts import deferred, interruptible, settle
from kerncap.core.native import REPLAYER, SIM_HIP, SIM_RUNTIME, find_native
from kerncap.core.scratch import owned_prefix, sweep
from support.build import Program
from support.package import APP

DEVICE = "sim:gfx942"

built = pytest.mark.skipif(
    any(find_native(name) is None for name in (REPLAYER, SIM_RUNTIME, SIM_HIP)),
    reason="the native part is not built (KERNCAP_NATIVE_DIR, or pip install .)",
)


def kerncap(*words: str, cwd: Path, **more: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "KERNCAP_DEVICE": DEVICE, "PYTHONPATH": str(APP)}
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    command = [sys.executable, "-m", "kerncap", *words]
    done = subprocess.run(command, cwd=cwd, env=environment, text=True, timeout=120, **given)  # type: ignore[call-overload]
    assert "Traceback" not in f"{done.stdout}{done.stderr}"
    assert "unexpected" not in f"{done.stdout}{done.stderr}"
    return done


@pytest.fixture(scope="module")
def reproducer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from support.build import build_program

    where = tmp_path_factory.mktemp("bad input")
    program = str(build_program("in_place").executable)
    done = kerncap("extract", "advance", "-o", "rep", "--", program, cwd=where)
    assert done.returncode == 0, done.stderr
    return where / "rep"


@pytest.mark.parametrize(
    "words",
    [
        ["inspect", ""],
        ["list", ""],
        ["replay", ""],
        ["env", "--session", ""],
        ["extract", "k", "-o", "", "--", "true"],
        ["extract", "k", "-o", "a" * 300, "--", "true"],
        ["extract", "k", "--timeout", "nan", "--", "true"],
        ["profile", "--timeout", "inf", "--", "true"],
        ["extract", "k", "--dispatch", "9" * 23, "--", "true"],
        ["validate", "x", "--atol", "nan"],
        ["validate", "x", "--rtol", "inf"],
        ["replay", "x", "--iterations", "9" * 20],
        ["env", "--session", "/proc/none"],
    ],
)
@built
def test_what_cannot_be_meant_is_usage(words: list[str], tmp_path: Path) -> None:
    assert kerncap(*words, cwd=tmp_path).returncode == 2
    assert list(tmp_path.iterdir()) == []


@built
def test_the_largest_limit_is_one(reproducer: Path) -> None:
    """Also for what counts it in milliseconds, or adds to it."""
    for command in ("replay", "validate"):
        done = kerncap(command, str(reproducer), "--timeout", "1e7", cwd=reproducer)
        assert done.returncode == 0, done.stderr
    tool = run_tool([sys.executable, "-c", "print(7)"], directory=reproducer, timeout_s=1e7)
    assert tool.output.strip() == "7"


@pytest.mark.parametrize("limit", ["1e300", "2e8", "10000001"])
@pytest.mark.parametrize("command", ["profile", "extract", "replay", "validate", "watch", "recompile"])
def test_a_limit_of_more_than_clocks_count_is_usage(
    command: str, limit: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = {"profile": ["--", "true"], "extract": ["k", "--", "true"]}.get(command, ["x"])
    if command == "recompile":
        code = recompile_main(["--timeout", limit, *words])
    else:
        code = run([command, "--timeout", limit, *words])
    said = capsys.readouterr().err
    assert code == 2
    assert "--timeout" in said
    assert limit in said
    assert "more than 10000000 seconds" in said


@built
def test_a_device_that_is_none(tmp_path: Path) -> None:
    for words in (["doctor"], ["env"], ["profile", "--", "true"]):
        assert kerncap(words[0], "--device", "nonsense", *words[1:], cwd=tmp_path).returncode == 4


def test_a_target_that_is_no_file_is_written_into(tmp_path: Path) -> None:
    real, link, pipe = tmp_path / "real", tmp_path / "link", tmp_path / "pipe"
    link.symlink_to(real)
    write_atomically(link, b"one")
    assert link.is_symlink()
    assert real.read_bytes() == b"one"
    os.mkfifo(pipe)
    with pytest.raises(UsageError, match="nobody reads"):  # and does not wait for a reader
        write_json(pipe, {})
    write_atomically(Path("/dev/null"), b"gone")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@built
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams(closed: str, reproducer: Path) -> None:
    line = f'exec "$0" -m kerncap replay "$1" --iterations 2 {closed}'
    environment = {**os.environ, "KERNCAP_DEVICE": DEVICE, "PYTHONPATH": str(APP)}
    done = subprocess.run(
        ["sh", "-c", line, sys.executable, str(reproducer)], env=environment, capture_output=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stdout + done.stderr


@built
@pytest.mark.parametrize("words", [["replay", "--iterations", "2"], ["replay", "--json"], ["inspect"]])
def test_a_full_stdout_is_exit_5(words: list[str], reproducer: Path, tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = kerncap(words[0], str(reproducer), *words[1:], cwd=tmp_path, stdout=full)
    assert done.returncode == 5
    assert "stdout" in done.stderr


@built
@pytest.mark.parametrize(
    "words",
    [
        ["replay", "REP", "--dump", "dump"],
        ["watch", "--once", "REP"],
        ["extract", "advance", "-o", "out", "--", "PROGRAM"],
        ["profile", "-o", "report.json", "--", "PROGRAM"],
    ],
)
def test_a_limit_on_the_size_of_files_is_told_as_that(
    words: list[str], reproducer: Path, tmp_path: Path
) -> None:
    import resource

    from support.build import build_program

    def few() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, resource.RLIM_INFINITY))

    copy = tmp_path / "rep"
    shutil.copytree(reproducer, copy)
    stands_for = {"REP": str(copy), "PROGRAM": str(build_program("in_place").executable)}
    done = kerncap(*(stands_for.get(word, word) for word in words), cwd=tmp_path, preexec_fn=few)
    assert done.returncode == 5, done.stderr
    assert "ulimit -f" in done.stderr
    assert "No space left" not in done.stderr


@built
@pytest.mark.parametrize("words", [["replay"], ["validate"], ["validate", "--strict"]])
def test_a_directory_is_no_variant(words: list[str], reproducer: Path, tmp_path: Path) -> None:
    (tmp_path / "built").mkdir()
    (tmp_path / "built/optimized.hsaco").touch()
    for given, such in ((".", "the optimized.hsaco of `make"), ("built", "built/optimized.hsaco")):
        done = kerncap(*words, str(reproducer), "--hsaco", given, cwd=tmp_path)
        assert done.returncode == 2
        assert f"{given} is a directory; --hsaco takes a code object, such as {such}" in done.stderr


@built
def test_too_few_descriptors_and_a_directory_that_is_gone(reproducer: Path, tmp_path: Path) -> None:
    import resource

    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))

    done = kerncap("replay", str(reproducer), cwd=tmp_path, preexec_fn=few)
    assert done.returncode == 4
    assert "ulimit -n" in done.stderr
    gone = tmp_path / "gone"
    gone.mkdir()
    done = kerncap("extract", "k", "--", "true", cwd=gone, preexec_fn=gone.rmdir)
    assert done.returncode == 2
    assert "working directory" in done.stderr


def test_no_room_is_exit_5_whoever_meets_it() -> None:
    full = OSError(28, "No space left on device", "there")
    assert isinstance(unwritable("x", full), WorkloadError)
    assert isinstance(explained(full), WorkloadError)
    assert isinstance(
        unwritable("x", shutil.Error([("a", "b", "[Errno 28] No space left on device")])), WorkloadError
    )
    too_large = unwritable("x", OSError(27, "File too large"))
    assert isinstance(too_large, WorkloadError)
    assert too_large.message.endswith("File too large; raise the limit on the size of files (ulimit -f)")
    assert isinstance(explained(OSError(24, "Too many open files")), ShortageError)
    assert isinstance(explained(PermissionError(13, "Permission denied", "x")), UsageError)
    assert explained(ZeroDivisionError()) is None


def test_an_interruption_is_no_exception_and_comes_once() -> None:
    assert not issubclass(Interrupted, Exception)
    with pytest.raises(Interrupted, match="SIGTERM"), interruptible(), interruptible(), deferred():  # noqa: PT012
        os.kill(os.getpid(), signal.SIGTERM)
        reached = True
    assert reached
    with interruptible():  # what is being put in place is not interrupted
        settle()
        os.kill(os.getpid(), signal.SIGTERM)


def test_an_interruption_in_a_destructor_is_not_lost() -> None:
    class Last:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)

    with pytest.raises(Interrupted), interruptible():  # noqa: PT012
        last = Last()
        del last
        time.sleep(2)


EARLY = """
import os, signal, sys
class Early:
    def find_spec(self, name, path=None, target=None):
        if name == "kerncap.AFTER":
            for number in NUMBERS:
                os.kill(os.getpid(), number)
sys.meta_path.insert(0, Early())
from kerncap.MODULE import main
sys.exit(main())
"""


@pytest.mark.parametrize("numbers", ["[15]", "[15, 15, 15]", "[1, 15, 2]", "[2, 15]"])
@pytest.mark.parametrize(
    ("module", "after"), [("cli", "cli.entry"), ("cli.recompile", "core.build.recompile")]
)
def test_signals_while_it_is_being_loaded_are_130(module: str, after: str, numbers: str) -> None:
    text = EARLY.replace("MODULE", module).replace("AFTER", after).replace("NUMBERS", numbers)
    environment = {**os.environ, "PYTHONPATH": str(APP)}
    words = [sys.executable, "-c", text, "list"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 130, done.stderr
    assert done.stderr in ("kerncap: interrupted\n", "interrupted\n")


def test_what_is_ignored_stays_ignored_while_it_is_being_loaded() -> None:
    text = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)" + EARLY
    text = text.replace("MODULE", "cli").replace("AFTER", "cli.entry").replace("NUMBERS", "[1]")
    environment = {**os.environ, "PYTHONPATH": str(APP)}
    done = subprocess.run([sys.executable, "-c", text, "--version"], env=environment, timeout=60)
    assert done.returncode == 0


LATE = """
import atexit, os, signal, sys
numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
def send(*more, kill=os.kill, pid=os.getpid(), numbers=numbers):
    for number in numbers:
        kill(pid, number)
class Late:
    __del__ = send  # while the last modules go
late = sys.late = Late()
atexit.register(send)
from kerncap.MODULE import main
sys.exit(main())
"""


@built
@pytest.mark.parametrize("command", ["extract", "recompile"])
def test_a_signal_after_the_result_is_in_place_changes_nothing(
    command: str, reproducer: Path, tmp_path: Path
) -> None:
    from support.build import build_program

    if command == "extract":
        program = str(build_program("in_place").executable)
        module, words = "cli", ["extract", "advance", "-o", "out", "--", program]
    else:
        module, words = "cli.recompile", [str(reproducer), "out"]
    environment = {**os.environ, "KERNCAP_DEVICE": DEVICE, "PYTHONPATH": str(APP)}
    line = [sys.executable, "-c", LATE.replace("MODULE", module), *words]
    done = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out").exists()


def test_directories_of_a_killed_maker_are_swept(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True
    )
    dead = tmp_path / f"kerncap-replay-{int(done.stdout)}-123-ab_cd"
    mine = tmp_path / f"{owned_prefix('replay')}abcd"
    other = tmp_path / "kerncap-notes"
    for directory in (dead, mine, other):
        directory.mkdir()
    assert sweep(tmp_path) == [dead]
    assert mine.exists()
    assert other.exists()


def test_bytes_of_a_path_that_are_no_utf8_come_back() -> None:
    document = {"path": os.fsdecode(b"a\xff\xfe")}
    text = json_text(document)
    text.encode("utf-8")
    assert json.loads(text) == document


@built
def test_every_change_of_a_manifest_is_damage(reproducer: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(reproducer, copy)
    path = copy / "capture" / manifest.NAME
    original = path.read_bytes()
    for at in range(0, len(original), 37):
        path.write_bytes(original[:at] + bytes([original[at] ^ 1]) + original[at + 1 :])
        if json_or_none(path.read_bytes()) == json.loads(original):
            continue  # a blank became another blank
        with pytest.raises(DamagedCaptureError):
            manifest.read(copy / "capture")


def json_or_none(data: bytes) -> object:
    try:
        return json.loads(data)
    except ValueError:
        return None


def test_shapes_are_told_by_their_place() -> None:
    assert misshapen({"a": [1]}, {"a": [int], "b?": str}) is None
    assert misshapen({"a": [1, "x"]}, {"a": [int]}) == "a[1] is 'x', not a number"
    assert misshapen({}, {"a": int}) == "a is missing"
    assert misshapen({"a": True}, {"a": int}) == "a is True, not a number"


@built
def test_pipes_are_no_code_objects(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert kerncap("inspect", "pipe", cwd=tmp_path).returncode == 2


@built
@pytest.mark.parametrize("name", ["a b", "q'\"", "$(touch x)", "new\nline", "%41", "#c", "*", "漢", "a:b"])
def test_hostile_paths(name: str, build_program: Callable[[str], Program], tmp_path: Path) -> None:
    folder = tmp_path / f"d {name}"
    shutil.copytree(build_program("in_place").folder, folder)
    done = kerncap("extract", "advance", "-o", f"out {name}", "--", str(folder / "in_place"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    once = kerncap("watch", "--once", f"out {name}", cwd=tmp_path)
    assert once.returncode == 0, once.stdout + once.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([f"d {name}", f"out {name}"])


@built
@pytest.mark.parametrize("command", ["validate", "inspect", "list", "replay"])
def test_a_reader_that_is_gone_is_no_verdict(reproducer: Path, command: str) -> None:
    """Exit 1 would be FAIL."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = kerncap(command, ".", cwd=reproducer, stdout=writing)
    finally:
        os.close(writing)
    assert done.returncode == 141, done.stderr


@pytest.mark.parametrize("number", ["9223372036854775808", "18446744073709551616"])
def test_a_tolerance_that_hides_everything_is_refused(number: str, tmp_path: Path) -> None:
    done = kerncap("validate", ".", "--ulp", number, cwd=tmp_path)
    assert done.returncode == 2
    assert "--ulp" in done.stderr


def test_a_folder_of_the_system_that_cannot_be_read_is_listed() -> None:
    assert kerncap("list", "--json", "/proc/1", cwd=Path("/")).returncode == 0
