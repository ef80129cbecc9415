"""The command ``taciturn``: runs the app and turns every error into a message and an exit code.

::

    0    done                              30-34  the conversation went wrong
    1    a bug in taciturn                 40-44  the connection failed
    2    wrong usage of the command        45     this side's own cluster failed
    10   a setting                         50     keys, ciphertexts or ranges
    11   the training diverged             60     a guarantee would be broken
    12   an extension is broken            70-71  a transcript, a party's state
    20   data                              74     a result could not be written
    21   a dataset is unavailable          80     the doctor found a problem
                                           130    interrupted
"""

from __future__ import annotations

import os
import re
import resource
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import NoReturn

import typer
from typer.exceptions import TyperException
from typer.main import get_command

from taciturn.cli.app import app_of, overview, own_commands, whole_app
from taciturn.errors import ConfigError, TaciturnError
from taciturn.extras import missing_package
from taciturn.setting_syntax import COMMAND_LINE
from taciturn.settings.removed import former_usage
from taciturn.version import __version__

_TRUTH = ("false", "true", "no", "yes", "0", "1", "off", "on")
_TABLE = re.compile(r"\.(csv|tsv|parquet)(\.gz)?$")
USAGE, INTERRUPTED, BUG, UNWRITABLE = 2, 130, 1, 74
FEWEST_FILES = 64
"""Files that a process must be allowed to open."""


class WrongUsage(TyperException):
    """Wrong usage of the command whose way out is known, such as an option's former name."""

    def __init__(self, problem: ConfigError) -> None:
        super().__init__(problem.diagnostics(COMMAND_LINE))


def main() -> None:
    """Runs the command line and exits."""
    try:
        code = _few_files() or run(sys.argv[1:])
    except MemoryError:
        # There is none for the message either. The process must end all the same.
        code = BUG
        with suppress(OSError):
            os.write(2, b"error: out of memory\n")
    if "grpc" in sys.modules:
        _leave(code)
    sys.exit(code)


def _few_files() -> int:
    """Exit code of a process that may open too few files, having said so; 0 where it may.

    Libraries blame a table, a permission or a bug where they cannot open a file.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= FEWEST_FILES:
        return 0
    if hard >= FEWEST_FILES:
        resource.setrlimit(resource.RLIMIT_NOFILE, (FEWEST_FILES, hard))
        return 0
    return report(
        ConfigError(
            f"this process may open {hard} files, and needs {FEWEST_FILES}",
            where="limit of open files",
            hint="raise it, with ulimit -n 1024 or LimitNOFILE= of the service",
        )
    )


def _leave(code: int) -> NoReturn:
    """End the process without waiting for threads: gRPC has kept busy interpreters from ending."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, MemoryError):
        code = code or UNWRITABLE
    os._exit(code)


def run(arguments: list[str]) -> int:
    """Run the command line; print what went wrong; return the exit code."""
    try:
        return dispatch(arguments)
    except (Exception, KeyboardInterrupt) as problem:
        return report(problem)


def dispatch(arguments: list[str]) -> int:
    """Run the command line and return its exit code; errors are raised."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        typer.echo(overview(), nl=False)
        return 0 if arguments else USAGE
    if arguments[0] == "--version":
        typer.echo(f"taciturn {__version__}")
        return 0
    _refuse_second_table(arguments)
    try:
        result = _parser(arguments[:1])(arguments, prog_name="taciturn", standalone_mode=False)
    except TyperException as problem:
        # Only the parser's error for an unknown option has its name.
        if former := former_usage(arguments, getattr(problem, "option_name", "")):
            raise WrongUsage(former) from None
        if misplaced := _misplaced(arguments, problem.format_message()):
            raise WrongUsage(misplaced) from None
        raise
    if result == INTERRUPTED:  # the parser turns an interrupt into its exit code, in silence
        raise KeyboardInterrupt
    return result if isinstance(result, int) else 0


def _misplaced(arguments: list[str], message: str) -> ConfigError | None:
    """The error for an argument without its option, or a value of an option that takes none."""
    extra = re.fullmatch(r"Got unexpected extra argument\S* \((\S+).*\)", message)
    if extra is None or extra[1] not in arguments:
        return None
    value = extra[1]
    option = arguments[arguments.index(value) - 1]
    if value.lower() in _TRUTH and option.startswith("--"):
        off = value.lower() in _TRUTH[::2]
        return ConfigError(
            f"{option} takes no value",
            where=f"{option} {value}",
            hint=f"leave {option} out" if off else f"write {option} alone",
        )
    name = "--config" if value.endswith(".toml") else "--data" if _TABLE.search(value) else ""
    if not name:
        return None
    return ConfigError(
        f"{value} is given without the option that takes it",
        where=f"taciturn {arguments[0]} {value}",
        hint=f"write {name} {value}, or see --help",
    )


def _refuse_second_table(arguments: list[str]) -> None:
    """Raise where two tables are given: the parser would take the last and say nothing."""
    tables = sum(argument.partition("=")[0] == "--data" for argument in arguments)
    if tables > 1:
        raise WrongUsage(
            ConfigError(
                f"{tables} tables are given, and a simulation takes one that is joined",
                where="--data",
                hint="join them by their ids; two parties with a table each run taciturn party",
            )
        )


def _parser(command: list[str]) -> Callable[..., object]:
    return _parser_of(*(name for name in command if name in own_commands()))


@cache
def _parser_of(*ours: str) -> Callable[..., object]:
    # Built once: that takes longer than most commands that are refused.
    return get_command(app_of(*ours) if ours else whole_app())


def report(problem: BaseException) -> int:
    """Print the error message of a command that failed; return the exit code."""
    match problem:
        case TaciturnError():
            return _complain(problem.diagnostics(COMMAND_LINE), problem.exit_code)
        case WrongUsage():
            return _complain(problem.message, USAGE)
        case TyperException():
            # Without a message, the command alone was given: its help has been shown.
            return _complain(_misused(problem), USAGE) if problem.format_message() else USAGE
        case typer.Exit():
            return problem.exit_code
        case KeyboardInterrupt() | typer.Abort():
            return _complain("interrupted", INTERRUPTED)
        case BrokenPipeError():
            # The reader has gone; keep Python from complaining about it once more at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        case OSError():
            return _complain(f"{problem.strerror or problem}", UNWRITABLE)
        case MemoryError():
            return _complain(
                "out of memory\n  try:   use less data, or a machine with more memory", BUG
            )
        case ModuleNotFoundError() if absent := missing_package(problem):
            return _complain(absent.diagnostics(), absent.exit_code)
        case _:
            return _bug(problem)


def _bug(problem: BaseException) -> int:
    if os.environ.get("TACITURN_DEBUG"):
        traceback.print_exception(problem)
    return _complain(
        f"a bug in taciturn: {type(problem).__name__}: {problem}\n"
        "  try:   set TACITURN_DEBUG=1 and report the traceback",
        BUG,
    )


def _misused(problem: TyperException) -> str:
    unknown = "No such command" in problem.format_message()
    hint = "taciturn --help lists the commands" if unknown else "--help lists the options"
    if close := getattr(problem, "possibilities", None):
        return f"{problem.message}\n  try:   did you mean {close[0]}? {hint}"
    return f"{problem.format_message()}\n  try:   {hint}"


def _complain(text: str, code: int) -> int:
    from taciturn.cli.console import console

    screen = console(error=True)
    screen.print("error: ", style="bold red", end="", markup=False)
    screen.print(text, markup=False)
    return code


if __name__ == "__main__":
    main()
