"""The commands: those of the installed jobs, the core's others, and those of other packages.

A job declares its commands (``job_registry``). A package that brings a command without a job has an
entry point of ``taciturn.commands``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple, cast

import typer

from taciturn import extensions
from taciturn.cli.help import Command
from taciturn.extras import AUDIT, JOBS_ELSEWHERE, OPS, PAPER, RISK, not_installed
from taciturn.job_registry import JobCommand, registry

ABOUT = (
    "Train a logistic regression with a partner without revealing your labels to them, and measure "
    "whether they could infer the labels anyway."
)
TRY, PARTIES, AFTER, RESEARCH = "Try it", "Two parties", "After training", "Research"


class Entry(NamedTuple):
    """A command in the overview; ``module`` is empty where another distribution brings it."""

    group: str
    module: str
    summary: str
    distribution: str = ""


# A command's module is loaded when the command is used: a party that trains loads no other, and
# the overview loads none.
ENTRIES = {
    "demo": Entry(TRY, "", "Train with four protections and attack each of them", AUDIT),
    "compare": Entry(
        TRY, "", "Compare protections on your table: model quality, leakage, cost", AUDIT
    ),
    "init": Entry(PARTIES, "", "Write a settings file for each party", OPS),
    "certs": Entry(PARTIES, "", "Create or show trial certificates", OPS),
    "doctor": Entry(PARTIES, "", "Check this machine and a party's file", OPS),
    "agreement": Entry(PARTIES, "", "Propose, review and sign an agreement", OPS),
    "check": Entry(PARTIES, "", "Estimate before training what each side could learn", AUDIT),
    "ledger": Entry(PARTIES, "taciturn.cli.ledger", "Show the privacy cost of past trainings"),
    "model": Entry(AFTER, "taciturn.cli.model", "Show, report on, select and export models"),
    "runs": Entry(AFTER, "", "List and export results written with --out", RISK),
    "audit": Entry(RESEARCH, "", "Run the attacks on a training or a recorded session", AUDIT),
    "reproduce": Entry(RESEARCH, "", "Reproduce the paper's tables and figures", PAPER),
    "bench": Entry(RESEARCH, "", "Benchmark the encryption on the paper's table sizes", PAPER),
}
# Commands of a group of the core that another distribution brings, as the entry point GROUP.NAME.
SUBCOMMANDS = {"model": {"show": RISK, "report": RISK, "export": RISK}}
COMMANDS = {name: entry.module for name, entry in ENTRIES.items() if entry.module}
"""The core's commands that belong to no job."""
# Commands whose help names the attacks of other packages.
_ATTACKING = ("audit", "check", "compare")


def overview() -> str:
    """The commands by group, without loading any of them."""
    installed = {entry.name: entry for entry in extensions.installed(extensions.COMMANDS)}
    groups: dict[str, list[tuple[str, str]]] = {TRY: [], PARTIES: [], AFTER: [], RESEARCH: []}
    for name, known in ENTRIES.items():
        if known.module or name in installed:
            groups.setdefault(known.group, []).append((name, known.summary))
    for name, added in installed.items():
        if name.partition(".")[0] not in ENTRIES:
            groups.setdefault("Other packages", []).append((name, added.distribution))
    for command in job_commands().values():
        _place(command, groups.setdefault(command.group, []))
    formatter = typer.Context(typer.main.get_command(_bare())).make_formatter()
    formatter.write_usage("taciturn", "COMMAND [OPTIONS]")
    formatter.write_paragraph()
    formatter.write_text(ABOUT)
    for group, rows in ((group, rows) for group, rows in groups.items() if rows):
        with formatter.section(group):
            formatter.write_dl(rows)
    formatter.write_paragraph()
    formatter.write_text("taciturn COMMAND --help shows a command's options; --version the version")
    return formatter.getvalue()


def job_commands() -> dict[str, JobCommand]:
    """The commands of the installed jobs: one that is shown after another is later."""
    declared = {name: command for name, (_, command) in registry().commands.items()}
    placed: dict[str, JobCommand] = {}
    while declared:
        ready = [name for name in declared if declared[name].after not in declared]
        # Two that each come after the other have no order.
        for name in ready or [*declared]:
            placed[name] = declared.pop(name)
    return placed


def _place(command: JobCommand, rows: list[tuple[str, str]]) -> None:
    """Put a command's line below the one that it comes after."""
    names = [name for name, _ in rows]
    place = names.index(command.after) + 1 if command.after in names else len(rows)
    rows.insert(place if command.after else 0, (command.name, command.summary))


def _command(name: str) -> Any:  # noqa: ANN401 - a function, or a group of commands
    if name in COMMANDS:
        return getattr(import_module(COMMANDS[name]), name)
    job, command = registry().commands[name]
    return job.load(command.function)


def own_commands() -> tuple[str, ...]:
    """The names of the core's commands and of those of the installed jobs."""
    return (*COMMANDS, *job_commands())


def app_of(*names: str) -> typer.Typer:
    """The app with these commands of the core, or of jobs."""
    app = _bare()
    for name in names:
        _add(app, name, _command(name))
    return app


def _add(app: typer.Typer, name: str, command: Any, epilog: str | None = None) -> None:  # noqa: ANN401 - a function or a group
    if isinstance(command, typer.Typer):
        _complete(command, name)
        app.add_typer(command, name=name)
    else:
        app.command(name, cls=Command, epilog=epilog)(command)


def _complete(group: typer.Typer, name: str) -> None:
    """Add to a group the commands that other distributions bring, once."""
    there = {command.name for command in group.registered_commands}
    added = {entry.name: entry for entry in extensions.installed(extensions.COMMANDS)}
    for full, entry in added.items():
        above, _, below = full.partition(".")
        if above == name and below and below not in there:
            group.command(below, cls=Command)(cast("Callable[..., None]", entry.load()))
    for below, distribution in SUBCOMMANDS.get(name, {}).items():
        if f"{name}.{below}" not in added and below not in there:
            _refuse_absent(group, below, distribution, f"{name} {below}")


def _bare() -> typer.Typer:
    app = typer.Typer(
        name="taciturn",
        help=ABOUT,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(lambda: None)
    return app


@cache
def whole_app() -> typer.Typer:
    """The app with all commands, those of other packages too."""
    app = app_of(*own_commands())
    listed = extensions.listed(extensions.ATTACKS)
    attacks = f"Attacks of other packages: {listed}" if listed else None
    added = {entry.name: entry for entry in extensions.installed(extensions.COMMANDS)}
    for name, entry in added.items():
        if "." not in name:
            _add(app, name, entry.load(), attacks if name in _ATTACKING else None)
    elsewhere = {name: known.distribution for name, known in ENTRIES.items() if known.distribution}
    for name, distribution in {**elsewhere, **JOBS_ELSEWHERE}.items():
        if name not in added and name not in registry().commands:
            _refuse_absent(app, name, distribution)
    return app


def _refuse_absent(app: typer.Typer, name: str, distribution: str, full: str = "") -> None:
    anything = {"ignore_unknown_options": True, "allow_extra_args": True}

    @app.command(name, hidden=True, context_settings=anything)
    def refuse() -> None:
        """Say which distribution has the command, and how to install it."""
        raise not_installed(f"the command {full or name}", distribution)
