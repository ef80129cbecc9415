"""The commands: ours, and those of other packages (entry points of ``taciturn.commands``)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple, cast

import typer

from taciturn import extensions
from taciturn.cli.help import Command
from taciturn.extras import AUDIT, OPS, PAPER, RISK, not_installed

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
    "train": Entry(TRY, "taciturn.cli.simulate", "Simulate a training of both parties here"),
    "compare": Entry(
        TRY, "", "Compare protections on your table: model quality, leakage, cost", AUDIT
    ),
    "study": Entry(TRY, "taciturn.jobs.study.command", "Train one model per combination (grid)"),
    "init": Entry(PARTIES, "", "Write a settings file for each party", OPS),
    "certs": Entry(PARTIES, "", "Create or show trial certificates", OPS),
    "doctor": Entry(PARTIES, "", "Check this machine and a party's file", OPS),
    "align": Entry(PARTIES, "taciturn.jobs.align.command", "Find the rows that all parties have"),
    "agreement": Entry(PARTIES, "", "Propose, review and sign an agreement", OPS),
    "check": Entry(PARTIES, "", "Estimate before training what each side could learn", AUDIT),
    "party": Entry(PARTIES, "taciturn.jobs.train.command", "Train with the peer, or resume"),
    "woe": Entry(PARTIES, "taciturn.jobs.woe.command", "Weight of evidence of Alice's columns"),
    "ledger": Entry(PARTIES, "taciturn.cli.ledger", "Show the privacy cost of past trainings"),
    "predict": Entry(AFTER, "taciturn.jobs.predict.command", "Score new rows with the peer"),
    "serve": Entry(AFTER, "taciturn.jobs.serve.command", "Serve scores on demand over HTTP"),
    "model": Entry(AFTER, "taciturn.cli.model", "Show, report on, select and export models"),
    "runs": Entry(AFTER, "", "List and export results written with --out", RISK),
    "audit": Entry(RESEARCH, "", "Run the attacks on a training or a recorded session", AUDIT),
    "reproduce": Entry(RESEARCH, "", "Reproduce the paper's tables and figures", PAPER),
    "bench": Entry(RESEARCH, "", "Benchmark the encryption on the paper's table sizes", PAPER),
}
# Commands of a group of the core that another distribution brings, as the entry point GROUP.NAME.
SUBCOMMANDS = {"model": {"show": RISK, "report": RISK, "export": RISK}}
COMMANDS = {name: entry.module for name, entry in ENTRIES.items() if entry.module}
# Commands whose help names the attacks of other packages.
_ATTACKING = ("audit", "check", "compare")


def overview() -> str:
    """The commands by group, without loading any of them."""
    installed = {entry.name: entry for entry in extensions.installed(extensions.COMMANDS)}
    groups: dict[str, list[tuple[str, str]]] = {}
    for name, known in ENTRIES.items():
        if known.module or name in installed:
            groups.setdefault(known.group, []).append((name, known.summary))
    for name, added in installed.items():
        if name.partition(".")[0] not in ENTRIES:
            groups.setdefault("Other packages", []).append((name, added.distribution))
    formatter = typer.Context(typer.main.get_command(_bare())).make_formatter()
    formatter.write_usage("taciturn", "COMMAND [OPTIONS]")
    formatter.write_paragraph()
    formatter.write_text(ABOUT)
    for group, rows in groups.items():
        with formatter.section(group):
            formatter.write_dl(rows)
    formatter.write_paragraph()
    formatter.write_text("taciturn COMMAND --help shows a command's options; --version the version")
    return formatter.getvalue()


def app_of(*names: str) -> typer.Typer:
    """The app with these of the core's commands."""
    app = _bare()
    for name in names:
        _add(app, name, getattr(import_module(COMMANDS[name]), name))
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
    app = app_of(*COMMANDS)
    listed = extensions.listed(extensions.ATTACKS)
    attacks = f"Attacks of other packages: {listed}" if listed else None
    added = {entry.name: entry for entry in extensions.installed(extensions.COMMANDS)}
    for name, entry in added.items():
        if "." not in name:
            _add(app, name, entry.load(), attacks if name in _ATTACKING else None)
    for name, known in ENTRIES.items():
        if known.distribution and name not in added:
            _refuse_absent(app, name, known.distribution)
    return app


def _refuse_absent(app: typer.Typer, name: str, distribution: str, full: str = "") -> None:
    anything = {"ignore_unknown_options": True, "allow_extra_args": True}

    @app.command(name, hidden=True, context_settings=anything)
    def refuse() -> None:
        """Say which distribution has the command, and how to install it."""
        raise not_installed(f"the command {full or name}", distribution)
