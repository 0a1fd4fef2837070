"""Stands for Inductor's autotuner: what the hook uses of torch 2.7 to 2.14. Kernels come from a "worker": its
JIT function has lost the Python function, and its compiled kernels are not made here.

TORCH_STANDIN is the version whose shape it has: 2.7 asks its cache in cached_autotune and knows nothing of it
later; from 2.8 on a function does, the autotuner keeps what that told, and asks again where it was itself in
a cache; 2.9 has a table besides; 2.12 tunes combined kernels after the choice.
"""

import json
import os

import triton
from triton.compiler.compiler import ASTSource
from triton.runtime.driver import launch, load

TIMES = (3.0, 1.0, 2.0)
VERSION = tuple(int(n) for n in os.environ.get("TORCH_STANDIN", "2.14").split("."))
CACHE = []  # numbers of configurations: what the file of the best one has
TABLE = []
COMBINED = []
META = {
    "signature": {"y": "*fp32", "x": "*fp32", "a": "fp32", "n": "i32", "VARIANT": "constexpr"},
    "configs": [{}],
}


class CompileResult:
    def __init__(self, kernel, config, compile_meta):
        self.kernel, self.config, self.compile_meta = kernel, config, compile_meta

    def make_launcher(self): ...

    def launcher_of(self, function, metadata):
        def launcher(*arguments, grid):
            launch(function, grid, metadata, arguments)

        launcher.config = self.config
        return launcher


class TritonCompileResult(CompileResult):
    def make_launcher(self):
        return self.launcher_of(load(self.kernel.kernel, self.kernel.metadata.name), self.kernel.metadata)


class StaticKernel:
    """A code object's file; the metadata is beside it. What was loaded is let go of."""

    def __init__(self, made, folder):
        self.name, self.cubin_raw, self.cubin_path, self.folder = (
            made.metadata.name,
            made.kernel,
            None,
            folder,
        )
        self.metadata = made.metadata
        values = made.metadata._asdict()
        path = os.path.join(folder, self.name)
        with open(path + ".cubin", "wb") as file:
            file.write(made.kernel)
        with open(path + ".json", "w") as file:
            json.dump({**values, "target": vars(values["target"])}, file)

    def load_kernel(self):
        with open(self.cubin_path, "rb") as file:
            function = load(file.read(), self.name)
        self.cubin_path = self.cubin_raw = None
        return function


class StaticTritonCompileResult(CompileResult):
    def reload_cubin_path(self):
        self.kernel.cubin_path = os.path.join(self.kernel.folder, self.kernel.name + ".cubin")

    def make_launcher(self):
        if not self.kernel.cubin_path:
            self.reload_cubin_path()
        return self.launcher_of(self.kernel.load_kernel(), self.kernel.metadata)


class AutotuneCache:
    def read_best(self, inductor_meta, configs):
        return configs[CACHE[0]] if CACHE else None


def _check(configs):
    best = AutotuneCache().read_best({}, configs)
    info = {"autotune_cache_state": "miss" if best is None else "hit"}
    return (configs if best is None else [best]), info


class CachingAutotuner:
    def __init__(self, fn, compile_results=(), configs=None, size_hints=None, info=None):
        self.fn, self.compile_results, self.launchers = fn, list(compile_results), []
        table = VERSION >= (2, 9) and lookup_autotune_config(size_hints, fn)
        self.configs, self.size_hints = [table] if table else configs, size_hints
        if VERSION >= (2, 8):
            self.autotune_cache_info = info

    def recheck_autotune_cache(self, reload_kernel_from_src):
        (best, *more), self.autotune_cache_info = _check([r.config for r in self.compile_results])
        if not more:
            self.compile_results = [r for r in self.compile_results if r.config is best]

    def precompile(self, warm_cache_only=False, reload_kernel=None, static_triton_bundle_key=None):
        if reload_kernel is not None:
            self._reload_kernel = reload_kernel
        if not self.compile_results:
            self.compile_results = [self._precompile_config(config) for config in self.configs]
            self.configs = None
        if not warm_cache_only:
            self.launchers = [result.make_launcher() for result in self.compile_results]

    def _precompile_config(self, config):
        meta = {**META, "constants": config.kwargs}
        source = ASTSource(self.fn, META["signature"], config.kwargs, {})
        return TritonCompileResult(
            triton.compile(source, None, {"num_warps": config.num_warps}), config, meta
        )

    def _interpret_args_grid(self, arguments, config):
        return arguments, (8 // config.num_warps, 1, 1)

    def bench(self, launcher, *arguments):
        launcher(*arguments, grid=self._interpret_args_grid(arguments, launcher.config)[1])
        return TIMES[self.launchers.index(launcher)]

    def benchmark_all_configs(self, *arguments):
        return {launcher: self.bench(launcher, *arguments) for launcher in self.launchers}

    def autotune_to_one_config(self, *arguments):
        timings = self.benchmark_all_configs(*arguments)
        self.launchers = [min(timings, key=timings.get)]

    def coordinate_descent_tuning(self, launcher, *arguments):
        return launcher

    def _combo_sequential_autotune(self, launcher, *arguments):
        made = self._precompile_config(triton.Config({"VARIANT": COMBINED[0]}, num_warps=4)).make_launcher()
        return made

    def run(self, *args, **kwargs):
        if not self.launchers:
            self.precompile()
        if len(self.launchers) > 1:
            self.autotune_to_one_config(*args)
            self.launchers = [self.coordinate_descent_tuning(self.launchers[0], *args)]
        if COMBINED and VERSION >= (2, 12):
            self.launchers = [self._combo_sequential_autotune(self.launchers[0], *args)]
            COMBINED.clear()
        (launcher,) = self.launchers
        launcher(*args, grid=self._interpret_args_grid(args, launcher.config)[1])


def _cached_autotune_of_2_7(size_hints, configs, filename=None):
    if best_config := AutotuneCache().read_best({}, configs):
        configs = [best_config]
    return lambda fn: CachingAutotuner(fn, configs=configs, size_hints=size_hints)


def cached_autotune(size_hints, configs, filename=None):
    configs, info = _check(configs)
    return lambda fn: CachingAutotuner(fn, configs=configs, size_hints=size_hints, info=info)


def lookup_autotune_config(size_hints, fn):
    return CONFIGS[TABLE[0]] if TABLE else None


CONFIGS = [triton.Config({"VARIANT": v}, num_warps=w) for v, w in ((0, 4), (1, 8), (2, 4))]


def pointwise(filename):
    return cached_autotune({"x": 1024}, configs=CONFIGS, filename=filename)


if VERSION < (2, 8):
    cached_autotune = _cached_autotune_of_2_7
    del CachingAutotuner.recheck_autotune_cache
if VERSION < (2, 9):
    del lookup_autotune_config
if VERSION < (2, 12):
    del CachingAutotuner._combo_sequential_autotune
