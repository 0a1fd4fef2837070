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


class Attribute(ctypes.Structure):
    """CUlaunchAttribute: CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, with three numbers in 64 bytes."""

    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("values", ctypes.c_uint * 16)]


class Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = [
        ("sizes", ctypes.c_uint * 7),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(Attribute)),
        ("count", ctypes.c_uint),
    ]


def launch(function, grid, metadata, arguments):
    """As Triton's launcher does it: `num_ctas` blocks, a cluster, are one program."""
    pointers = (ctypes.c_void_p * len(arguments))(
        *(ctypes.cast(ctypes.byref(a), ctypes.c_void_p) for a in arguments)
    )
    ctas = metadata.num_ctas
    cluster = Attribute(4, 0, (ctas, 1, 1))
    sizes = (grid[0] * ctas, *grid[1:], 32 * metadata.num_warps, 1, 1, metadata.shared)
    config = Config(sizes, None, ctypes.pointer(cluster), int(ctas > 1))
    check(cuda.cuLaunchKernelEx(ctypes.byref(config), function, pointers, None))
    check(cuda.cuCtxSynchronize())
