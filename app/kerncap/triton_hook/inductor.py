"""The patches of torch.compile: its kernels are written down where they are loaded.

Inductor compiles in worker processes, or takes a kernel from a cache; code and configuration are what the
program gets of it. So a kernel is looked at when its launcher is made, in the process that launches it. Of
torch this uses what 2.7 to 2.14 have in torch._inductor.runtime.triton_heuristics; 2.6 compiles by Triton in
the program itself, which watch.py sees.
"""

import functools
import json
import os
import sys
import types
import weakref

from kerncap_triton_hook import inductor_cache, watch
from kerncap_triton_hook.closure import is_jit
from kerncap_triton_hook.values import Unsupported

# The methods by which a choice is refined; the second is of torch 2.12 and newer.
_REFINING = ("coordinate_descent_tuning", "_combo_sequential_autotune")
_LOADED_BEFORE = (
    "Inductor had the choice in its cache, and had loaded the kernel's module, which lists the "
    "configurations, before kerncap was there"
)
_FRAMES = 8  # between a launcher and the autotuner that asks for it
_tunings = weakref.WeakKeyDictionary()  # an autotuner -> its record


def _live(tuner):
    """The JIT function. A worker's comes without its Python function: the module is loaded here then."""
    fn = tuner.fn
    if getattr(fn, "fn", None) is None:
        again = getattr(tuner, "_reload_kernel", None)
        if again is None:
            raise Unsupported("it was made by Inductor in another process, which keeps no way to its source")
        fn = again().fn
    while not is_jit(fn) and getattr(fn, "fn", None) is not None:
        fn = fn.fn
    if not is_jit(fn) or fn.fn is None:
        raise Unsupported("it was made by Inductor of something else than a Python function")
    return fn


def _tuner_of(frame, kind):
    """The autotuner in whose method a launcher is made."""
    for _ in range(_FRAMES):
        if frame is None:
            return None
        owner = frame.f_locals.get("self")
        if isinstance(owner, kind):
            return owner
        frame = frame.f_back
    return None


def _code(result):
    """(code object, metadata) of what Inductor has of a compiled kernel."""
    kernel = result.kernel
    binary = getattr(kernel, "kernel", None)
    if isinstance(binary, bytes):
        return binary, kernel.metadata
    # For its own launcher: the code object's file in Triton's cache, and the metadata beside it.
    if not kernel.cubin_path:
        result.reload_cubin_path()
    path = kernel.cubin_path
    binary = getattr(kernel, "cubin_raw", None)
    if not isinstance(binary, bytes):
        with open(path, "rb") as file:
            binary = file.read()
    with open(os.path.splitext(path)[0] + ".json", encoding="utf-8") as file:
        values = json.load(file)
    if isinstance(values.get("target"), dict):
        from triton.backends.compiler import GPUTarget

        values["target"] = GPUTarget(**values["target"])
    return binary, types.SimpleNamespace(**values)


def _of_workers():
    """What Inductor sets in its workers: they use torch's own ptxas, where torch brings one."""
    name = "TRITON_PTXAS_PATH"
    ptxas = os.path.join(os.path.dirname(os.path.abspath(sys.modules["torch"].__file__)), "bin", "ptxas")
    return {name: ptxas} if name not in os.environ and os.access(ptxas, os.X_OK) else {}


@watch.guarded
def _loaded(result, tuner):
    def source():
        from triton.compiler import ASTSource

        if tuner is None:
            raise Unsupported("it was made by Inductor for something else than its autotuner")
        meta = result.compile_meta
        return ASTSource(_live(tuner), meta["signature"], meta["constants"], meta["configs"][0])

    binary, metadata = _code(result)
    watch.record(binary, metadata, source, _of_workers())


def _grid(tuner, config, arguments, keywords):
    try:
        if keywords.get("grid") is not None:
            return watch.whole_grid(keywords["grid"], config.kwargs)
        return watch.whole_grid(tuner._interpret_args_grid(arguments, config)[1], {})
    except Exception:
        return None


def _row(tuner, fn, config, milliseconds, arguments, keywords):
    row = watch.candidate(config, fn.arg_names)
    row["options"].pop("XBLOCK", None)  # Inductor's own word, of a kernel that takes none
    if milliseconds is not None:
        row["times_ms"] = [milliseconds if milliseconds < float("inf") else None]
    if arguments is not None:
        row["grid"] = _grid(tuner, config, arguments, keywords)
    return row


@watch.guarded
def _begins(tuner, arguments, keywords):
    """What is captured while candidates are timed has them beside it, and no choice."""
    fn = _live(tuner)
    rows = [_row(tuner, fn, launcher.config, None, arguments, keywords) for launcher in tuner.launchers]
    _tunings[tuner] = watch.new_tuning(fn, rows)


@watch.guarded
def _tuned(tuner, timings, arguments, keywords):
    fn = _live(tuner)
    rows = []
    best = min(timings, key=timings.get)
    for launcher, milliseconds in timings.items():
        row = _row(tuner, fn, launcher.config, milliseconds, arguments, keywords)
        row["chosen"] = launcher is best
        rows.append(row)
    name, document = _tunings.get(tuner) or watch.new_tuning(fn, [])
    document.update(candidates=rows, finished=True)
    _tunings[tuner] = name, document
    watch.write(name, document)


@watch.guarded
def _refined(tuner, before, launcher, arguments, keywords):
    """Coordinate descent, and the tuning of combined kernels, may have found a configuration that was not
    among the first ones.
    """
    if launcher is None:
        return
    fn = _live(tuner)
    name, document = _tunings.get(tuner) or watch.new_tuning(fn, [], finished=True)
    _tunings[tuner] = name, document
    _choose(document["candidates"], _row(tuner, fn, launcher.config, None, arguments, keywords))
    document["cached"] = document["cached"] and launcher is before
    watch.write(name, document)


@watch.guarded
def _of_a_cache(tuner, chosen, configs, arguments, keywords):
    """Nothing is timed here: what there was to choose among is written down all the same. `configs`: None
    where that is not known; `arguments`: those of a launch, which has the grids, None before there is one.
    """
    try:
        fn = _live(tuner)
    except Unsupported:
        return  # then it has no source either, and its record says why
    rows = [_row(tuner, fn, config, None, arguments, keywords) for config in configs or ()]
    _choose(rows, _row(tuner, fn, chosen, None, arguments, keywords))
    name, document = _tunings.get(tuner) or watch.new_tuning(fn, rows, finished=True, cached=True)
    _tunings[tuner] = name, document
    document["candidates"] = rows
    if configs is None:
        document["missing"] = _LOADED_BEFORE
    watch.write(name, document)


def _choose(rows, found):
    """Marks the row of the configuration that `found` has, and adds it where there is none."""
    for row in rows:
        row["chosen"] = False
    same = [r for r in rows if (r["constexprs"], r["options"]) == (found["constexprs"], found["options"])]
    if not same:
        rows.append(found)
    (same or [found])[0]["chosen"] = True


def _patch_launchers(module, kind):
    for value in list(vars(module).values()):
        original = vars(value).get("make_launcher") if isinstance(value, type) else None
        if original is None:
            continue

        def make_launcher(self, *arguments, _original=original, **keywords):
            # Before it is loaded, when a launcher of Inductor's own lets go of the code object.
            _loaded(self, _tuner_of(sys._getframe(1), kind))
            return _original(self, *arguments, **keywords)

        value.make_launcher = functools.wraps(original)(make_launcher)


def patch_heuristics(module):
    """Every kernel that is loaded is written down, and every choice among configurations."""
    tuner = module.CachingAutotuner
    _patch_launchers(module, tuner)
    bench, every = tuner.bench, tuner.benchmark_all_configs

    @functools.wraps(bench)
    def timed(self, *arguments, **keywords):
        with watch.timing_launches():
            return bench(self, *arguments, **keywords)

    @functools.wraps(every)
    def benchmark_all_configs(self, *arguments, **keywords):
        _begins(self, arguments, keywords)
        timings = every(self, *arguments, **keywords)
        _tuned(self, timings, arguments, keywords)
        return timings

    tuner.bench = timed
    tuner.benchmark_all_configs = benchmark_all_configs
    watch.guarded(inductor_cache.patch)(module, _of_a_cache)
    for name in _REFINING:
        original = vars(tuner).get(name)
        if original is not None:
            setattr(tuner, name, _refining(original))


def _refining(original):
    @functools.wraps(original)
    def refine(self, launcher, *arguments, **keywords):
        found = original(self, launcher, *arguments, **keywords)
        _refined(self, launcher, found, arguments, keywords)
        return found

    return refine


PATCHES = {"torch._inductor.runtime.triton_heuristics": patch_heuristics}
