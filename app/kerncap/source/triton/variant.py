"""The text of `kernel_variant.py` and `deps/*.py`: what a kernel is made of of the program's modules, and
the configuration that ran.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kerncap.core.build.triton_pinned import TUNED_OPTIONS
from kerncap.core.errors import KerncapError
from kerncap.core.triton.triton_record import TritonRecord, copy_modules

_TL = "triton.language"


class NoVariantError(KerncapError):
    """Why the kernel's parts do not make a file."""


@dataclass(frozen=True)
class VariantFiles:
    """The copies by their path in the reproducer, and which original each stands for."""

    texts: dict[str, str]
    originals: dict[Path, str]
    line: int  # of the kernel's def, in kernel_variant.py


def write_variant(record: TritonRecord, grid: tuple[int, int, int]) -> VariantFiles:
    """The files of a kernel that was launched with `grid` programs. Raises NoVariantError."""
    copies = copy_modules(record)
    order = _order(record.modules, record.module)
    texts = {}
    for name in order:
        texts[copies[name]] = _module(record, name, copies, grid if name == record.module else None)
    for copy, text in texts.items():
        try:
            ast.parse(text)
        except SyntaxError as error:
            raise NoVariantError(
                f"the parts of the kernel's modules do not make a Python file: {copy}: {error}"
            ) from error
    originals = {}
    for name in order:
        file = record.modules[name]["file"]
        originals[Path(file if os.path.isabs(file) else f"/{name}.py")] = copies[name]
    lines = texts[copies[record.module]].splitlines()
    line = next((i for i, t in enumerate(lines, 1) if t.startswith(f"def {record.function}(")), 0)
    return VariantFiles(texts, originals, line)


def _order(modules: Mapping[str, Any], first: str) -> list[str]:
    """The modules, each after those that it imports from."""
    done: list[str] = []
    open_: list[str] = []

    def visit(name: str) -> None:
        if name in done:
            return
        if name in open_:
            circle = " and ".join(dict.fromkeys([*open_[open_.index(name) :], name]))
            raise NoVariantError(
                f"{circle} use each other's functions: they cannot be kept as files of their own"
            )
        open_.append(name)
        for kind, module, _ in modules[name]["imports"].values():
            if kind == "own":
                visit(module)
        open_.pop()
        done.append(name)

    visit(first)
    return done


def _import_lines(module: Mapping[str, Any], copies: Mapping[str, str]) -> list[str]:
    lines = ["import triton", "import triton.language as tl"]
    for name, (kind, source, what) in sorted(module["imports"].items()):
        if (kind, source, name) in (("import", "triton", "triton"), ("import", _TL, "tl")):
            continue
        if kind == "import":
            lines.append(f"import {source}" if source == name else f"import {source} as {name}")
            continue
        if kind == "own":
            stem = Path(copies[source]).stem
            source, what = ("deps", stem) if not what else (f"deps.{stem}", what)
        lines.append(f"from {source} import {what}" + ("" if what == name else f" as {name}"))
    return list(dict.fromkeys(lines))


def _module(
    record: TritonRecord, name: str, copies: Mapping[str, str], grid: tuple[int, int, int] | None
) -> str:
    module = record.modules[name]
    if module["imports"].get("tl", ["import", _TL, ""]) != ["import", _TL, ""] or "tl" in module["constants"]:
        raise NoVariantError(f"{name} means something else than triton.language by tl")
    kernel = grid is not None
    parts = [_header(record, name)]
    lines = ["from __future__ import annotations"] if module["future"] else []
    lines += _import_lines(module, copies)
    texts = [text for text, _ in module["constants"].values()]
    if kernel:
        texts += [*record.constexprs.values(), *record.options.values()]
    if any("torch." in text for text in texts):
        lines.append("import torch")
    parts.append("\n".join(dict.fromkeys(lines)))
    if grid is not None:
        parts.append(_pinned(record, grid))
    if module["constants"]:
        parts.append(
            "\n".join(
                f"{constant}: tl.constexpr = {text}" if annotated else f"{constant} = {text}"
                for constant, (text, annotated) in module["constants"].items()
            )
        )
    functions = sorted(
        module["functions"].items(), key=lambda pair: (pair[0] == record.function and kernel, pair[1]["line"])
    )
    parts += [f"@{function['decorator']}\n{function['source'].rstrip()}" for _, function in functions]
    return "\n\n\n".join(part for part in parts if part) + "\n"


def _header(record: TritonRecord, name: str) -> str:
    if name == record.module:
        text = (
            f"The Triton kernel {record.kernel}, and the configuration that it ran with: pinned() below. "
            "`make recompile` compiles it with exactly that."
        )
    else:
        text = f"What {record.kernel} uses of the module {name}."
    missing = [f"{key} was {why}" for key, why in record.unresolved.items() if key.startswith(f"{name}.")]
    more = "".join(f"\nNot kept: {_plain(line)}." for line in missing)
    return f'"""{_wrapped(text)}{more}\n"""' if more or len(text) > 100 else f'"""{text}"""'


def _plain(text: str) -> str:
    return text.replace("\\", "/").replace('"""', "'''")


def _wrapped(text: str, width: int = 105) -> str:
    lines, line = [], ""
    for word in text.split():
        if len(line) + len(word) >= width:
            lines.append(line)
            line = ""
        line = f"{line} {word}".strip()
    return "\n".join([*lines, line])


def _dictionary(pairs: Iterable[tuple[str, str]], indent: str) -> str:
    rows = [f"{indent}    {key!r}: {text}," for key, text in pairs]
    return "{\n" + "\n".join(rows) + f"\n{indent}}}" if rows else "{}"


def _pinned(record: TritonRecord, grid: tuple[int, int, int]) -> str:
    options = _kept_options(record)
    first = [(name, options[name]) for name in TUNED_OPTIONS if name in options]
    others = [(name, text) for name, text in options.items() if name not in TUNED_OPTIONS]
    tunable = set(record.declared)
    declared = [(k, v) for k, v in record.constexprs.items() if k in tunable]
    specialised = [(k, v) for k, v in record.constexprs.items() if k not in tunable]
    lines = [
        "def pinned():",
        '    """What ran. Change it here; `make validate` then says how far the result moves."""',
        "    return {",
        f'        "grid": {grid!r},  # programs, not threads',
        f'        "constexprs": {_dictionary(declared, " " * 8)},',
        *(f'        "{name}": {text},' for name, text in first),
        "        # What the arguments were (a value of 1 is compiled in), and the other options.",
        f'        "specialized": {_dictionary(specialised, " " * 8)},',
        f'        "signature": {_dictionary(record.signature.items(), " " * 8)},',
        f'        "attributes": {record.attributes.get("paths", "{}")},',
        f'        "options": {_dictionary(others, " " * 8)},',
        "    }",
    ]
    return "\n".join(lines)


def _kept_options(record: TritonRecord) -> dict[str, str]:
    """Without the libraries that Triton brings and adds by itself: elsewhere they have another place."""
    options = dict(record.options)
    try:
        libraries = ast.literal_eval(options.get("extern_libs", "None"))
    except (ValueError, SyntaxError):
        return options
    kept = tuple(
        (name, path) for name, path in libraries or () if not str(path).startswith(str(record.triton_root))
    )
    if kept:
        options["extern_libs"] = repr(kept)
    else:
        options.pop("extern_libs", None)
    return options
