"""The patches of Triton: every kernel that it makes or takes from its cache, and every choice of its
autotuner, is written into the session as a JSON file.

Of Triton this uses what 3.2 to 3.9 have: CompiledKernel.__init__(src, metadata_group, hash), ASTSource's fn,
signature, constants and attrs, Autotuner's prune_configs, _bench and run. What is not as expected is written
down as a problem.
"""

import contextlib
import functools
import hashlib
import inspect
import json
import os
import sys
import threading
import traceback

from kerncap_triton_hook.closure import Closure, is_jit
from kerncap_triton_hook.elf_text import text_digest
from kerncap_triton_hook.values import Unsupported, expression

# Set by start.py, which says what they are.
RECORDS = ""
TUNING = None
COMPILED = None
SCHEMA = "kerncap-triton/1"
# Variables that change what the compiler makes.
_ENVIRONMENT = (
    "TRITON_",
    "AMDGCN_",
    "DISABLE_",
    "ENABLE_",
    "LLVM_",
    "MLIR_",
    "NVPTX_",
    "PTXAS_",
    "USE_IR_LOC",
)
_NOT_KEPT = ("TRITON_CACHE", "TRITON_HOME", "TRITON_DUMP", "TRITON_OVERRIDE", "TRITON_PRINT", "TRITON_KERNEL")
_lock = threading.Lock()
_open = {}  # (thread, id of the tuner) -> the record of the tuning that goes on
_tunings = [0]


def problem():
    """Writes down the exception that is being handled."""
    with open(os.path.join(RECORDS, f"problem-{os.getpid()}.txt"), "a", encoding="utf-8") as file:
        file.write(traceback.format_exc())


def guarded(function):
    """`function`, whose failure is written down and is nobody else's matter."""

    @functools.wraps(function)
    def run(*arguments):
        try:
            return function(*arguments)
        except Exception:
            with contextlib.suppress(OSError):
                problem()
            return None

    return run


def write(name, document):
    """A file of the session, whole or not at all."""
    path = os.path.join(RECORDS, name)
    partial = f"{path}.{os.getpid()}.{threading.get_ident()}"
    with open(partial, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
    os.replace(partial, path)


def _tupled(value):
    """Metadata went through JSON, which has no tuples."""
    return tuple(_tupled(part) for part in value) if isinstance(value, (list, tuple)) else value


def _options(metadata):
    """The compile options among the metadata: what the backend's own options have."""
    from triton.compiler.compiler import make_backend

    values = metadata._asdict() if hasattr(metadata, "_asdict") else dict(vars(metadata))
    values = {name: _tupled(value) if isinstance(value, list) else value for name, value in values.items()}
    names = make_backend(values["target"]).parse_options(dict(values)).__dict__
    return {name: values[name] for name in names if name in values}


@guarded
def _defaults(metadata, parameters, kept, text):
    """What a constexpr and an option are where nobody says it: a configuration need not name what another
    does. `kept`: the options as they were; only what is otherwise by default is told.
    """
    from triton.compiler.compiler import make_backend

    found = {"constexprs": {}, "options": {}}
    for parameter in parameters:
        value = getattr(parameter, "default", inspect.Parameter.empty)
        if parameter.is_constexpr and value is not inspect.Parameter.empty:
            with contextlib.suppress(Unsupported):
                found["constexprs"][parameter.name] = text(value)
    plain = make_backend(metadata.target).parse_options({}).__dict__
    for name, value in plain.items():
        with contextlib.suppress(Unsupported):
            if name in kept and text(value) != kept[name]:
                found["options"][name] = text(value)
    return found


def _attributes(attrs):
    if hasattr(attrs, "to_dict"):  # AttrsDescriptor of Triton 3.2
        return {"descriptor": repr(attrs.to_dict())}
    return {"paths": repr(dict(attrs or {}))}


def _target(target):
    return [target.backend, target.arch, target.warp_size]


@guarded
def record(binary, metadata, source, variables=None):
    """Writes a kernel down. `source()` returns its ASTSource; it may raise Unsupported. `variables`: what the
    environment had more where it was compiled.
    """
    kernel_id = COMPILED(metadata.name, binary)
    digest = hashlib.sha256(binary).hexdigest()
    name = digest + ".json"
    if os.path.exists(os.path.join(RECORDS, name)):
        return
    import triton

    document = {
        "schema": SCHEMA,
        "code_object": digest,
        "id": kernel_id,
        "text": text_digest(binary),
        "triton": triton.__version__,
        "triton_root": os.path.dirname(os.path.dirname(os.path.abspath(triton.__file__))),
        "python": sys.executable,
        "kernel": metadata.name,
        "target": _target(metadata.target),
        "shared": getattr(metadata, "shared", None),
        "scratch": getattr(metadata, "global_scratch_size", None),
        # Whether descriptors made by the host come as maps, which hold the block shape themselves.
        "tensor_maps": bool(getattr(metadata, "tensordesc_meta", None)),
        "environment": {
            key: value
            for key, value in {**os.environ, **(variables or {})}.items()
            if key.startswith(_ENVIRONMENT) and not key.startswith(_NOT_KEPT)
        },
    }
    try:
        _describe(document, source(), metadata)
    except Unsupported as error:
        document["reason"] = str(error)
    except Exception as error:
        document["reason"] = f"{type(error).__name__}: {error}"
        problem()
    write(name, document)


def _describe(document, src, metadata):
    fn = getattr(src, "fn", None)
    if type(fn).__name__ == "GluonJITFunction":
        raise Unsupported("it is written in Gluon, whose kernels are not kept")
    if fn is None or not is_jit(fn):
        raise Unsupported(
            "it was compiled of {} text, not of a Python function".format(getattr(src, "ext", "other"))
        )
    closure = Closure()
    module, name = closure.add_function(fn)
    scope = fn.fn.__globals__

    def text(value):
        return expression(value, lambda part: closure.name_in(module, scope, part))

    constants = {}
    for path, value in src.constants.items():
        at = (
            (fn.arg_names.index(path),)
            if isinstance(path, str)
            else (path,)
            if isinstance(path, int)
            else tuple(path)
        )
        key = fn.arg_names[at[0]] if len(at) == 1 else repr(at)
        try:
            constants[key] = text(value)
        except Unsupported as problem:
            raise Unsupported(f"the constexpr {key} is {problem}, which cannot be written down") from None
    declared = [p.name for p in fn.params if p.is_constexpr]
    options = {key: text(value) for key, value in _options(metadata).items()}
    document.update(
        module=module,
        function=name,
        parameters=list(fn.arg_names),
        signature={str(key): text(value) for key, value in src.signature.items()},
        constexprs=constants,
        declared=declared,
        attributes=_attributes(src.attrs),
        options=options,
        modules=closure.modules,
        unresolved=closure.unresolved,
    )
    defaults = _defaults(metadata, fn.params, options, text)
    if defaults is not None:
        document["defaults"] = defaults


@guarded
def _made(kernel):
    record(kernel.kernel, kernel.metadata, lambda: kernel.src)


def patch_compiler(module):
    """Every CompiledKernel is written down when it is made."""
    original = module.CompiledKernel.__init__

    @functools.wraps(original)
    def made(self, *arguments, **keywords):
        original(self, *arguments, **keywords)
        _made(self)

    module.CompiledKernel.__init__ = made


# ---- the autotuner -----------------------------------------------------------------------


def _key(tuner):
    return threading.get_ident(), id(tuner)


def candidate(config, parameters):
    """A row of a tuning: a Config for a kernel that takes `parameters`."""
    row = {"constexprs": {}, "options": {}, "times_ms": None, "chosen": False, "grid": None}
    for key, value in config.all_kwargs().items():
        # The backend's own options (waves_per_eu) may stand among the constexprs.
        place = "constexprs" if key in config.kwargs and key in parameters else "options"
        try:
            row[place][key] = expression(value)
        except Unsupported as problem:
            row["problem"] = f"{key} is {problem}"
    return row


def whole_grid(grid, names):
    """Three numbers of what a program gives as its grid."""
    if callable(grid):
        grid = grid(names)
    numbers = [int(n) for n in grid]
    return numbers + [1] * (3 - len(numbers))


def new_tuning(fn, rows, finished=False, cached=False):
    """(file name, document) of a tuning of the JIT function `fn`; written down. `cached`: the choice came
    from a cache, nothing is timed.
    """
    with _lock:
        _tunings[0] += 1
        number = _tunings[0]
    document = {
        "schema": SCHEMA,
        "module": fn.fn.__module__,
        "function": fn.fn.__name__,
        "finished": finished,
        "cached": cached,
        "candidates": rows,
    }
    name = f"tuning-{os.getpid()}-{number}.json"
    write(name, document)
    return name, document


@contextlib.contextmanager
def timing_launches():
    """What is launched in it only times a candidate: no dispatch that a kernel's name means."""
    TUNING(True)
    try:
        yield
    finally:
        TUNING(False)


@guarded
def _tuning_begins(tuner, configs, keywords):
    fn = tuner.fn
    while not is_jit(fn):
        fn = fn.fn
    rows = []
    for config in configs:
        row = candidate(config, fn.arg_names)
        try:
            names = dict(tuner.nargs or {}, **keywords)
            row["grid"] = whole_grid(keywords.get("grid"), dict(names, **config.all_kwargs()))
        except Exception:
            row["grid"] = None
        rows.append(row)
    for row in rows if len(rows) == 1 else ():
        row["chosen"] = True  # Triton 3.7 and newer launch it at once
    _open[_key(tuner)] = (*new_tuning(fn, rows, finished=len(rows) == 1), list(configs), {})


@guarded
def _candidate_timed(tuner, config, times):
    found = _open.get(_key(tuner))
    if found is None:
        return
    name, document, configs, measured = found
    for row, other in zip(document["candidates"], configs):
        if other is config:
            values = list(times) if isinstance(times, (list, tuple)) else [times]
            row["times_ms"] = _finite(values)
            row["descriptors"] = _block_shapes(tuner.nargs)
            measured[id(config)] = values
    if len(measured) == len(configs):
        # As Triton chooses; it says so only after the first launch of what it chose.
        best = min(configs, key=lambda config: measured[id(config)])
        document["finished"] = True
        for row, config in zip(document["candidates"], configs):
            row["chosen"] = config is best
    write(name, document)


def _finite(values):
    return [float(t) if float(t) < float("inf") else None for t in values]


def _block_shapes(arguments):
    """Of descriptors that the host made, by the argument's name: a configuration's hook may set them."""
    found = {}
    for name, value in (arguments or {}).items():
        if hasattr(value, "block_shape") and hasattr(value, "strides"):
            found[name] = [int(n) for n in value.block_shape]
    return found


@guarded
def _chosen_by_file(tuner):
    """Triton read the choice from a file of its cache, with the times that an earlier run had."""
    found = _open.get(_key(tuner))
    if found is None:
        return
    name, document, configs, _ = found
    timings = tuner.configs_timings
    best = str(min(timings, key=timings.get))  # as Triton chooses
    kept = {str(config): values for config, values in timings.items()}
    for row, config in zip(document["candidates"], configs):
        values = kept.get(str(config))
        if values is not None:
            row["times_ms"] = _finite(values if isinstance(values, (list, tuple)) else [values])
        row["chosen"] = str(config) == best
    document.update(cached=True, finished=True)
    write(name, document)


@guarded
def _tuning_ends(tuner):
    found = _open.pop(_key(tuner), None)
    if found is None:
        return
    name, document, configs, _ = found
    best = getattr(tuner, "best_config", None)
    for row, config in zip(document["candidates"], configs):
        row["chosen"] = config is best or (best is not None and str(config) == str(best))
    document["finished"] = best is not None
    write(name, document)


def patch_autotuner(module):
    """Candidates are written down before they are timed, times as they come, and the choice at the end."""
    prune, bench, run = module.Autotuner.prune_configs, module.Autotuner._bench, module.Autotuner.run

    @functools.wraps(prune)
    def prune_configs(self, keywords, *arguments, **more):
        configs = prune(self, keywords, *arguments, **more)
        _tuning_begins(self, configs, keywords)
        return configs

    @functools.wraps(bench)
    def _bench(self, *arguments, config, **meta):
        with timing_launches():
            times = bench(self, *arguments, config=config, **meta)
        _candidate_timed(self, config, times)
        return times

    @functools.wraps(run)
    def wrapped(self, *arguments, **keywords):
        try:
            return run(self, *arguments, **keywords)
        finally:
            if _open:
                _tuning_ends(self)

    of_file = getattr(module.Autotuner, "check_disk_cache", None)  # Triton 3.4 and newer
    if of_file is not None:

        @functools.wraps(of_file)
        def check_disk_cache(self, *arguments, **keywords):
            had = of_file(self, *arguments, **keywords)
            if had:
                _chosen_by_file(self)
            return had

        module.Autotuner.check_disk_cache = check_disk_cache
    module.Autotuner.prune_configs = prune_configs
    module.Autotuner._bench = _bench
    module.Autotuner.run = wrapped


PATCHES = {
    "triton.compiler.compiler": patch_compiler,
    "triton.runtime.autotuner": patch_autotuner,
}
