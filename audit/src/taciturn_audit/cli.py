"""The commands ``audit``, ``check``, ``compare`` and ``demo``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import typer

from taciturn.cli.console import Json, Meter, progress_bar
from taciturn.cli.options import with_settings
from taciturn.cli.output import (
    Out,
    OutputPlan,
    Provenance,
    finish,
    moment,
    party_provenance,
    plan_output,
    simulation_provenance,
    typed,
    without_training,
    write_page,
)
from taciturn.errors import ConfigError
from taciturn.files import require_writable
from taciturn.output_paths import PathUse
from taciturn.setting_syntax import Hint, hyphenated
from taciturn.version import __version__

if TYPE_CHECKING:
    from taciturn.settings.signatures import SettingsOptions
    from taciturn_audit.results.compare import Comparison
    from taciturn_audit.results.runs import AuditResult
    from taciturn_audit.results.session import SessionAudit
    from taciturn_audit.results.woe_audit import WoeAudit

    Made = TypeVar("Made", AuditResult, SessionAudit, Comparison, WoeAudit)


KnownRows: TypeAlias = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Number of Alice's rows that Bob knows (default: 10, and as many as she has columns).",
        hidden=True,
    ),
]


@with_settings
def check(
    *,
    party: Annotated[
        Path | None,
        PathUse.READ,
        typer.Argument(help="A party's TOML file: check its agreement on its own table."),
    ] = None,
    columns: Annotated[
        int | None, typer.Option(min=1, help="Number of Alice's columns, instead of a table.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(min=2, help="With --columns: number of rows (default: 2000).")
    ] = None,
    seat: Annotated[
        str | None,
        typer.Option(
            help="Adversary: alice (recovers labels), bob (reconstructs columns) or both (default: "
            "both for Alice's own file, else alice)."
        ),
    ] = None,
    known_rows: KnownRows = None,
    out: Out = None,
    json: Json = False,
    settings: dict[str, Any],
) -> None:
    """Show before training what Alice could learn, and what to change.

    Alice's own table can be given with --data; no labels are needed or used. With a party's file,
    its agreement is checked on its own table, with a stand-in for the other side's.

    Examples:
    taciturn check --dataset breast-cancer --mechanism hybrid

    taciturn check --columns 40 --rows 5000 --mechanism add --epsilon 1 --epochs 5

    taciturn check --data alice.csv --id customer --mechanism none --batch-size 64

    taciturn check --dataset breast-cancer --alice-columns half --seat bob

    taciturn check bob.toml
    """
    from taciturn_audit import api

    plan = plan_output(out)
    wanted = _without_record(settings)
    beside: dict[str, Any] = {"seat": seat, "known_rows": known_rows}
    beside |= {"columns": columns, "rows": rows}
    with progress_bar() as meter:
        result = api.check(party=party, announce=meter.announce, **beside, **wanted)
    finish(plan, result, json, lambda: _checked(party, wanted, beside))


def _checked(party: Path | None, settings: dict[str, Any], beside: dict[str, Any]) -> Provenance:
    if party is not None:
        from taciturn.party.config import PartyConfig

        return party_provenance(PartyConfig.read(party))
    if "data" in settings:
        # Alice's table has no labels, and settings of own data name their column.
        origin = simulation_provenance({"label": "", **settings}, **beside)
        kept = {name: value for name, value in origin.settings.items() if value != ""}
        return replace(origin, settings=kept)
    origin = simulation_provenance(settings, **beside)
    return origin if beside["columns"] is None else replace(origin, source="random columns")


@with_settings
def audit(
    *,
    transcript: Annotated[
        Path | None,
        PathUse.READ,
        typer.Option(
            help="Audit a transcript written by train --record, or by party --record (see --party)."
        ),
    ] = None,
    party: Annotated[
        Path | None,
        PathUse.READ,
        typer.Option(
            help="With --transcript of a real session: TOML file of the side that recorded it.",
            hidden=True,
        ),
    ] = None,
    truth: Annotated[
        Path | None,
        PathUse.READ,
        typer.Option(
            help="For a real session: the other side's file, whose table is the ground truth.",
            hidden=True,
        ),
    ] = None,
    guesses: Annotated[
        Path | None,
        PathUse.READ,
        typer.Option(
            help="With --truth: evaluate the guesses that Alice's side wrote with --write-guesses.",
            hidden=True,
        ),
    ] = None,
    write_guesses: Annotated[
        Path | None,
        PathUse.WRITTEN,
        typer.Option(
            help="With --party: write the guess for each row, for Bob's side to evaluate.",
            hidden=True,
        ),
    ] = None,
    shuffle_truth: Annotated[
        bool,
        typer.Option(
            "--shuffle-truth",
            help="Evaluate against labels shuffled after the run; every attack must be at chance.",
            hidden=True,
        ),
    ] = False,
    canary: Annotated[
        bool,
        typer.Option(
            "--canary/--no-canary",
            help="Also attack a run on shuffled labels, which shows the leak of the protocol "
            "alone.",
            hidden=True,
        ),
    ] = True,
    seat: Annotated[
        str | None,
        typer.Option(
            help="Adversary: alice (recovers labels), bob (reconstructs columns) or both (default: "
            "both; for a transcript its side). With --parties also alice-1 or alice-1+alice-3."
        ),
    ] = None,
    known_rows: KnownRows = None,
    further_trainings: Annotated[
        bool,
        typer.Option(
            "--further-trainings",
            help="Also train again (some 30 times, unencrypted) and attack what several models, "
            "inputs chosen against single rows, and knowing all other rows give away.",
            hidden=True,
        ),
    ] = False,
    woe: Annotated[
        bool,
        typer.Option(
            "--woe",
            help="Instead of a training, audit weight of evidence: what Alice learns if she is "
            "given the weights or rates of her bins, and what taciturn woe reveals.",
            hidden=True,
        ),
    ] = False,
    html: Annotated[
        Path | None, PathUse.WRITTEN, typer.Option(help="Write the report as one HTML file.")
    ] = None,
    markdown: Annotated[
        Path | None,
        PathUse.WRITTEN,
        typer.Option(help="Write the report as Markdown.", hidden=True),
    ] = None,
    out: Out = None,
    json: Json = False,
    settings: dict[str, Any],
) -> None:
    """Train (or read a transcript), and run every known attack of Alice and Bob on it.

    Examples:
    taciturn audit --dataset breast-cancer --mechanism none --scheme clear --seed 1

    taciturn audit --dataset breast-cancer --mechanism none --scheme clear --permute-labels

    taciturn audit --dataset sklearn-digits --mechanism add --epsilon 10 --html report.html

    taciturn audit --dataset breast-cancer --alice-columns half --scheme clear --seat bob

    taciturn audit --dataset breast-cancer --scheme clear --parties 3 --seat alice-1+alice-3

    taciturn audit --woe --dataset breast-cancer --seed 1

    taciturn audit --transcript run.transcript

    taciturn audit --transcript alice.transcript --party alice.toml --write-guesses guesses.json

    taciturn audit --guesses guesses.json --truth bob.toml --html report.html

    taciturn audit --transcript bob.transcript --party bob.toml --truth alice.toml
    """
    from taciturn_audit import api

    require_writable(html, markdown, write_guesses)
    plan = plan_output(out)
    recorded: dict[str, Any] = {"transcript": transcript, "party": party, "truth": truth}
    recorded |= {"guesses": guesses, "write_guesses": write_guesses}
    asked: dict[str, Any] = {"seat": seat, "known_rows": known_rows}
    judged: dict[str, Any] = {"shuffle_truth": shuffle_truth, "canary": canary}
    show = partial(_finish, plan, html, markdown, json)
    if woe:
        _require_no_recording({**recorded, **asked, "shuffle_truth": shuffle_truth or None})
        wanted = _without_record(settings)
        with progress_bar() as meter:
            bins = api.audit_woe(announce=meter.announce, progress=meter.progress, **wanted)
        show(bins, lambda: without_training(simulation_provenance(settings)))
    elif any(path is not None for name, path in recorded.items() if name != "transcript"):
        _refuse_settings(settings)
        with progress_bar() as meter:
            session = api.audit_session(**recorded, **asked, **judged, **_listeners(meter))
        show(session, lambda: _session(session))
    else:
        given = {"transcript": transcript, **asked, **judged, **settings}
        given["further_trainings"] = further_trainings
        with progress_bar() as meter:
            result = api.audit(**given, **_listeners(meter))
        asked |= {"shuffle_truth": shuffle_truth or None, "canary": None if canary else False}
        show(result, lambda: _audited(transcript, settings, asked))


def _require_no_recording(given: dict[str, Any]) -> None:
    for name, value in given.items():
        if value is not None:
            raise ConfigError(
                f"{hyphenated(name)} belongs to the audit of a training",
                where=f"--{hyphenated(name)}",
                hint="leave it out, or leave --woe out",
            )


def _audited(
    transcript: Path | None, settings: dict[str, Any], asked: dict[str, Any]
) -> Provenance:
    """Provenance of the audited run: a new one, or a recorded one with its own settings."""
    if transcript is None:
        return simulation_provenance(settings, **asked)
    from taciturn.engine.transcript import Transcript
    from taciturn.jobs.train.record import RecordedRun

    recorded = RecordedRun.from_transcript(Transcript.load(transcript)).settings
    return simulation_provenance({**recorded.model_dump(exclude_none=True), **settings}, **asked)


def _refuse_settings(settings: dict[str, Any]) -> None:
    for name in settings:
        raise ConfigError(
            f"{hyphenated(name)} is fixed by the recording",
            setting=name,
            hint=Hint("leave {" + name + "} out: a real session has its own settings"),
        )


def _session(result: SessionAudit) -> Provenance:
    recording = result.recording
    digests = {"table": recording.table_digest, "ids": recording.ids_digest}
    name = f"session {recording.session[:12]}"
    return Provenance(dict(recording.agreement), name, digests, private=True)


# Bob has as many scores of a row as there are epochs or passes: with at least as many as Alice has
# columns, they determine her values.
_GIVEN: SettingsOptions = {"dataset": "breast-cancer", "seed": 1, "alice_columns": 10}
DEMO: tuple[SettingsOptions, ...] = (
    {"mechanism": "none", "solver": "sgd", "epochs": 12},
    {"mechanism": "hybrid", "epochs": 12},
    {"mechanism": "sealed"},
    {"mechanism": "mutual"},
)


def demo(
    html: Annotated[Path, PathUse.WRITTEN, typer.Option(help="File for the report.")] = Path(
        "taciturn-demo.html"
    ),
    out: Out = None,
    json: Json = False,
) -> None:
    """Train with four mechanisms (none, hybrid, sealed, mutual), and attack each from both sides.

    Both parties run in this process, with real encryption. Alice holds 10 columns, Bob 20 and the
    labels; the attacks show what each side can learn from the messages.
    """
    from taciturn_audit import api
    from taciturn_audit.results.runs import DemoResult

    require_writable(html)
    plan = plan_output(out)
    runs = []
    with progress_bar() as meter:
        for chosen in DEMO:
            options: SettingsOptions = {**_GIVEN, **chosen}
            runs.append(stamped(api.audit(seat="both", **options, **_listeners(meter))))
    result = DemoResult(tuple(runs), str(html))
    write_page(result.page(), html, None)
    finish(plan, result, json, _demonstrated)


def _demonstrated() -> Provenance:
    origin = simulation_provenance(dict(_GIVEN))
    return without_mechanism(origin, [chosen["mechanism"] for chosen in DEMO])


def without_mechanism(origin: Provenance, mechanisms: Sequence[str]) -> Provenance:
    """The same origin with several mechanisms in place of one."""
    one = ("mechanism", "epsilon", "solver")
    common = {name: value for name, value in origin.settings.items() if name not in one}
    return replace(origin, settings={**common, "mechanisms": list(mechanisms)})


def _listeners(meter: Meter) -> dict[str, Any]:
    return {"observe": meter.observe, "announce": meter.announce, "progress": meter.progress}


def _without_record(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name != "record"}


def stamped(result: Made) -> Made:
    """The result with what made it: the version, the command as it was typed, the moment in UTC."""
    return replace(result, version=__version__, command=typed(), audited=moment())


def _finish(
    plan: OutputPlan | None,
    html: Path | None,
    markdown: Path | None,
    json: bool,
    result: Made,
    origin: Callable[[], Provenance],
) -> None:
    """Stamp a result, write its pages, and show it."""
    result = stamped(result)
    if html is not None or markdown is not None:
        write_page(result.page(), html, markdown)
    finish(plan, result, json, origin)


@with_settings
def compare(
    *,
    mechanisms: Annotated[
        str,
        typer.Option(
            help="Mechanisms to compare, separated by commas; name:epsilon sets an epsilon."
        ),
    ] = "mutual,sealed,label-rr,none",
    html: Annotated[
        Path | None, PathUse.WRITTEN, typer.Option(help="Write the comparison as one HTML file.")
    ] = None,
    markdown: Annotated[
        Path | None,
        PathUse.WRITTEN,
        typer.Option(help="Write the comparison as Markdown.", hidden=True),
    ] = None,
    out: Out = None,
    json: Json = False,
    settings: dict[str, Any],
) -> None:
    """Compare mechanisms on the same rows: model quality, leakage, cost.

    Examples:
    taciturn compare --dataset breast-cancer

    taciturn compare --data loans.csv --id customer --label default --mechanisms sealed,none,add:10

    taciturn compare --dataset breast-cancer --html compare.html
    """
    from taciturn_audit import api

    require_writable(html, markdown)
    plan = plan_output(out)
    wanted = _without_record(settings)
    names = tuple(name.strip() for name in mechanisms.split(",") if name.strip())
    with progress_bar() as meter:
        result = api.compare(mechanisms=names, **_listeners(meter), **wanted)
    _finish(plan, html, markdown, json, result, lambda: _compared(wanted, names))


def _compared(settings: dict[str, Any], names: tuple[str, ...]) -> Provenance:
    own = settings.get("mechanism")
    all_names = names if own is None or own in names else (own, *names)
    common = {name: value for name, value in settings.items() if name != "mechanism"}
    # Any mechanism will do to check them by: it is taken out again.
    given = {"seed": 0, **common, "mechanism": "none", "epsilon": None}
    return without_mechanism(simulation_provenance(given), all_names)
