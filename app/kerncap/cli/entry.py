"""The entry point: finds the subcommand, and turns whatever goes wrong into a sentence and an exit code."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import click

import kerncap
from kerncap.cli.output import error_document, fail, open_streams, reported, silence_stdout
from kerncap.core.errors import InconclusiveError, Interrupted, KerncapError, explained, unwritable
from kerncap.core.interrupts import interruptible, interruption

BROKEN_PIPE = 141  # as a shell reports a program that SIGPIPE ended

# Subcommand -> its one-line help; modules are imported only when their command runs.
COMMANDS = {
    "tui": "the terminal UI; `kerncap` alone on a terminal opens it too",
    "profile": "rank a program's kernels by device time",
    "extract": "capture one dispatch of a kernel, with memory, code and source",
    "replay": "run a captured kernel alone and time it",
    "validate": "compare what a kernel writes with what the program's own run wrote",
    "watch": "rebuild, replay and validate whenever the source is saved",
    "inspect": "show a capture, a code object or a fat binary",
    "list": "list captures on disk",
    "doctor": "what this machine has and lacks",
    "env": "the environment in which a program is watched",
    "demo": "the whole loop on a demonstration program",
}


class LazyGroup(click.Group):
    """A group whose commands live in kerncap.cli.<name>_command, imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"kerncap.cli.{cmd_name}_command").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"There is no command {args[0]!r}.{hint}")


@click.command(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(kerncap.__version__, prog_name="kerncap")
@click.pass_context
def cli(ctx: click.Context) -> Any:
    """Take one GPU kernel out of a running program with everything it needs, so that an edit is rebuilt,
    timed and checked alone.

    Exit codes: 0 passed; 1 verdict FAIL; 2 usage; 3 inconclusive; 4 no such device, tool or runtime; 5 the
    program failed, or never launched the kernel; 6 damaged capture; 130 interrupted.
    """
    if ctx.invoked_subcommand is not None:
        return None
    from kerncap.cli import tui_command

    if tui_command.on_terminal():
        return ctx.invoke(tui_command.command)
    click.echo(ctx.get_help())
    return None


def run(arguments: Sequence[str] | None = None, *, last: bool = False) -> int:
    """Runs a command line and returns its exit code; prints errors, raises nothing but with KERNCAP_DEBUG
    set. `last`: the process ends with it (core/interrupts.py).
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    before_program = words[: words.index("--")] if "--" in words else words
    as_json = "--json" in before_program
    debug = os.environ.get("KERNCAP_DEBUG", "") not in ("", "0")
    try:
        # Not cli.main(): it takes a closed stdout for a reason to exit with 1, which is FAIL here.
        with interruptible(last=last), cli.make_context("kerncap", words) as context:
            result: Any = cli.invoke(context)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        return reported(error.exit_code, partial(_show_usage, error, as_json))
    except (click.Abort, EOFError, KeyboardInterrupt) as error:
        return fail(interruption(error) or Interrupted(), as_json)
    except BrokenPipeError:
        silence_stdout()
        return BROKEN_PIPE
    except KerncapError as error:
        if debug:
            raise
        return fail(error, as_json)
    except Exception as error:
        if debug:
            raise
        stopped = interruption(error)
        if stopped is not None:
            return fail(stopped, as_json)
        return fail(explained(error) or _unexpected(error), as_json)


def _show_usage(error: click.ClickException, as_json: bool) -> None:
    if as_json:
        error_document(error.format_message(), error.exit_code)
    error.show()


def _unexpected(error: Exception) -> KerncapError:
    """Nothing was proven by a run that went wrong inside kerncap itself: neither PASS nor FAIL."""
    reason = f"{error}"
    if isinstance(error, OSError) and error.filename:
        reason = f"{error.strerror}: {error.filename}"
    return InconclusiveError(
        f"unexpected {type(error).__name__}: {reason}. KERNCAP_DEBUG=1 shows where; please report it."
    )


def main() -> None:
    """`kerncap` on the command line."""
    open_streams()
    try:
        code = run(last=True)
        sys.stdout.flush()
    except BrokenPipeError:
        silence_stdout()
        code = BROKEN_PIPE
    except OSError as error:  # stdout is a file on a full disk, for instance
        silence_stdout()
        code = fail(unwritable("stdout", error), False)
    sys.exit(code)
