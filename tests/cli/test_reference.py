"""docs/command-line.md against the commands: its table of options is made from them, and the rest is checked.

KERNCAP_UPDATE_SNAPSHOTS=1 writes the table anew.
"""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path
from typing import Any

import click
from whole import built, document, extracted, kerncap

import kerncap as package
from kerncap.cli.entry import COMMANDS, cli
from support.build import build_program

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs/command-line.md"
BEGIN, END = "<!-- commands: made by tests/cli/test_reference.py -->", "<!-- end of commands -->"
KEYS = re.compile(r"\| ([^|]+) \| `(kerncap-[a-z]+/\d+)` \| `([^`]+)` \|")
# Not the user's: what is set where native code is built or tested.
BUILD_NAMES = re.compile(
    r"KERNCAP_(SIM_RUNTIME|HSA_AMD_FUNCTIONS|EXPORT|SANITIZE|NATIVE_TESTS|INSTALL_DIR)\b"
)


def cell(text: str) -> str:
    """Text of a help page in a table's cell."""
    return re.sub(r"\s*\[[x0-9<>=.]+\]$", "", " ".join(text.split())).replace("|", "\\|")


def section(name: str) -> str:
    """One command: how it is called, what it does, its options."""
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    context = click.Context(command, parent=click.Context(cli, info_name="kerncap"), info_name=name)
    usage = " ".join(command.collect_usage_pieces(context))
    paragraphs = [" ".join(part.split()) for part in (command.help or "").split("\n\n")]
    lines = [f"### `kerncap {name} {usage}`", "", "\n\n".join(paragraphs), "", "| option | |", "|---|---|"]
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is None or isinstance(parameter, click.Argument):
            continue
        called = re.sub(r" (INTEGER RANGE|NUMBER)$", " N", record[0]).replace("|", "\\|")
        assert record[1], f"{name} {record[0]} has no help"
        lines.append(f"| `{called}` | {cell(record[1])} |")
    return "\n".join(lines)


def test_the_document_has_every_command_and_option() -> None:
    sheet = "\n\n".join(section(name) for name in COMMANDS)
    text = DOCUMENT.read_text()
    pattern = f"{re.escape(BEGIN)}.*{re.escape(END)}"
    wanted = re.sub(pattern, lambda _: f"{BEGIN}\n\n{sheet}\n\n{END}", text, flags=re.DOTALL)
    if os.environ.get("KERNCAP_UPDATE_SNAPSHOTS"):
        DOCUMENT.write_text(wanted)
    assert wanted == DOCUMENT.read_text()
    assert "### `kerncap watch [OPTIONS] DIR`" in wanted


def named_strings(pattern: str) -> set[str]:
    """What matches in the string constants of the Python package."""
    found: set[str] = set()
    for path in Path(package.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.update(re.findall(pattern, node.value))
    return found


def test_every_variable_that_is_read_is_in_the_table() -> None:
    wanted = named_strings(r"KERNCAP_[A-Z_]+[A-Z]")
    for path in [*(ROOT / "native").rglob("*.cpp"), *(ROOT / "reproducer_templates").rglob("*.j2")]:
        text = re.sub(BUILD_NAMES, "", path.read_text())
        wanted.update(re.findall(r'"(KERNCAP_[A-Z_]+[A-Z])"', text) if path.suffix == ".cpp" else [])
        wanted.update(re.findall(r"\b(KERNCAP_[A-Z_]+[A-Z])\b", text) if path.suffix == ".j2" else [])
    told = set(re.findall(r"`(KERNCAP_[A-Z_]+)`(?= \|)", DOCUMENT.read_text()))
    assert told == wanted


def test_every_schema_is_named() -> None:
    text = DOCUMENT.read_text()
    schemas = named_strings(r"^kerncap-[a-z]+/[0-9]+$")
    assert {schema for schema in schemas if f"`{schema}`" not in text and f'"{schema}"' not in text} == set()
    assert set(re.findall(r"kerncap-[a-z]+/[0-9]+", text)) <= schemas


def told(command: str) -> tuple[str, list[str]]:
    """The schema and the keys that the document gives a command."""
    for name, schema, keys in KEYS.findall(DOCUMENT.read_text()):
        if name == command:
            return schema, keys.split(", ")
    raise AssertionError(f"no row of {command}")


def keys_of(found: dict[str, Any]) -> tuple[str, list[str]]:
    """The same of a document that was printed."""
    keys = [f"{key}[]" if isinstance(value, list) else key for key, value in found.items()]
    return found["schema"], [key for key in keys if key != "schema"]


@built
def test_documents_have_the_keys_that_are_told(tmp_path: Path) -> None:
    program = build_program("in_place")
    extracted("in_place", "advance", tmp_path)
    command = ("--", str(program.executable))
    for name, words in {
        "profile": ["profile", *command],
        "extract": ["extract", "advance", "-o", "again", *command],
        "replay": ["replay", "advance"],
        "validate": ["validate", "advance"],
        "watch": ["watch", "--once", "advance"],
        "inspect DIR": ["inspect", "advance"],
        "inspect FILE": ["inspect", str(program.code_object())],
        "list": ["list", "."],
        "doctor": ["doctor"],
        "doctor --costs": ["doctor", "--costs"],
        "env": ["env"],
        "demo --build": ["demo", "--build", "decoder"],
        "demo": ["demo"],
    }.items():
        assert keys_of(document(*words, cwd=tmp_path)) == told(name), name
    assert keys_of(document("replay", "none", cwd=tmp_path, code=2)) == told("any that fails")


@built
def test_a_program_that_is_ended_at_its_limit_is_exit_5(tmp_path: Path) -> None:
    endless = ("--timeout", "0.5", "--", "sleep", "60")
    assert "--timeout" in kerncap("profile", *endless, cwd=tmp_path, code=5).stderr
    assert "--timeout" in kerncap("extract", "k", *endless, cwd=tmp_path, code=5).stderr
