"""Triton's driver interface on HIP's module API, by ctypes: enough for programs without torch.

`install()` makes it the active driver; tensors are `Tensor`s of numpy arrays in device memory.
"""

from __future__ import annotations

import ctypes
import itertools

import numpy as np

_DTYPES = {
    "float16": "fp16", "float32": "fp32", "int32": "i32", "int64": "i64", "int8": "i8", "uint8": "u8",
    "uint64": "u64",
}  # fmt: skip


class Hip:
    """libamdhip64, whose calls raise where they fail."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libamdhip64.so.6")

    def __getattr__(self, name: str):
        function = getattr(self.library, name)

        def call(*arguments):
            code = function(*arguments)
            if code != 0:
                raise RuntimeError(f"{name}: HIP error {code}")

        return call


hip = Hip()


class Tensor:
    """Device memory as Triton's launcher takes it: data_ptr() and dtype. `dtype` names a type that numpy has
    not (bfloat16, float8e4b8), whose bits `host` then has.
    """

    def __init__(self, host: np.ndarray, dtype: str | None = None) -> None:
        self.host = np.ascontiguousarray(host)
        self.dtype = dtype or str(host.dtype)
        self.shape = host.shape
        pointer = ctypes.c_void_p()
        hip.hipMalloc(ctypes.byref(pointer), ctypes.c_size_t(max(self.host.nbytes, 1)))
        self.pointer = pointer.value or 0
        hip.hipMemcpy(
            pointer, self.host.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(self.host.nbytes), 1
        )

    def data_ptr(self) -> int:
        return self.pointer

    def numpy(self) -> np.ndarray:
        """The device's content."""
        hip.hipDeviceSynchronize()
        out = np.empty_like(self.host)
        hip.hipMemcpy(
            out.ctypes.data_as(ctypes.c_void_p), ctypes.c_void_p(self.pointer), ctypes.c_size_t(out.nbytes), 2
        )
        return out


def load(binary: bytes, name: str) -> ctypes.c_void_p:
    """The function `name` of a code object."""
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    hip.hipModuleLoadData(ctypes.byref(module), ctypes.c_char_p(binary))
    hip.hipModuleGetFunction(ctypes.byref(function), module, ctypes.c_char_p(name.encode()))
    return function


_SCALARS = {
    "i1": ctypes.c_int8, "i8": ctypes.c_int8, "i16": ctypes.c_int16, "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "u8": ctypes.c_uint8, "u16": ctypes.c_uint16, "u32": ctypes.c_uint32, "u64": ctypes.c_uint64,
    "fp32": ctypes.c_float, "fp64": ctypes.c_double,
}  # fmt: skip


def _parts(value) -> list:
    """A descriptor as Triton's launcher passes it where the GPU has no maps."""
    import triton

    version = tuple(int(n) for n in triton.__version__.split(".")[:2])
    sizes = [("i64", n) for n in (*value.shape, *value.strides)]
    flags = [("i1", 0)] * ((version >= (3, 5)) + (version >= (3, 7)))
    again = [*(("i32", n) for n in value.shape), *(("i64", n) for n in value.strides)]
    return [("*", value.base), *sizes, *flags, *again]


def launch(function, grid, num_warps: int, shared: int, signature, arguments, scratch: int = 2) -> None:
    """Launches with the arguments that `signature` has (constexprs are none), and `scratch` null pointers
    after them, which Triton's kernels take.
    """
    cells = []
    for kind, value in zip(signature, arguments, strict=True):
        if kind == "constexpr":
            continue
        if kind.startswith("*"):
            cells.append(ctypes.c_void_p(value.data_ptr() if hasattr(value, "data_ptr") else value))
        else:
            cells.append(_SCALARS[kind](value))
    cells += [ctypes.c_void_p(0)] * scratch
    pointers = (ctypes.c_void_p * len(cells))(*(ctypes.cast(ctypes.byref(c), ctypes.c_void_p) for c in cells))
    numbers = [*grid, *[1] * (3 - len(grid)), 64 * num_warps, 1, 1]
    hip.hipModuleLaunchKernel(
        function, *map(ctypes.c_uint, numbers), ctypes.c_uint(shared), None, pointers, None
    )
    hip.hipDeviceSynchronize()


def install(arch: str = "gfx942"):
    """Makes the driver active, and returns it. Triton is imported here, not before."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.backends.driver import DriverBase
    from triton.runtime import driver

    class Launcher:
        def __init__(self, src, metadata):
            self.signature = list(src.signature.values())
            self.metadata = metadata

        def __call__(self, x, y, z, stream, function, packed, launch_metadata, enter, leave, *arguments):
            signature, values = [], []
            for kind, value in zip(self.signature, arguments, strict=True):
                parts = _parts(value) if kind.startswith("tensordesc") else [(kind, value)]
                signature += [kind for kind, _ in parts]
                values += [value for _, value in parts]
            launch(function, (x, y, z), self.metadata.num_warps, self.metadata.shared, signature, values)

    class Utils:
        @staticmethod
        def load_binary(name, binary, shared, device, *more):
            function = load(binary, name)
            old = tuple(int(n) for n in triton.__version__.split(".")[:2]) < (3, 4)
            return (function, function, 0, 0) if old else (function, function, 0, 0, 1024)

        @staticmethod
        def unload_module(module):
            pass

        @staticmethod
        def get_device_properties(device):
            return {"max_shared_mem": 65536, "multiprocessor_count": 304, "warpSize": 64}

    class Driver(DriverBase):
        launcher_cls = Launcher
        utils = Utils()

        @classmethod
        def is_active(cls):
            return True

        def map_python_to_cpp_type(self, ty):
            return ty

        def get_current_device(self):
            return 0

        def get_current_stream(self, device):
            return 0

        def set_current_device(self, device):
            pass

        def get_current_target(self):
            return GPUTarget("hip", arch, 64)

        def get_active_torch_device(self):
            return None

        def get_device_interface(self):
            return None

        def get_benchmarker(self):
            times = itertools.cycle((3.0, 1.0, 2.0))  # the same choice in every run: the second candidate

            def bench(call, quantiles=None, **_):
                call()
                return [next(times)] * len(quantiles or (0.5,))

            return bench

    active = Driver()
    driver.set_active(active)
    return active
