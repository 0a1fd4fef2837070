"""Compiles a reproducer's kernel_variant.py by the program's own Python and Triton:

    python compile_variant.py DIR OUTPUT [OVERRIDE]

OVERRIDE is JSON: {"constexprs": {name: expression}, "options": {...}, "signature": {...}, "grid": [x, y, z]},
laid over what pinned() returns. Writes the code object to OUTPUT and how it is launched to
OUTPUT.launch.json. The user's Triton cache is neither read nor written.
"""

import difflib
import hashlib
import json
import linecache
import math
import operator
import os
import shutil
import sys
import tempfile
import traceback
import types

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
_WANTED = ("grid", "constexprs", "specialized", "signature", "attributes", "options")
_TOP = ("num_warps", "num_stages", "waves_per_eu", "num_ctas", "maxnreg")


def _environment(record, cache):
    for name in list(os.environ):
        if name.startswith(_ENVIRONMENT):
            del os.environ[name]
    os.environ.update(record["environment"])
    os.environ["TRITON_CACHE_DIR"] = cache


def _paths(record, directory):
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != here]
    sys.path.insert(0, record["triton_root"])
    sys.path.insert(0, directory)
    sys.dont_write_bytecode = True


def _load(directory, record):
    """kernel_variant.py as the module that its kernel came from, so that names made of it stay."""
    path = os.path.join(directory, "kernel_variant.py")
    module = types.ModuleType(record["module"])
    module.__file__ = path
    sys.modules["kernel_variant"] = module
    with open(path, encoding="utf-8") as file:
        code = compile(file.read(), path, "exec")
    exec(code, module.__dict__)
    return module


def _is_jit(value):
    return hasattr(value, "fn") and hasattr(value, "src") and hasattr(value.fn, "__code__")


def _remember(file, line, raw):
    """For Triton 3.2, which asks `inspect` for a function's lines: what the original file has there."""
    lines = linecache.cache[file][2] if file in linecache.cache else []
    lines = lines + ["\n"] * (line - 1 + len(raw) - len(lines))
    lines[line - 1 : line - 1 + len(raw)] = raw
    linecache.cache[file] = (0, None, lines, file)  # no time: it is not looked up again


def _as_it_was(function, told, module):
    """A function that was not edited says where it was: debug information and derived names stay the same."""
    function.fn.__module__ = module
    function.fn.__qualname__ = told["qualname"]
    full = module + "." + told["qualname"]
    values = {"__module__": module, "module": module, "__qualname__": told["qualname"], "_fn_name": full}
    if getattr(function, "_fn_name", None) == function.fn.__name__:
        values.pop("_fn_name")  # Triton 3.2: the name alone
    if function.src == told["source"] and told.get("raw"):
        raw = told["raw"].splitlines(True)
        line = told["line"]
        at = next((i for i, text in enumerate(raw) if text.lstrip().startswith("def ")), 0)
        indent = len(raw[at]) - len(raw[at].lstrip())
        values.update(
            raw_src=raw,
            starting_line_number=line,
            file_name=told["file"],
            def_file_line_number=line + at,
            def_file_col_number=getattr(function, "def_file_col_number", 0)
            + indent,  # here it is not indented
        )
        function.fn.__code__ = function.fn.__code__.replace(co_filename=told["file"], co_firstlineno=line)
        _remember(told["file"], line, raw)
    for name, value in values.items():
        if hasattr(function, name):
            setattr(function, name, value)


def _restore(record, module):
    for name, told in record["modules"].items():
        place = module
        if name != record["module"]:
            place = sys.modules.get("deps." + name.replace(".", "__"))
        for function, row in told["functions"].items():
            found = getattr(place, function, None)
            if found is not None and _is_jit(found):
                _as_it_was(found, row, name)


def _attributes(record, pinned):
    descriptor = record["attributes"].get("descriptor")
    if descriptor is None:
        return pinned["attributes"]
    from triton.backends.compiler import AttrsDescriptor  # Triton 3.2

    return AttrsDescriptor.from_dict(eval(descriptor))


class Refused(Exception):
    """What pinned() returns is none; `name`: the entry of it."""

    def __init__(self, message, name=None):
        super().__init__(message)
        self.name = name


def _captured(record):
    """By group of pinned(): what was captured, as expressions."""
    options = record["options"]
    return {
        "": {name: text for name, text in options.items() if name in _TOP},
        "options": {name: text for name, text in options.items() if name not in _TOP},
        "constexprs": {k: text for k, text in record["constexprs"].items() if k in record["declared"]},
        "specialized": {k: text for k, text in record["constexprs"].items() if k not in record["declared"]},
        "signature": record["signature"],
    }


def _unknown(record, group, name, also):
    """Of a name that nothing takes: Triton itself would compile with its default, and say nothing."""
    captured = _captured(record)[group]
    known = [*captured, *(_WANTED if not group else ()), *also]
    near = [other for other in difflib.get_close_matches(str(name), known, 1) if other != name]
    told = {near[0]: captured[near[0]]} if near and near[0] in captured else captured
    told = ", ".join(f"{key}={text}" for key, text in told.items()) or "nothing"
    what = f"{group!r} in pinned()" if group else "pinned()"
    guess = f"; did you mean {near[0]!r}?" if near else "."
    return Refused(f"{what} has {name!r}, which nothing takes{guess} Captured was {told}", name)


def _check_names(record, pinned, parameters, taken):
    """`taken`: the options of Triton's backend, as fields. Raises Refused."""
    options = [*taken, *record["options"]]
    for name in pinned:
        if name not in _WANTED and not (name in _TOP and name in options):
            if name in options:
                raise Refused(f"pinned() has {name!r}, which belongs into its 'options'", name)
            raise _unknown(record, "", name, ())
    missing = [name for name in _WANTED if name not in pinned]
    if missing:
        raise Refused("pinned() no longer has {}".format(", ".join(missing)))
    constexprs = [*parameters, *record["constexprs"]]
    for group, known, other in (
        ("options", options, pinned),
        ("constexprs", constexprs, pinned["specialized"]),
        ("specialized", constexprs, ()),
        ("signature", [*parameters, *record["signature"]], ()),
    ):
        if not isinstance(pinned[group], dict):
            raise Refused(f"{group!r} in pinned() is {pinned[group]!r}, no dictionary", group)
        for name in pinned[group]:
            if name not in known:
                raise _unknown(record, group, name, known)
            if name in other:
                raise Refused(f"pinned() has {name!r} twice: in {group!r}, and elsewhere", name)


def _check_values(record, pinned, parameters, laid_over):
    """What a parameter that is still there was captured with is not simply left out. Raises Refused."""
    for name, text in record["signature"].items():
        if name in parameters and name not in pinned["signature"]:
            raise Refused(
                f"'signature' in pinned() no longer has {name!r}; captured was {name}={text}", "signature"
            )
    given = {*pinned["constexprs"], *pinned["specialized"], *laid_over}
    for name, text in record["constexprs"].items():
        if (
            name in parameters
            and name not in given
            and pinned["signature"].get(name, "constexpr") == "constexpr"
        ):
            group = "constexprs" if name in record["declared"] else "specialized"
            raise Refused(f"{group!r} in pinned() no longer has {name!r}; captured was {name}={text}", group)


def _same(one, other):
    """Whether two values are one option: Triton makes tuples of lists and lists of tuples."""
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_same, one, other))
    return one == other or (one != one and other != other)


def left_out(record, given, kinds, used, names):
    """(name, captured expression, value in use) of the options that pinned() no longer has, where Triton's
    default is another than what was captured. `used`: the backend's options as they are compiled with.
    """
    found = []
    for name, text in record["options"].items():
        # Libraries that Triton brings are not in pinned(): elsewhere they have another place.
        if name in given or name == "extern_libs" or not (name in kinds and kinds[name].init):
            continue
        value = getattr(used, name, None)
        if not _same(value, eval(text, names)):
            found.append((name, text, value))
    return found


def _warn_of_defaults(directory, found):
    """As compilers say it; Triton itself says nothing."""
    for name, text, value in found:
        place = "{}:{}:{}".format(*_in_pinned(directory, "options" if name not in _TOP else None))
        print(
            f"{place}: warning: pinned() no longer has {name!r}; captured was {name}={text}, "
            f"and it is compiled with Triton's default, {name}={value!r}",
            file=sys.stderr,
        )


def _whole_grid(grid):
    """Three positive numbers. Raises Refused."""
    try:
        numbers = [operator.index(n) for n in grid]
    except TypeError:
        numbers = []
    if not 1 <= len(numbers) <= 3 or min(numbers) < 1 or max(numbers) >= 2**31:
        raise Refused(
            f"'grid' in pinned() is {grid!r}: it is one to three whole numbers of programs, each from 1 to "
            "2147483647",
            "grid",
        )
    return numbers + [1] * (3 - len(numbers))


def _check_descriptors(record, signature, constexprs, names):
    """TMA descriptors that come as maps are the captured launch's, with their block shape. Raises Refused."""
    kept = {}
    for name, text in record["signature"].items():
        kind = eval(text, names)
        if "nvTmaDesc" in text or ("tensordesc" in text and record.get("tensor_maps", True)):
            kept[name] = kind
        if name in kept and signature.get(name) != kind:
            raise Refused(
                f"{name!r} in pinned() is {signature.get(name)!r}, but the captured launch has a TMA "
                f"descriptor that was made for {kind!r}: its block shape cannot be changed here",
                name,
            )
    captured = {name: eval(text, names) for name, text in record["constexprs"].items()}
    if "nvTmaDesc" in kept.values() and constexprs != captured:
        print(
            "{}: made by the program for the captured constexprs; block sizes that are in these TMA "
            "descriptors have to stay".format(", ".join(kept)),
            file=sys.stderr,
        )


def _configuration(record, module, kernel, taken, override):
    pinned = module.pinned()
    if not isinstance(pinned, dict):
        raise Refused(f"pinned() returns {pinned!r}, no dictionary")
    _check_names(record, pinned, kernel.arg_names, taken)
    _check_values(record, pinned, kernel.arg_names, override.get("constexprs", {}))
    names = module.__dict__
    constexprs = dict(pinned["specialized"], **pinned["constexprs"])
    options = dict(pinned["options"], **{name: pinned[name] for name in _TOP if name in pinned})
    for name, text in override.get("constexprs", {}).items():
        constexprs[name] = eval(text, names)
    for name, text in override.get("options", {}).items():
        options[name] = eval(text, names)
    _check_descriptors(record, pinned["signature"], constexprs, names)
    changed = {name: eval(text, names) for name, text in override.get("signature", {}).items()}
    pinned = dict(pinned, signature=dict(pinned["signature"], **changed))
    for name, text in record["options"].items():
        if name in pinned["options"] and not (name in taken and taken[name].init):
            value = pinned["options"][name]
            if value != eval(text, names):
                raise Refused(f"{name!r} in pinned() is {value!r}, but Triton sets it itself: {text}", name)
    return pinned, constexprs, options, _whole_grid(override.get("grid") or pinned["grid"])


def build(directory, output, override):
    """Compiles; returns the document of how the result is launched."""
    with open(os.path.join(directory, "capture", "triton.json"), encoding="utf-8") as file:
        record = json.load(file)
    cache = tempfile.mkdtemp(prefix="triton-", dir=os.path.dirname(output))
    try:
        _environment(record, cache)
        _paths(record, directory)
        import triton
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource
        from triton.compiler.compiler import make_backend

        if triton.__version__ != record["triton"]:
            print(
                f"Triton {triton.__version__} compiles; the program's was {record['triton']}", file=sys.stderr
            )
        module = _load(directory, record)
        _restore(record, module)
        target = GPUTarget(*record["target"])
        kernel = getattr(module, record["function"])
        backend = make_backend(target)
        kinds = type(backend.parse_options({})).__dataclass_fields__
        pinned, constexprs, options, grid = _configuration(record, module, kernel, kinds, override)
        keys = {(eval(key) if key.startswith("(") else key): value for key, value in constexprs.items()}
        dropped = [name for name in options if name not in kinds]
        if dropped and triton.__version__ != record["triton"]:
            print("It takes no {}".format(", ".join(dropped)), file=sys.stderr)
        given = set(options)
        options = {name: value for name, value in options.items() if name in kinds and kinds[name].init}
        used = backend.parse_options(dict(options))
        _warn_of_defaults(directory, left_out(record, given, kinds, used, module.__dict__))
        source = ASTSource(kernel, pinned["signature"], keys, _attributes(record, pinned))
        made = triton.compile(source, target=target, options=options)
        binary = made.kernel
        document = {
            "schema": "kerncap-launch/1",
            "sha256": hashlib.sha256(binary).hexdigest(),
            "grid": grid,
            "threads": made.metadata.num_warps * made.metadata.target.warp_size,
            "shared": made.metadata.shared,
            "ctas": getattr(made.metadata, "num_ctas", 1) if target.backend == "cuda" else 1,
        }
        # As Triton's launcher allocates it: for every block.
        scratch = getattr(made.metadata, "global_scratch_size", 0) or 0
        document["scratch"] = scratch * document["ctas"] * math.prod(document["grid"])
        for path, data in (
            (output + ".launch.json", json.dumps(document, indent=2).encode() + b"\n"),
            (output, binary),
        ):
            partial = os.path.join(cache, "out")
            with open(partial, "wb") as file:
                file.write(data)
            os.replace(partial, path)
    finally:
        shutil.rmtree(cache, ignore_errors=True)


def _chain(error):
    """The errors that led to this one, the first cause first."""
    found = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found[::-1]


def _sources(directory):
    yield "kernel_variant.py"
    for folder, _, names in os.walk(os.path.join(directory, "deps")):
        yield from (os.path.relpath(os.path.join(folder, name), directory) for name in sorted(names))


def _in_source(directory, error):
    """(file, line, column) of an error that Triton has for a function's text; None where it is in no file."""
    src, node = getattr(error, "src", None), getattr(error, "node", None)
    if not isinstance(src, str) or not hasattr(node, "lineno"):
        return None
    for name in _sources(directory):
        with open(os.path.join(directory, name), encoding="utf-8") as file:
            at = file.read().partition(src.rstrip())
        if at[1]:
            return name, at[0].count("\n") + node.lineno, node.col_offset + 1
    return None


def _in_traceback(directory, error):
    """(file, line, column) of the innermost frame that is in the reproducer's files."""
    if isinstance(error, SyntaxError) and error.filename:
        return os.path.relpath(error.filename, directory), error.lineno or 0, error.offset or 1
    files = {os.path.join(directory, name): name for name in _sources(directory)}
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename in files:
            return files[frame.filename], frame.lineno, 1
    return None


def _in_pinned(directory, name):
    """(file, line, column) of an entry of pinned(), else of the function."""
    with open(os.path.join(directory, "kernel_variant.py"), encoding="utf-8") as file:
        lines = file.read().splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith("def pinned(")), 0)
    for number, line in enumerate(lines[start:], start + 1):
        for quoted in (f'"{name}"', f"'{name}'"):
            if quoted in line:
                return "kernel_variant.py", number, line.index(quoted) + 1
    return "kernel_variant.py", start + 1, 1


def _report(directory, error):
    """As compilers say it: FILE:LINE:COLUMN: error: what is wrong."""
    if isinstance(error, Refused):
        print("{}:{}:{}: error: {}".format(*_in_pinned(directory, error.name), error), file=sys.stderr)
        return
    if os.environ.get("KERNCAP_DEBUG"):
        traceback.print_exception(type(error), error, error.__traceback__)
    chain = _chain(error)
    place = next((found for e in chain for found in (_in_source(directory, e),) if found), None)
    place = place or next((found for e in chain for found in (_in_traceback(directory, e),) if found), None)
    first = chain[0]
    message = getattr(first, "error_message", None) or str(first) or "no message"
    text = f"error: {type(first).__name__}: {message}"
    print("{}:{}:{}: {}".format(*place, text) if place else text, file=sys.stderr)


def main(arguments):
    """The exit code."""
    directory, output = (os.path.abspath(path) for path in arguments[:2])
    try:
        build(directory, output, json.loads(arguments[2]) if len(arguments) > 2 else {})
    except Exception as error:
        _report(directory, error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
