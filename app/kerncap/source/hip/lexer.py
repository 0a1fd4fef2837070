"""Kernel definitions in C++ source, found by its tokens.

Not a parser: comments, strings and preprocessor lines are taken away, and `__global__` (or a macro that
stands for it) is followed to the name before the parameter list. Attributes, __launch_bounds__, templates,
return types and the scope of the name may stand between. Which unit really makes a kernel is the compiler's
to say (kerncap.source.hip.find).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
    (?P<comment>//(?:[^\n\\]|\\.|\\\n)*|/\*.*?(?:\*/|\Z))
  | (?P<raw>(?:u8|[uUL])?R"(?P<delim>[^()\\\s]{0,16})\(.*?(?:\)(?P=delim)"|\Z))
  | (?P<string>(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*(?:"|(?=\n)|\Z))
  | (?P<number>\.?\d(?:[eEpP][+-]|'(?=\w)|[\w.])*)
  | (?P<char>(?:u8|[uUL])?'(?:[^'\\\n]|\\.)*(?:'|(?=\n)|\Z))
  | (?P<word>[A-Za-z_]\w*)
  | (?P<hash>^[ \t]*\#)
  | (?P<space>[ \t\r\f\v]+|\\\n)
  | (?P<newline>\n)
  | (?P<op>::|.)
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_GLOBAL_ATTRIBUTE = "global"


@dataclass(frozen=True)
class Token:
    """A word or an operator, and its line (from 1)."""

    text: str
    line: int
    is_word: bool


@dataclass(frozen=True)
class Macro:
    """A #define: its parameters (None for an object-like one), its body's tokens, and its line."""

    name: str
    parameters: tuple[str, ...] | None
    body: tuple[Token, ...]
    line: int


@dataclass(frozen=True)
class KernelSite:
    """A place that defines or declares a kernel. `exact` is false where a macro pastes the name together."""

    name: str
    line: int
    is_definition: bool
    exact: bool = True


@dataclass(frozen=True)
class Scan:
    """What one file says: its kernels, includes (as written), and macros. `words` are all names in it."""

    kernels: tuple[KernelSite, ...]
    includes: tuple[str, ...]
    macros: dict[str, Macro]
    words: frozenset[str]


def tokens(text: str) -> Iterator[tuple[str, str, int]]:
    """(kind, text, line) of every token but blanks, comments and strings."""
    line = 1
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "op"
        if kind == "delim":
            kind = "raw"
        piece = match[0]
        if kind not in ("space", "comment"):
            yield kind, piece, line
        line += piece.count("\n")


def scan(text: str, markers: Sequence[str] = ()) -> Scan:
    """The kernels, includes and macros of a source text; `markers` are macros of other files that mean
    `__global__`.
    """
    code: list[Token] = []
    includes: list[str] = []
    macros: dict[str, Macro] = {}
    words: set[str] = set()
    stream = tokens(text)
    for kind, piece, line in stream:
        if kind == "hash":
            _directive(stream, line, includes, macros, words)
        elif kind == "word":
            words.add(piece)
            code.append(Token(piece, line, True))
        elif kind in ("op", "number"):
            code.append(Token(piece, line, False))
        elif kind in ("string", "char", "raw"):
            code.append(Token('""', line, False))
    means_global = {"__global__", *markers} | {
        m.name for m in macros.values() if m.parameters is None and _marks(m.body, markers)
    }
    sites = list(_sites(code, means_global))
    sites += _macro_sites(code, macros, means_global)
    return Scan(tuple(sites), tuple(includes), macros, frozenset(words))


def _directive(
    stream: Iterator[tuple[str, str, int]],
    line: int,
    includes: list[str],
    macros: dict[str, Macro],
    words: set[str],
) -> None:
    """One preprocessor line, continuations included."""
    row: list[tuple[str, str, int]] = []
    for token in stream:
        if token[0] == "newline":
            break
        row.append(token)
    if not row:
        return
    name = row[0][1]
    words.update(piece for kind, piece, _ in row if kind == "word")
    if name in ("include", "include_next", "import") and len(row) > 1:
        if row[1][0] == "string":
            includes.append(row[1][1].strip('"'))
        elif row[1][1] == "<":
            includes.append("".join(piece for _, piece, _ in row[2:]).split(">")[0])
    elif name == "define" and len(row) > 1 and row[1][0] == "word":
        macro = row[1][1]
        rest = row[2:]
        parameters: tuple[str, ...] | None = None
        # A "(" right after the name makes it function-like; blanks are gone here, so an object-like macro
        # whose body starts with "(" is taken for one too. Neither is a kernel marker.
        if rest and rest[0][1] == "(":
            close = next((i for i, t in enumerate(rest) if t[1] == ")"), None)
            if close is not None and all(t[0] == "word" or t[1] in ",." for t in rest[1:close]):
                parameters = tuple(t[1] for t in rest[1:close] if t[0] == "word")
                rest = rest[close + 1 :]
        macros[macro] = Macro(macro, parameters, tuple(Token(p, ln, k == "word") for k, p, ln in rest), line)


def _marks(body: Sequence[Token], markers: Sequence[str] = ()) -> bool:
    """Whether a macro's body makes what follows a kernel."""
    texts = [t.text for t in body]
    if any(t == "__global__" or t in markers for t in texts):
        return "{" not in texts
    return "__attribute__" in texts and _GLOBAL_ATTRIBUTE in texts


def _is_marker(code: Sequence[Token], index: int, markers: set[str]) -> bool:
    token = code[index]
    if not token.is_word:
        return False
    if token.text in markers:
        return True
    # __attribute__((global)), which is what __global__ stands for.
    return token.text == _GLOBAL_ATTRIBUTE and [t.text for t in code[max(0, index - 3) : index]] == [
        "__attribute__",
        "(",
        "(",
    ]


def _sites(code: Sequence[Token], markers: set[str]) -> Iterator[KernelSite]:
    for index in range(len(code)):
        if _is_marker(code, index, markers):
            site = _follow(code, index + 1)
            if site:
                yield site


def _follow(code: Sequence[Token], index: int) -> KernelSite | None:
    """From behind the marker to the name: the last word before a "(" that is not an attribute's."""
    name: Token | None = None
    limit = min(len(code), index + 400)
    while index < limit:
        token = code[index]
        if token.text in (";", "{", "}", "="):
            return None
        if token.text == "[" and index + 1 < limit and code[index + 1].text == "[":
            index = _skip(code, index, "[", "]")
            continue
        if token.text == "<":
            index = _skip_template(code, index)
            continue
        if token.text == "(":
            end = _skip(code, index, "(", ")")
            if name is None or name.text in _WITH_ARGUMENTS or _another_list(code, end):
                index, name = end, None
                continue
            return KernelSite(name.text, name.line, _has_body(code, end))
        if token.is_word:
            name = token
        index += 1
    return None


_WITH_ARGUMENTS = frozenset(
    {"__launch_bounds__", "__attribute__", "__declspec", "alignas", "decltype", "noexcept"}
)


def _another_list(code: Sequence[Token], end: int) -> bool:
    """Whether a name and a parameter list still follow: then the parentheses before were a macro's, such as
    BOUNDS(256).
    """
    for index in range(end, min(len(code), end + 60)):
        text = code[index].text
        if text in (";", "{", "}", ":", "=") or text in _WITH_ARGUMENTS:
            return False
        if text == "(":
            return index > end and code[index - 1].is_word
    return False


def _has_body(code: Sequence[Token], index: int) -> bool:
    while index < len(code) and code[index].text not in ("{", ";"):
        if code[index].text == "(":
            index = _skip(code, index, "(", ")")
        else:
            index += 1
    return index < len(code) and code[index].text == "{"


def _skip(code: Sequence[Token], index: int, opening: str, closing: str) -> int:
    depth = 0
    while index < len(code):
        depth += (code[index].text == opening) - (code[index].text == closing)
        index += 1
        if depth == 0:
            break
    return index


def _skip_template(code: Sequence[Token], index: int) -> int:
    """Behind the ">" that closes a template list; parentheses inside may hold comparisons."""
    depth = 0
    while index < len(code):
        text = code[index].text
        if text == "(":
            index = _skip(code, index, "(", ")")
            continue
        if text in (";", "{"):
            return index
        depth += (text == "<") - (text == ">")
        index += 1
        if depth == 0:
            break
    return index


def _macro_sites(code: Sequence[Token], macros: dict[str, Macro], markers: set[str]) -> list[KernelSite]:
    """Kernels that a function-like macro defines: `DEFINE_SCALE(f32, float)` with `__global__ void
    scale_##T(...)`.
    """
    makers = {
        name: m
        for name, m in macros.items()
        if m.parameters is not None and any(t.text in markers for t in m.body)
    }
    found: list[KernelSite] = []
    for index, token in enumerate(code[:-1]):
        macro = makers.get(token.text) if token.is_word else None
        if macro is None or code[index + 1].text != "(":
            continue
        arguments = _arguments(code, index + 1)
        bound = dict(zip(macro.parameters or (), arguments, strict=False))
        body = _paste([bound.get(t.text, t.text) if t.is_word else t.text for t in macro.body])
        line = [Token(text, token.line, bool(re.match(r"[A-Za-z_]\w*$", text))) for text in body]
        found += [KernelSite(s.name, token.line, s.is_definition, False) for s in _sites(line, markers)]
    return found


def _arguments(code: Sequence[Token], index: int) -> list[str]:
    """The arguments of a macro call, each as one text."""
    found, current, depth = [], "", 0
    for token in code[index : index + 2000]:
        if token.text == ")" and depth == 1:
            found.append(current)
            break
        if token.text == "," and depth == 1:
            found.append(current)
            current = ""
            continue
        depth += (token.text == "(") - (token.text == ")")
        if depth > 1 or token.text != "(":
            current += token.text
    return found


def _paste(words: list[str]) -> list[str]:
    """The words with `a ## b` joined."""
    result: list[str] = []
    index = 0
    while index < len(words):
        if words[index] == "#" and index + 2 < len(words) and words[index + 1] == "#" and result:
            result[-1] += words[index + 2]
            index += 3
        else:
            result.append(words[index])
            index += 1
    return result


def symbol_words(symbol: str) -> list[str]:
    """The names in a mangled symbol, in order: `_ZN2ns3mulILi39EEvPi` has ns, mul.

    Itanium C++ ABI, "<source-name>": a decimal length and that many characters. A symbol that is not mangled
    is its own name. Template arguments may add names; the kernel's own comes first.
    """
    if not symbol.startswith("_Z"):
        return [symbol.split(".")[0]]
    names: list[str] = []
    index = 2
    while index < len(symbol):
        match = re.compile(r"\d+").match(symbol, index)
        if not match:
            index += 1
            continue
        length, start = int(match[0]), match.end()
        word = symbol[start : start + length]
        literal = symbol[index - 2 : index] in (
            "Li",
            "Lj",
            "Lb",
            "Ll",
            "Lm",
            "Lx",
            "Ly",
            "Ls",
            "Lt",
            "Lh",
            "Lc",
            "La",
        )
        if not literal and len(word) == length and re.fullmatch(r"[A-Za-z_]\w*", word):
            names.append(word)
            index = start + length
        else:
            index = match.end()
    return list(dict.fromkeys(names))
