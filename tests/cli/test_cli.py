"""The command line: one document on stdout, diagnostics on stderr, the exit codes of the design, no
traceback.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Fake = Callable[..., list[str]]


def kerncap(*arguments: str, **keywords: object) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "kerncap", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        **keywords,  # type: ignore[call-overload]
    )
    assert "Traceback" not in done.stderr
    return done


KERNELS = [
    {"name": "void big<float>(float*)", "calls": 3, "ns": 3_000_000},
    {"name": "small", "calls": 30, "ns": 100_000},
]


def test_profile_prints_a_plain_table_after_the_programs_own_output(fake: Fake) -> None:
    done = kerncap("profile", "--", *fake(kernels=KERNELS, print="hello"))
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "hello"
    assert "33 dispatches of 2 kernels, 33 timed" in lines[1]
    assert "simulated" in lines[1]
    assert lines[2].split()[:6] == ["#", "id", "%", "calls", "total", "sim"]
    assert lines[3].split()[2:6] == ["75.00", "3", "9.000", "3000.00"]
    assert lines[3].endswith("void big<float>(float*)")
    assert "\x1b" not in done.stdout + done.stderr


def test_profile_json_is_the_one_document_and_the_program_prints_to_stderr(
    fake: Fake, tmp_path: Path
) -> None:
    done = kerncap(
        "profile", "--json", "--top", "1", "-o", "full.json", "--", *fake(kernels=KERNELS, print="hello")
    )
    document = json.loads(done.stdout)
    wanted = ["schema", "device", "command", "exit_code", "wall_s", "dispatches", "timed", "lost", "kernels"]
    assert [key for key in wanted if key not in document] == []
    kernel = [
        "id",
        "name",
        "symbol",
        "kind",
        "calls",
        "total_ns",
        "mean_ns",
        "min_ns",
        "max_ns",
        "percent",
        "grid",
        "block",
    ]
    assert [key for key in kernel if key not in document["kernels"][0]] == []
    assert len(document["kernels"]) == 1
    assert document["kernels_total"] == 2
    assert "hello" in done.stderr
    assert len(json.loads((tmp_path / "full.json").read_text())["kernels"]) == 2


@pytest.mark.parametrize(
    ("spec", "code", "words"), [({"exit": 3}, 5, "exit status 3"), ({"kill": 6}, 5, "SIGABRT")]
)
def test_profile_of_a_failing_program_still_reports(
    fake: Fake, spec: dict[str, int], code: int, words: str
) -> None:
    done = kerncap("profile", "--", *fake(kernels=KERNELS, **spec))
    assert done.returncode == code
    assert "33 dispatches" in done.stdout
    assert words in done.stderr


def test_options_of_the_program_need_no_dashes_before_it(fake: Fake) -> None:
    done = kerncap("profile", sys.executable, "-c", "print('ran')")
    assert done.returncode == 0
    assert done.stdout.startswith("ran\n")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nonsense"], 2, "no command 'nonsense'"),
        (["profil"], 2, "Did you mean 'profile'"),
        (["profile"], 2, "no program to run"),
        (["profile", "--bad-option", "--", "true"], 2, "bad-option"),
        (["profile", "--", "no-such-program-here"], 2, "not in PATH"),
        (["profile", "--device", "sim:gfx9", "--", "true"], 4, "not known"),
        (["profile", "--device", "rocm:77", "--", "true"], 4, "cannot be used"),
        (["profile", "--device", "sim:gfx1100", "--", "true"], 4, "cannot be simulated yet"),
        (["profile", "--device", "cuda:77", "--", "true"], 4, "device cuda:77 cannot be used"),
        (["extract", "k", "--device", "cuda:x", "--", "true"], 4, "not known"),
        (["extract", "k", "--language", "triton", "--", "true"], 2, "'auto', 'hip', 'cuda', 'none'"),
        (["extract", "k"], 2, "no program to run"),
        (["extract", "k", "--cmd", "a 'b"], 2, "cannot be split"),
        (["extract", "k", "--cmd", "a && b"], 2, "not run by a shell"),
        (["extract", "k", "--grid", "a", "--", "true"], 2, "no grid"),
        (["replay", "nowhere"], 2, "does not exist"),
        (["validate", "nowhere", "--smoke", "--strict"], 2, "exclude"),
        (["inspect", "nowhere"], 2, "does not exist"),
        (["list", "nowhere"], 2, "does not exist"),
    ],
)
def test_wrong_requests(fake: Fake, arguments: list[str], code: int, words: str) -> None:
    done = kerncap(*arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    if "--" in arguments:
        arguments.insert(arguments.index("--"), "--json")
    else:
        arguments.append("--json")
    done = kerncap(*arguments)
    document = json.loads(done.stdout)
    assert (done.returncode, document["exit_code"]) == (code, code)
    assert words in document["error"]


def holds_no_capture(tmp_path: Path) -> list[str]:
    """Directories and a file that never were a capture."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "with capture" / "capture").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "manifest.json").write_text('{"name": "some web page"}')
    (tmp_path / "file").write_text("x")
    return ["empty", ".", "with capture", "other", "file", "nowhere"]


def test_a_directory_without_a_capture_is_a_wrong_request(fake: Fake, tmp_path: Path) -> None:
    for where in holds_no_capture(tmp_path):
        for command in ("replay", "validate", "inspect", "watch"):
            if (command, where) == ("inspect", "file"):
                continue  # it takes files: this one is no code object
            done = kerncap(command, where, "--json")
            assert (done.returncode, json.loads(done.stdout)["exit_code"]) == (2, 2), (command, where)
            assert done.stderr.startswith("kerncap: ")
    listed = kerncap("list", ".")
    assert (listed.returncode, listed.stdout) == (0, "")
    assert "no capture in ." in listed.stderr


def test_a_directory_without_a_capture_is_a_usage_error_in_python(tmp_path: Path) -> None:
    import kerncap as api
    from kerncap.core.errors import UsageError

    for where in holds_no_capture(tmp_path):
        for call in (api.validate, api.replay):
            with pytest.raises(UsageError):
                call(tmp_path / where)


@pytest.mark.parametrize("left", ["memory.pre", "memory.post", "manifest.json", "compile.json"])
def test_a_capture_that_lost_its_records_is_damaged(fake: Fake, tmp_path: Path, left: str) -> None:
    folder = tmp_path / "rep" if left == "compile.json" else tmp_path / "rep" / "capture"
    folder.mkdir(parents=True)
    (folder / left).write_text('{"schema": "kerncap-capture/1"}')
    for command in ("replay", "validate", "inspect", "watch"):
        done = kerncap(command, "rep")
        assert (done.returncode, done.stdout) == (6, "")
        assert "extract it again" in done.stderr


def test_extract_of_a_kernel_that_is_never_launched(fake: Fake, tmp_path: Path) -> None:
    done = kerncap("extract", "smell", "--json", "--", *fake(kernels=KERNELS))
    document = json.loads(done.stdout)
    assert (done.returncode, document["exit_code"]) == (5, 5)
    assert document["launched"][0]["name"] == "small"
    assert not (tmp_path / "isolated").exists()


def test_ambiguous_kernel_exits_2_and_lists_candidates(fake: Fake) -> None:
    done = kerncap("extract", "l", "--json", "--", *fake(kernels=[{"name": "alpha"}, {"name": "blue"}]))
    document = json.loads(done.stdout)
    assert done.returncode == 2
    assert {k["name"] for k in document["candidates"]} == {"alpha", "blue"}


def test_broken_pipe_is_silent(fake: Fake) -> None:
    kernels = [{"name": "k" * 500 + str(i)} for i in range(100)]
    command = [sys.executable, "-m", "kerncap", "profile", "--top", "100", "--", *fake(kernels=kernels)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    errors = process.stderr.read()
    process.wait(timeout=60)
    assert "Traceback" not in errors
    assert "BrokenPipe" not in errors


def test_names_cannot_drive_the_terminal(fake: Fake) -> None:
    done = kerncap("profile", "--", *fake(kernels=[{"name": "evil\x1b[2Jname\r\nx"}]))
    assert "\x1b" not in done.stdout
    assert "evil?[2Jname??x" in done.stdout


def test_kernel_name_of_kilobytes(fake: Fake) -> None:
    name = "void k<" + ", ".join(["std::tuple<int, float>"] * 500) + ">(int)"
    done = kerncap("profile", "--json", "--", *fake(kernels=[{"name": name}]))
    assert json.loads(done.stdout)["kernels"][0]["name"] == name


def test_env_prints_what_a_shell_can_read(fake: Fake, tmp_path: Path, fake_natives: Path) -> None:
    done = kerncap("env", "--session", "s")
    assert done.returncode == 0
    shell = subprocess.run(
        ["sh", "-c", done.stdout + 'echo "$KERNCAP_SIM $KERNCAP_SESSION $LD_PRELOAD"'],
        capture_output=True,
        text=True,
    )
    assert shell.stdout.split() == ["gfx942", str(tmp_path / "s"), str(fake_natives / "libkerncap_hsa.so")]
    document = json.loads(kerncap("env", "--json", "--device", "sim:gfx942x2").stdout)
    assert document["variables"]["KERNCAP_SIM"] == "gfx942x2"


def test_programs_started_some_other_way_are_reported_by_their_session(fake: Fake, tmp_path: Path) -> None:
    kerncap("env", "--session", "s")
    for _ in range(2):
        subprocess.run(
            fake(kernels=KERNELS), check=True, env={**os.environ, "KERNCAP_SESSION": str(tmp_path / "s")}
        )
    document = json.loads(kerncap("profile", "--session", "s", "--json").stdout)
    assert document["dispatches"] == 66
    assert len(document["processes"]) == 2


def test_a_session_knows_its_device_before_and_after_a_program(fake: Fake, tmp_path: Path) -> None:
    first = kerncap("env", "--session", "s", "--device", "sim:gfx90a")
    assert kerncap("profile", "--session", "s").stdout.startswith("sim:gfx90a: 0 dispatches of 0 kernels")
    environment = {**os.environ, "KERNCAP_SESSION": str(tmp_path / "s")}
    subprocess.run(fake(kernels=KERNELS), check=True, env=environment)
    assert kerncap("profile", "--session", "s").stdout.startswith("sim:gfx90a: 33 dispatches")
    again = kerncap("env", "--session", "s")  # also where another device is the default
    assert (again.returncode, again.stdout) == (0, first.stdout)
    other = kerncap("env", "--session", "s", "--device", "sim:gfx942")
    assert other.returncode == 2
    assert "was made for sim:gfx90a, not sim:gfx942: leave out --device" in other.stderr
    (tmp_path / "no session").mkdir()
    wrong = kerncap("env", "--session", "no session")
    assert wrong.returncode == 2
    assert "is no session of kerncap" in wrong.stderr
    assert "remove" not in wrong.stderr


def test_what_a_running_program_has_in_flight_is_not_unaccounted_for(fake: Fake, tmp_path: Path) -> None:
    kerncap("env", "--session", "s")
    kernels = [*KERNELS, {"name": "flying", "calls": 4, "ns": 0}]
    environment = {**os.environ, "KERNCAP_SESSION": str(tmp_path / "s")}
    with subprocess.Popen(
        fake(kernels=kernels, print="hello", hang=60), env=environment, stdout=-1
    ) as program:
        try:
            assert program.stdout
            program.stdout.readline()
            said = kerncap("profile", "--session", "s").stderr
        finally:
            program.kill()
    assert "1 process still runs; 4 dispatches are in flight" in said
    assert "unaccounted" not in said
    assert len(said.splitlines()) == 1


def test_an_extraction_in_a_session_where_nothing_was_launched(fake: Fake) -> None:
    kerncap("env", "--session", "s")
    done = kerncap("extract", "k", "--session", "s", "--timeout", "0.3")
    assert done.returncode == 5
    assert "No program has launched a kernel with this session yet (s)." in done.stderr
    assert "none" not in done.stderr


def test_an_id_that_is_too_short_is_told(fake: Fake) -> None:
    words = fake(kernels=KERNELS)
    ids = [k["id"] for k in json.loads(kerncap("profile", "--json", "--", *words).stdout)["kernels"]]
    done = kerncap("extract", ids[0][:5], "--", *words)
    assert done.returncode == 5
    assert f"An id is given with 6 digits at least: {ids[0][:6]}. Launched were" in done.stderr
    assert "An id is given" not in kerncap("extract", "fffff", "--", *words).stderr


def test_doctor_names_what_is_missing(fake: Fake) -> None:
    done = kerncap("doctor", "--json")
    document = json.loads(done.stdout)
    assert done.returncode == 4
    missing = [check for check in document["checks"] if check["state"] == "problem"]
    assert any("libamdhip64.so.6" in check["detail"] and check["fix"] for check in missing)


def test_help_and_version() -> None:
    assert kerncap().stdout.startswith("Usage: kerncap")
    for command in (
        "profile",
        "extract",
        "replay",
        "validate",
        "watch",
        "inspect",
        "list",
        "doctor",
        "env",
        "demo",
    ):
        assert kerncap(command, "--help").returncode == 0
    assert kerncap("--version").stdout.startswith("kerncap, version ")
