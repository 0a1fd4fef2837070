"""CUDA's driver API, as far as a launch needs it."""

import ctypes

cuda = ctypes.CDLL("libcuda.so.1")


def check(code):
    if code:
        raise RuntimeError(f"CUDA error {code}")


def start():
    context = ctypes.c_void_p()
    check(cuda.cuInit(0))
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    check(cuda.cuCtxSetCurrent(context))


def floats(values):
    """Device memory with these numbers."""
    data, pointer = (ctypes.c_float * len(values))(*values), ctypes.c_uint64()
    check(cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(ctypes.sizeof(data))))
    check(cuda.cuMemcpyHtoD_v2(pointer, data, ctypes.c_size_t(ctypes.sizeof(data))))
    return pointer


def load(code, name):
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    check(cuda.cuModuleLoadData(ctypes.byref(module), ctypes.c_char_p(code)))
    check(cuda.cuModuleGetFunction(ctypes.byref(function), module, name.encode()))
    return function


def launch(function, grid, threads, arguments):
    pointers = (ctypes.c_void_p * len(arguments))(
        *(ctypes.cast(ctypes.byref(a), ctypes.c_void_p) for a in arguments)
    )
    sizes = [ctypes.c_uint(n) for n in (*grid, threads, 1, 1, 0)]
    check(cuda.cuLaunchKernel(function, *sizes, None, pointers, None))
    check(cuda.cuCtxSynchronize())
