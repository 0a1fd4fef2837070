"""TMA descriptors that a program makes and hands to a kernel (`TensorDescriptor`; `nvTmaDesc` before Triton
3.4): what a launch has of them, and whether the captured one holds under another configuration.

A descriptor has a block shape, which most programs take from the configuration. In a map, as NVIDIA GPUs from
Hopper on have it, that is a part of the captured argument. Elsewhere the kernel is given the parts, without
the block shape: it is a matter of the signature, and so of the compile.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from kerncap.core.triton.triton_record import Candidate, TritonRecord
from kerncap.core.units import by

_KIND = re.compile(r"tensordesc(?P<im2col>_im2col)?<(?P<dtype>[^\[>]*)\[(?P<shape>[^\]]*)\]")
_RANK = re.compile(r",input_rank=(\d+)")
_MAP = "nvTmaDesc"


def descriptors(record: TritonRecord) -> dict[str, str]:
    """By the argument's name: the kind of each that is one, or has one in it, in Triton's words."""
    kinds = {name: _kind(text) for name, text in record.row.get("signature", {}).items()}
    return {name: kind for name, kind in kinds.items() if "tensordesc" in kind or kind == _MAP}


def held_as_maps(record: TritonRecord) -> dict[str, str]:
    """Those of `descriptors` whose block shape is a part of the captured launch."""
    found = descriptors(record)
    if record.row.get("tensor_maps", True):  # unknown of records of before that was written down
        return found
    return {name: kind for name, kind in found.items() if kind == _MAP}


def signature_under(record: TritonRecord, candidate: Candidate) -> tuple[dict[str, str], str | None]:
    """What of the signature is another under a candidate, as expressions; else why the captured launch does
    not hold under it.
    """
    kinds = descriptors(record)
    if not kinds:
        return {}, None
    shapes = {name: candidate.descriptors.get(name) for name in kinds}
    known = all(shape is not None and _shape(kinds[name]) is not None for name, shape in shapes.items())
    if known:
        other = {name: shape for name, shape in shapes.items() if shape and shape != _shape(kinds[name])}
        if not other:
            return {}, None
        if not held_as_maps(record):
            return {name: repr(_with_shape(kinds[name], shape)) for name, shape in other.items()}, None
        return {}, _refusal(kinds, other)
    # A program makes them of the configuration, if of anything: with equal constexprs they are the same.
    equal = all(record.constexprs.get(name) == value for name, value in candidate.constexprs.items())
    return {}, None if equal else _refusal(kinds, {})


def _refusal(kinds: dict[str, str], other: dict[str, tuple[int, ...]]) -> str:
    told = []
    for name, kind in kinds.items():
        shape = _shape(kind)
        words = f"{name}, made for blocks of {by(shape)}" if shape else name
        told.append(words + (f" (here {by(other[name])})" if name in other else ""))
    noun = "a TMA descriptor" if len(told) == 1 else "TMA descriptors"
    more = "" if other else "; which it would make here is not known"
    return (
        f"the program hands the kernel {noun} whose block shape belongs to the captured launch: "
        f"{'; '.join(told)}{more}"
    )


def captured_note(record: TritonRecord) -> str | None:
    """What somebody who edits the kernel has to know; None where no descriptor keeps its block shape."""
    maps = held_as_maps(record)
    if not maps:
        return None
    told = []
    for name, kind in maps.items():
        shape = _shape(kind)
        told.append(f"{name} ({by(shape)})" if shape else name)
    return (
        f"{', '.join(told)}: made by the program as TMA descriptors, whose block shape is in the captured "
        "launch. An edit of the block sizes that they are made of does not reach them."
    )


def pointers(record: TritonRecord) -> list[str | None]:
    """Of each argument that the kernel takes at run time, in order: what it points to, in Triton's words
    ("fp16"), None for what is no pointer. Descriptors are the parts that they are passed in.
    """
    kinds: list[str] = []
    version = str(record.row.get("triton", ""))
    for text in record.row.get("signature", {}).values():
        _flatten(_value(text), kinds, version, bool(record.row.get("tensor_maps", True)))
    return [kind[1:] if kind.startswith("*") else None for kind in kinds]


def _flatten(value: Any, found: list[str], version: str, maps: bool) -> None:
    if isinstance(value, (tuple, list)):
        for part in value:
            _flatten(part, found, version, maps)
        return
    kind = str(value)
    match = _KIND.match(kind)
    if match is None:
        if kind != "constexpr":
            found.append(kind.replace("*k", "*"))
        return
    inner = _RANK.search(kind)
    rank = int(inner[1]) if inner else match["shape"].count(",") + 1
    if maps:
        found.append(_MAP)
    else:  # what the kernel is given, and what Triton's launcher adds to every descriptor
        found += ["*" + match["dtype"], *["i64"] * (2 * rank), *["i1"] * _flags(version)]
    found += [*["i32"] * rank, *["i64"] * rank]


def _flags(version: str) -> int:
    """How a descriptor is padded, from Triton 3.5 on; whether it rounds to TF32, from 3.7 on."""
    match = re.match(r"(\d+)\.(\d+)", version)
    number = (int(match[1]), int(match[2])) if match else (0, 0)
    return (number >= (3, 5)) + (number >= (3, 7))


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _kind(text: str) -> str:
    value = _value(text)
    return value if isinstance(value, str) else str(text)


def _shape(kind: str) -> tuple[int, ...] | None:
    match = _KIND.fullmatch(kind.removesuffix(">")) if not kind.startswith("(") else None
    if match is None:
        return None
    try:
        return tuple(int(n) for n in match["shape"].split(","))
    except ValueError:
        return None


def _with_shape(kind: str, shape: tuple[int, ...]) -> str:
    match = _KIND.match(kind)
    assert match is not None
    return f"{kind[: match.start('shape')]}{', '.join(map(str, shape))}{kind[match.end('shape') :]}"
