"""Sources, options and compiled kernels."""

import os
from collections import namedtuple
from dataclasses import dataclass, fields

from triton.backends.compiler import GPUTarget


@dataclass(frozen=True)
class Options:
    num_warps: int = 4
    num_stages: int = 3
    num_ctas: int = 1
    arch: str = "sm90"


class Backend:
    def parse_options(self, options):
        names = {field.name for field in fields(Options)}
        return Options(**{name: value for name, value in options.items() if name in names})


def make_backend(target):
    return Backend()


class ASTSource:
    def __init__(self, fn, signature, constexprs=None, attrs=None):
        self.fn, self.signature, self.attrs, self.constants = fn, signature, attrs or {}, {}
        for key, value in (constexprs or {}).items():
            self.constants[(fn.arg_names.index(key),) if isinstance(key, str) else key] = value


class CompiledKernel:
    def __init__(self, src, metadata_group, hash):
        self.src, self.metadata, self.hash = src, metadata_group["metadata"], hash
        self.kernel = metadata_group["cubin"]


def compile(src, target=None, options=None):
    target = target or GPUTarget("cuda", 90, 32)
    values = vars(Backend().parse_options(options or {}))
    values = {**values, "target": target, "name": src.fn.__name__, "shared": 64 * values["num_stages"]}
    variant = src.constants.get((src.fn.arg_names.index("VARIANT"),), 0)
    with open(os.environ["TRITON_STANDIN_CODE"].format(variant), "rb") as file:
        code = file.read()
    metadata = namedtuple("KernelMetadata", sorted(values))(**values)
    return CompiledKernel(src, {"metadata": metadata, "cubin": code}, "hash")
