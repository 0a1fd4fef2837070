"""Stands for Inductor's autotuner: what the hook uses of torch 2.7 to 2.13. Kernels come from a "worker": its
JIT function has lost the Python function, and its compiled kernels are not made here.
"""

import json
import os

from triton.runtime.driver import launch, load

TIMES = (3.0, 1.0, 2.0)


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


class CachingAutotuner:
    def __init__(self, fn, compile_results):
        self.fn, self.compile_results, self.launchers = fn, compile_results, []

    def precompile(self, reload_kernel=None):
        if reload_kernel is not None:
            self._reload_kernel = reload_kernel
        self.launchers = [result.make_launcher() for result in self.compile_results]

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

    def run(self, *arguments):
        if len(self.launchers) > 1:
            self.autotune_to_one_config(*arguments)
            self.launchers = [self.coordinate_descent_tuning(self.launchers[0], *arguments)]
        (launcher,) = self.launchers
        launcher(*arguments, grid=self._interpret_args_grid(arguments, launcher.config)[1])
