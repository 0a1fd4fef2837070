"""Whether a document that was read has the keys and types that its readers count on."""

from __future__ import annotations

from typing import Any

Shape = Any  # a type, a tuple of types, {key: Shape} (key? may be missing), or [Shape] for every item


def misshapen(document: object, shape: Shape, where: str = "") -> str | None:
    """Where `document` first departs from `shape`, in words; None where it does not.

    >>> misshapen({"a": [1, "x"]}, {"a": [int]})
    "a[1] is 'x', not a number"
    """
    if isinstance(shape, dict):
        if not isinstance(document, dict):
            return f"{where or 'the document'} is {_short(document)}, not an object"
        for key, inner in shape.items():
            name = key.removesuffix("?")
            path = f"{where}.{name}" if where else name
            if name not in document:
                if key == name:
                    return f"{path} is missing"
                continue
            problem = misshapen(document[name], inner, path)
            if problem:
                return problem
        return None
    if isinstance(shape, list):
        if not isinstance(document, list):
            return f"{where} is {_short(document)}, not a list"
        return next(
            (p for i, v in enumerate(document) if (p := misshapen(v, shape[0], f"{where}[{i}]"))), None
        )
    types = shape if isinstance(shape, tuple) else (shape,)
    if isinstance(document, bool) and bool not in types:
        return f"{where} is {_short(document)}, not {_names(types)}"
    return None if isinstance(document, types) else f"{where} is {_short(document)}, not {_names(types)}"


_WORDS = {str: "text", int: "a number", float: "a number", bool: "true or false", dict: "an object"}


def _names(types: tuple[type, ...]) -> str:
    return " or ".join(dict.fromkeys(_WORDS.get(one, "null") for one in types))


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
