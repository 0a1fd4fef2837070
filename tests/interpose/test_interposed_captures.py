"""Captures of dispatches on the simulated GPU: which one, what is in it, and what the program notices."""

from __future__ import annotations

import resource
import signal
from collections.abc import Callable

import numpy as np
import pytest
from checking import captured, checked, ints, pointer
from watching import plain, watched

from kerncap.core.capture import records
from kerncap.core.capture.reading import read_capture
from kerncap.core.code.layout import CaptureState, MemoryMode
from kerncap.core.program.control import CaptureRequest

Wish = Callable[..., CaptureRequest]
SETTLED = (CaptureState.DONE, CaptureState.FAILED, CaptureState.CANCELLED, CaptureState.AMBIGUOUS)


@pytest.mark.parametrize("nth", [1, 2])
def test_memory_is_that_of_before_the_dispatch(wish: Wish, nth: int) -> None:
    """C1: the second run of an in-place kernel starts where the first ended."""
    capture = captured(wish("advance", nth=nth), "in_place")
    assert capture.dispatch.nth_of_kernel == nth
    data = pointer(capture, 0)
    region = capture.region_at(data)
    assert region is not None
    before = np.frombuffer(capture.before(data, region.bytes).tobytes(), np.float32)
    after = np.frombuffer(capture.after(data, region.bytes).tobytes(), np.float32)
    assert not np.array_equal(before, after)
    start, step = float(before[0]), float(after[0])
    # x := 1.5 x + 1 is what the program's kernel does to every element.
    scale = np.frombuffer(capture.kernarg.data, np.float32)[2]
    assert scale == 1.5
    assert step == pytest.approx(start * 1.5 + 1) or step == pytest.approx(start * 1.5)


def test_the_dispatch_that_was_wanted_in_a_batch(wish: Wish) -> None:
    """C3: the packet after a barrier and another dispatch, by name and number."""
    for nth, before in ((1, 1), (2, 4), (3, 7)):
        request = wish("add_two", nth=nth)
        capture = captured(request, "batches")
        data = pointer(capture, 0)
        assert set(ints(capture.before(data, 4000)).tolist()) == {before}
        assert set(ints(capture.after(data, 4000)).tolist()) == {before + 2}
        assert capture.changed_bytes() == 1000  # the low byte of each
        for path in sorted(request.output.rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()
        request.output.rmdir()


@pytest.mark.parametrize("options", [(), ("--single",)])
def test_a_session_that_only_counts_captures_too(wish: Wish, options: tuple[str, ...]) -> None:
    capture = captured(wish("add_one"), "batches", *options, timing=False)
    assert set(ints(capture.after(pointer(capture, 0), 4000)).tolist()) == {1}


def test_exit_after_ends_the_program(wish: Wish) -> None:
    with watched("batches", request=wish("add_two", exit_after=True)) as run:
        assert run.finish() == 0
        assert run.out == ""
        assert run.err == ""
        assert run.status().state == CaptureState.DONE
        assert run.only().exited


def test_a_kernel_that_is_never_launched(wish: Wish) -> None:
    """C6: the front end finds out what was."""
    request = wish("no_such_kernel")
    with watched("batches", request=request) as run:
        assert run.finish() == 7
        assert run.status().state == CaptureState.ARMED
        assert run.status().owner_pid == 0
        assert sorted(run.kernels()) == ["add_one", "add_two"]
    assert list(request.output.parent.iterdir()) == []


def test_a_name_that_fits_several_kernels(wish: Wish) -> None:
    """C7."""
    request = wish("scale")
    with watched("templates", request=request) as run:
        assert run.finish() == 0
        status = run.status()
        assert status.state == CaptureState.AMBIGUOUS
        named = dict(line.split("\t") for line in status.message.splitlines())
        assert named == {k.id: k.name for k in run.only().kernels if k.name.startswith("void scale<")}
        assert len(named) == 3
    assert list(request.output.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("pattern", "symbol"),
    [
        ("scale_all", "scale_all"),  # contains another's base name
        ("void scale<(Kind)39, int>(int*, int)", "_Z5scaleIL4Kind39EiEvPT0_i"),
        ("scale<(Kind)39, float>", "_Z5scaleIL4Kind39EfEvPT0_i"),
        ("Kind)0", "_Z5scaleIL4Kind0EfEvPT0_i"),
        ("_Z5scaleIL4Kind39EfEvPT0_i.kd", "_Z5scaleIL4Kind39EfEvPT0_i"),
    ],
)
def test_a_name_that_fits_one_kernel(wish: Wish, pattern: str, symbol: str) -> None:
    capture = captured(wish(pattern), "templates")
    assert capture.dispatch.symbol == symbol


def test_one_symbol_in_two_code_objects_by_id(wish: Wish) -> None:
    with watched("templates") as run:
        run.finish()
        twins = [kernel for kernel in run.only().kernels if kernel.name == "twin"]
    assert len(twins) == 2
    assert twins[0].code_hash != twins[1].code_hash
    for twin in twins:
        request = wish(twin.id[:8], exact=True)
        request = CaptureRequest(**{**vars_of(request), "output": request.output.with_name(twin.id)})
        with watched("templates", request=request) as run:
            run.finish()
            assert run.status().state == CaptureState.DONE, run.status()
        capture = read_capture(request.output)
        assert f"{capture.code_object.content_hash:016x}" == twin.code_hash
        assert capture.dispatch.symbol == "twin"


def vars_of(request: CaptureRequest) -> dict[str, object]:
    return {name: getattr(request, name) for name in request.__slots__}


def test_only_the_grid_that_was_asked_for(wish: Wish) -> None:
    with watched("batches", request=wish("add_one", nth=0, grid=(64, 1, 1))) as run:
        run.finish()
        assert run.status().state == CaptureState.ARMED
    capture = captured(wish("add_one", nth=0, grid=(1024, 1, 1)), "batches")
    assert capture.dispatch.nth_of_kernel == 1


def test_another_processs_request_is_left_alone(wish: Wish) -> None:
    with watched("batches", request=wish("add_one", only_pid=1)) as run:
        assert run.finish() == 7
        assert run.status().state == CaptureState.IDLE


@pytest.mark.parametrize("mode", ["fork", "spawn"])
def test_a_child_can_be_captured(wish: Wish, mode: str) -> None:
    """C14: the first of the processes that launches its seventh gets it; the others run on."""
    request = wish("count_up", nth=7)
    with watched("processes", "--mode", mode, "--children", "2", request=request) as run:
        assert run.finish() == 0, run.err
        status = run.status()
        assert status.state == CaptureState.DONE, status
        assert status.owner_pid not in (0, run.process.pid)
        assert sorted(p.dispatches for p in run.snapshot().processes) == [5, 6, 7]
    capture = checked(request)
    assert capture.process.pid == status.owner_pid
    assert set(ints(capture.before(pointer(capture, 0), 256)).tolist()) == {6}


def test_module_variables(wish: Wish) -> None:
    """C10, R10."""
    capture = captured(wish("polynomial", nth=2), "variables")
    variables = {variable.name: variable for variable in capture.variables}
    assert variables["coefficients"].bytes == 16
    values = capture.before(variables["coefficients"].address, 16)
    assert np.frombuffer(values.tobytes(), np.float32).tolist() == [1.0, 2.0, 0.5, 0.25]
    calls = variables["calls"].address
    assert ints(capture.before(calls, 4)).tolist() == [1]
    assert ints(capture.after(calls, 4)).tolist() == [2]
    assert capture.region_at(calls).kind == records.RegionKind.CODE_SEGMENT


@pytest.mark.parametrize("kernel", ["sum_table", "run_entries", "walk_list"])
def test_pointers_in_memory_are_followed(wish: Wish, kernel: str) -> None:
    """C9 and C11: tables, structures, a linked list; arguments are bytes, whatever they are declared."""
    capture = captured(wish(kernel), "pointers", "--nodes", "300")
    assert all(region.saved for region in capture.regions)
    todo, seen = [pointer(capture, 0)], set()
    while todo:
        region = capture.region_at(todo.pop())
        if region is None or region.id in seen or region.kind == records.RegionKind.CODE_SEGMENT:
            continue
        seen.add(region.id)
        words = capture.before(region.address, region.bytes // 8 * 8)
        todo += np.frombuffer(words.tobytes(), np.uint64).tolist()
    assert len(seen) >= {"sum_table": 6, "run_entries": 4, "walk_list": 300}[kernel]


def test_reachable_and_all_memory(wish: Wish) -> None:
    reachable = captured(wish("walk_list"), "pointers")
    whole_wish = wish("walk_list", memory=MemoryMode.ALL)
    whole_wish = CaptureRequest(**{**vars_of(whole_wish), "output": whole_wish.output.with_name("all")})
    with watched("pointers", request=whole_wish) as run:
        run.finish()
        assert run.status().state == CaptureState.DONE, run.status()
    whole = read_capture(whole_wish.output)
    assert whole.dispatch.reachable_bytes == reachable.dispatch.reachable_bytes
    assert whole.pre_bytes > reachable.pre_bytes
    flags = records.RegionFlags
    assert all(region.flags & flags.REACHABLE for region in reachable.regions)
    assert (
        sum(r.bytes for r in whole.regions if r.flags & flags.REACHABLE) == reachable.dispatch.reachable_bytes
    )
    assert sum(r.bytes for r in whole.regions if r.kind != records.RegionKind.CODE_SEGMENT) >= (
        whole.dispatch.allocated_bytes
    )


def test_memory_of_every_kind_that_hip_gives(wish: Wish) -> None:
    """C12: device, pinned, registered, managed, stream-ordered."""
    capture = captured(wish("touch"), "memory_kinds")
    kinds = records.RegionKind
    n, expected = 3000, [10, 20, 30, 40]
    found = [capture.region_at(pointer(capture, i)) for i in range(5)]
    assert [region.kind for region in found[:4]] == [
        kinds.DEVICE,
        kinds.HOST,
        kinds.REGISTERED,
        kinds.MANAGED,
    ]
    for i, value in enumerate(expected):
        assert set(ints(capture.before(pointer(capture, i), n * 4)).tolist()) == {value}
        assert (
            set(ints(capture.after(pointer(capture, i), n * 4)).tolist()) == {value + i + 1 if i else 11} or i
        )
    assert set(ints(capture.after(pointer(capture, 4), n * 4)).tolist()) == {11 + 22 + 33 + 44}


@pytest.mark.parametrize(
    ("option", "kind"),
    [("--vmem", "VMEM"), ("--fine", "HOST"), ("--lock", "REGISTERED"), ("--free", "DEVICE")],
)
def test_memory_of_the_runtimes_other_kinds(wish: Wish, option: str, kind: str) -> None:
    capture = captured(wish("add_one"), "kinds", option)
    data = pointer(capture, 0)
    assert capture.region_at(data).kind == records.RegionKind[kind]
    assert set(ints(capture.before(data, 4000)).tolist()) == {41}
    assert set(ints(capture.after(data, 4000)).tolist()) == {42}


def test_variables_of_a_code_object_from_a_file(wish: Wish) -> None:
    capture = captured(wish("use_variables"), "kinds", "--executable")
    where = {variable.name: variable.address for variable in capture.variables}
    assert ints(capture.before(where["counter"], 4)).tolist() == [5]
    assert ints(capture.after(where["counter"], 4)).tolist() == [5 + 16 * 3]  # once a workgroup
    assert ints(capture.before(where["step"], 4)).tolist() == [3]


@pytest.mark.parametrize("timing", [True, False])
@pytest.mark.parametrize("options", [(), ("--single",)])
def test_a_busy_queue_is_drained_first(wish: Wish, timing: bool, options: tuple[str, ...]) -> None:
    """C13: what ran before the capture is complete in it, what came later has not begun."""
    request = wish("add_one", memory=MemoryMode.ALL)
    capture = captured(request, "peers", *options, timing=timing)
    written, others = (
        next(region for region in capture.regions if region.bytes == 4 * count and region.address != values)
        for values in [pointer(capture, 0)]
        for count in (77, 1000)
    )
    assert ints(capture.before(written.address, 4)).tolist() == [7]
    assert set(ints(capture.before(pointer(capture, 0), 4000)).tolist()) == {10}
    assert set(ints(capture.after(others.address, 4000)).tolist()) == {0}


@pytest.mark.parametrize("timing", [True, False])
def test_a_peer_that_does_not_end_gives_a_timeout(wish: Wish, timing: bool) -> None:
    """C13: the capture is given up, the program runs on as if nothing had been."""
    request = wish("add_one", timeout_s=0.5)
    bare = plain("peers", "--never")
    with watched("peers", "--never", timing=timing, request=request) as run:
        assert run.finish() == 0, run.err
        assert run.out == bare.stdout
        status = run.status()
        assert status.state == CaptureState.FAILED
        assert "did not become idle within 0.5 s" in status.message
        if timing:
            assert "wait_for_host is still running" in status.message
            assert run.only().timed == run.only().dispatches == 3
    assert list(request.output.parent.iterdir()) == []


def test_a_dispatch_that_does_not_end_gives_a_timeout(wish: Wish) -> None:
    request = wish("wait_for_host", timeout_s=0.4)
    with watched("peers", "--peer-ms", "1500", request=request) as run:
        assert run.finish() == 0, run.err
        status = run.status()
        assert status.state == CaptureState.FAILED
        assert status.message == "the dispatch did not complete within 0.4 s"
        assert run.only().timed == run.only().dispatches == 3
    assert list(request.output.parent.iterdir()) == []


def test_arming_in_a_running_program(wish: Wish) -> None:
    request = wish("add_one", nth=0)
    with watched("steady", "--pause-us", "300") as run:
        run.wait_dispatches(100)
        run.session.request_capture(request)
        status = run.wait_state(*SETTLED)
        assert status.state == CaptureState.DONE, status
        capture = checked(request)
        seen = run.only().dispatches
        run.wait_dispatches(seen + 100)  # it runs on
        run.process.send_signal(signal.SIGTERM)
        assert run.finish() == 0, run.err
        launched, result = map(int, run.out.split()[1:])
        assert launched == result == run.only().dispatches == run.only().timed
        nth = capture.dispatch.nth_of_kernel
        assert 100 <= nth <= launched
        before = ints(capture.before(pointer(capture, 0), 4))[0]
        after = ints(capture.after(pointer(capture, 0), 4))[0]
        assert (before, after) == (nth, nth + 1)  # it starts at 1


def test_two_captures_in_one_program(wish: Wish) -> None:
    first = wish("add_one", nth=0)
    second = CaptureRequest(**{**vars_of(first), "output": first.output.with_name("second")})
    with watched("steady", "--pause-us", "300") as run:
        for request in (first, second):
            run.session.request_capture(request)
            assert run.wait_state(*SETTLED).state == CaptureState.DONE
        run.process.send_signal(signal.SIGTERM)
        assert run.finish() == 0
    numbers = [read_capture(request.output).dispatch.nth_of_kernel for request in (first, second)]
    assert numbers[0] < numbers[1]


def test_a_dispatch_that_has_passed(wish: Wish) -> None:
    with watched("steady", "--pause-us", "300") as run:
        run.wait_dispatches(100)
        run.session.request_capture(wish("add_one", nth=7))
        status = run.wait_state(*SETTLED)
        assert status.state == CaptureState.FAILED
        assert status.message.startswith("dispatch 7 of add_one was before the request")


def test_a_request_is_replaced_while_it_is_only_armed(wish: Wish) -> None:
    first = wish("add_two", nth=0)
    with watched("steady", "--pause-us", "300") as run:
        run.session.request_capture(first)
        run.wait_state(CaptureState.ARMED)
        run.session.request_capture(wish("add_one", nth=0))
        assert run.wait_state(*SETTLED).state == CaptureState.DONE


def test_cancelling_while_armed(wish: Wish) -> None:
    with watched("steady", "--pause-us", "300") as run:
        run.session.request_capture(wish("add_two", nth=0))
        run.wait_state(CaptureState.ARMED)
        run.session.cancel()
        status = run.wait_state(CaptureState.CANCELLED, timeout=5)
        assert status.accepted == status.sequence


def test_cancelling_while_memory_is_saved(wish: Wish) -> None:
    request = wish("add_one", nth=0)
    with watched("steady", "--pause-us", "300", "--big", "600") as run:
        run.wait_dispatches(1)
        run.session.request_capture(request)
        run.wait_state(CaptureState.SAVING)
        run.session.cancel()
        run.wait_state(CaptureState.CANCELLED, timeout=20)
        seen = run.only().dispatches
        run.wait_dispatches(seen + 10)
        run.process.send_signal(signal.SIGTERM)
        assert run.finish() == 0
        launched, result = map(int, run.out.split()[1:])
        assert launched == result
    assert list(request.output.parent.iterdir()) == []


def test_a_kill_in_the_middle_leaves_no_capture(wish: Wish) -> None:
    """C5: what is there is named so that nothing takes it for a capture."""
    request = wish("add_one", nth=0)
    with watched("steady", "--big", "600") as run:
        run.wait_dispatches(1)
        run.session.request_capture(request)
        run.wait_state(CaptureState.SAVING)
        run.process.send_signal(signal.SIGKILL)
        assert run.finish() == -signal.SIGKILL
        assert run.status().state in (CaptureState.SAVING, CaptureState.RUNNING)
    left = [path.name for path in request.output.parent.iterdir()]
    assert left in ([], [f"capture.partial-{run.process.pid}"])


@pytest.mark.parametrize("limit_mib", [40, 100])
def test_a_full_disk_gives_the_reason_and_leaves_nothing(wish: Wish, limit_mib: int) -> None:
    """C5. The limit on the size of a file stands for a full disk: the write fails in the same place."""
    request = wish("add_one", nth=0)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit_mib << 20, resource.RLIM_INFINITY))

    with watched("steady", "--big", "128", "--pause-us", "300", request=request, preexec=limit) as run:
        status = run.wait_state(*SETTLED)
        assert status.state == CaptureState.FAILED
        assert "memory.pre" in status.message
        assert "File too large" in status.message
        seen = run.only().dispatches
        run.wait_dispatches(seen + 10)
        run.process.send_signal(signal.SIGTERM)
        assert run.finish() == 0
        launched, result = map(int, run.out.split()[1:])
        assert launched == result
    assert list(request.output.parent.iterdir()) == []


def test_an_output_that_exists_is_refused(wish: Wish) -> None:
    """C4."""
    request = wish("add_one")
    request.output.mkdir()
    with watched("batches", request=request) as run:
        assert run.finish() == 7
        status = run.status()
        assert status.state == CaptureState.FAILED
        assert "File exists" in status.message
    assert list(request.output.iterdir()) == []
