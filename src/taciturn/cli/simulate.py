"""``train``, ``check``, ``audit`` and ``demo``: both parties in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import typer

from taciturn.cli.console import Json, progress_bar
from taciturn.cli.options import with_settings
from taciturn.cli.out import Origin, Out, Plan, finish, of_party, planned, simulated, typed
from taciturn.cli.watching import Watch, WatchPort, watched_bar
from taciturn.errors import ConfigError
from taciturn.faces import Hint, hyphenated
from taciturn.files import require_writable, write_text
from taciturn.version import __version__

if TYPE_CHECKING:
    from taciturn.api import AuditResult
    from taciturn.report.blocks import Page
    from taciturn.results.compare import Comparison
    from taciturn.results.session import SessionAudit
    from taciturn.results.woe_audit import WoeAudit
    from taciturn.settings.options import SettingsOptions

    Made = TypeVar("Made", AuditResult, SessionAudit, Comparison, WoeAudit)

KnownRows: TypeAlias = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Rows of Alice's that Bob knows (default: 10, and as many as she has columns).",
    ),
]


@with_settings
def train(
    *,
    model_report: Annotated[
        Path | None,
        typer.Option(help="Write the model's page: KS, gains, calibration, exact Wald tests."),
    ] = None,
    watch: Watch = False,
    watch_port: WatchPort = None,
    out: Out = None,
    json: Json = False,
    settings: dict[str, Any],
) -> None:
    """Train between two simulated parties: metrics, ledger, traffic.

    [bold]Examples[/bold]

    taciturn train --dataset breast-cancer --mechanism none --seed 1

    taciturn train --dataset breast-cancer --seed 1 --out runs/

    taciturn train --data loans.csv --id customer --label default --alice-columns half

    taciturn train --dataset breast-cancer --watch

    taciturn train --dataset breast-cancer --model-report model.html
    """
    from taciturn import api
    from taciturn.cli.model_report import write_model_page
    from taciturn.report.training import training_blocks
    from taciturn.results.live import LedgerPlanned

    plan = planned(out)
    require_writable(model_report)
    with watched_bar("train", watch, watch_port, asked(settings)) as meter:
        result = api.train(observe=meter.observe, **settings)
        meter.publish(LedgerPlanned(result.runs.first.ledger, settings.get("budget")))
    finish(plan, result.runs, json, training_blocks, lambda: simulated(settings))
    if model_report is not None:
        write_model_page(result.model_report(), model_report)


@with_settings
def check(
    *,
    party: Annotated[
        Path | None,
        typer.Argument(help="A party's TOML file: check its agreement on its own table."),
    ] = None,
    columns: Annotated[
        int | None, typer.Option(min=1, help="The number of Alice's columns, in place of a table.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(min=2, help="With --columns: the number of rows (default: 2000).")
    ] = None,
    seat: Annotated[
        str | None,
        typer.Option(
            help="bob or both: also what Bob will be able to tell of Alice's columns, with advice "
            "to her (default: both for her own file, else alice)."
        ),
    ] = None,
    known_rows: KnownRows = None,
    out: Out = None,
    json: Json = False,
    settings: dict[str, Any],
) -> None:
    """Show before any training what Alice will be able to learn, and what to change.

    Alice's own table may be given with --data: no label is needed or used. With a party's file its
    agreement is checked on its own table, and something stands in for the other side's.

    [bold]Examples[/bold]

    taciturn check --dataset breast-cancer --mechanism hybrid

    taciturn check --columns 40 --rows 5000 --mechanism add --epsilon 1 --epochs 5

    taciturn check --data alice.csv --id customer --mechanism none --batch-size 64

    taciturn check --dataset breast-cancer --alice-columns half --seat bob

    taciturn check bob.toml
    """
    from taciturn import api
    from taciturn.report.check import check_blocks

    plan = planned(out)
    wanted = {key: value for key, value in settings.items() if key != "record"}
    with progress_bar() as meter:
        result = api.check(
            seat=seat,
            known_rows=known_rows,
            party=party,
            columns=columns,
            rows=rows,
            announce=meter.announce,
            **wanted,
        )
    beside = {"seat": seat, "known_rows": known_rows, "columns": columns, "rows": rows}
    finish(plan, result, json, check_blocks, lambda: _checked(party, wanted, beside))


def _checked(party: Path | None, settings: dict[str, Any], beside: dict[str, Any]) -> Origin:
    if party is not None:
        from taciturn.deploy.config import PartyConfig

        return of_party(PartyConfig.read(party))
    if "data" in settings:
        # Alice's table has no labels, and settings of own data name their column.
        origin = simulated({"label": "", **settings}, **beside)
        kept = {name: value for name, value in origin.settings.items() if value != ""}
        return replace(origin, settings=kept)
    origin = simulated(settings, **beside)
    return origin if beside["columns"] is None else replace(origin, source="random columns")


@with_settings
def audit(
    *,
    transcript: Annotated[
        Path | None,
        typer.Option(
            help="Audit a run that train --record wrote, or party --record (see --party)."
        ),
    ] = None,
    party: Annotated[
        Path | None,
        typer.Option(help="With --transcript: the file of the side that recorded a real session."),
    ] = None,
    truth: Annotated[
        Path | None, typer.Option(help="A real session: the other side's file, whose table judges.")
    ] = None,
    guesses: Annotated[
        Path | None,
        typer.Option(help="With --truth: judge what Alice's side wrote with --write-guesses."),
    ] = None,
    write_guesses: Annotated[
        Path | None,
        typer.Option(help="With --party: write the guesses at each row, for Bob's side to judge."),
    ] = None,
    shuffle_truth: Annotated[
        bool,
        typer.Option(
            "--shuffle-truth",
            help="Judge against labels shuffled after the run: every attack must sit at chance.",
        ),
    ] = False,
    canary: Annotated[
        bool,
        typer.Option(
            "--canary/--no-canary",
            help="Also attack a run on shuffled labels: the protocol's leak alone.",
        ),
    ] = True,
    seat: Annotated[
        str | None,
        typer.Option(
            help="Whose view is attacked: alice (labels), bob (Alice's columns) or both (default: "
            "both; with --transcript the recorder's). With --parties alice is all of them "
            "together, and alice-1 or alice-1+alice-3 are some."
        ),
    ] = None,
    known_rows: KnownRows = None,
    woe: Annotated[
        bool,
        typer.Option(
            "--woe",
            help="In place of a training: what weights of evidence, or rates, of her bins tell "
            "Alice where they are handed to her, and what taciturn woe tells.",
        ),
    ] = False,
    html: Annotated[Path | None, typer.Option(help="Write the report as one HTML file.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the report as Markdown.")] = None,
    out: Out = None,
    json: Json = False,
    settings: dict[str, Any],
) -> None:
    """Train, or read a transcript, and run the attacks that Alice and Bob could run.

    [bold]Examples[/bold]

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
    from taciturn import api
    from taciturn.report.audit import audit_blocks
    from taciturn.report.shown import result_page

    require_writable(html, markdown, write_guesses)
    plan = planned(out)
    if woe:
        recorded: dict[str, Any] = {"transcript": transcript, "party": party, "truth": truth}
        recorded |= {"guesses": guesses, "write_guesses": write_guesses}
        recorded |= {"shuffle_truth": shuffle_truth or None, "seat": seat}
        _require_no_recording({**recorded, "known_rows": known_rows})
        _audit_woe(settings, html, markdown, json, plan)
        return
    if any(path is not None for path in (party, truth, guesses, write_guesses)):
        _refuse_settings(settings)
        files = {"transcript": transcript, "party": party, "truth": truth}
        files |= {"guesses": guesses, "write_guesses": write_guesses}
        asked: dict[str, Any] = {"shuffle_truth": shuffle_truth, "canary": canary}
        asked |= {"seat": seat, "known_rows": known_rows}
        _audit_session({**files, **asked}, html, markdown, json, plan)
        return
    with progress_bar() as meter:
        result = api.audit(
            transcript=transcript,
            shuffle_truth=shuffle_truth,
            canary=canary,
            seat=seat,
            known_rows=known_rows,
            observe=meter.observe,
            announce=meter.announce,
            progress=meter.progress,
            **settings,
        )
    result = stamped(result)
    _write_reports(result, html, markdown)
    asked = {"seat": seat, "known_rows": known_rows}
    asked |= {"shuffle_truth": shuffle_truth or None, "canary": None if canary else False}
    finish(
        plan,
        result,
        json,
        audit_blocks,
        lambda: _audited(transcript, settings, asked),
        lambda: result_page(result),
    )


def _require_no_recording(given: dict[str, Any]) -> None:
    for name, value in given.items():
        if value is not None:
            raise ConfigError(
                f"{hyphenated(name)} belongs to the audit of a training",
                where=f"--{hyphenated(name)}",
                hint="leave it out, or leave --woe out",
            )


def _audit_woe(
    settings: dict[str, Any],
    html: Path | None,
    markdown: Path | None,
    json: bool,
    plan: Plan | None,
) -> None:
    from taciturn import api
    from taciturn.report.woe import woe_audit_blocks, woe_audit_page

    wanted = {key: value for key, value in settings.items() if key != "record"}
    with progress_bar() as meter:
        result = stamped(api.audit_woe(announce=meter.announce, progress=meter.progress, **wanted))
    if html is not None or markdown is not None:
        write_page(woe_audit_page(result), html, markdown)
    finish(
        plan,
        result,
        json,
        woe_audit_blocks,
        lambda: untrained(simulated(settings)),
        lambda: woe_audit_page(result),
    )


def untrained(origin: Origin) -> Origin:
    """The same origin without what only a training has."""
    trained = ("mechanism", "epsilon", "solver")
    settings = {name: value for name, value in origin.settings.items() if name not in trained}
    return replace(origin, settings=settings)


def _audited(transcript: Path | None, settings: dict[str, Any], asked: dict[str, Any]) -> Origin:
    """What was audited: a new run, or a recorded one, whose own settings hold."""
    if transcript is None:
        return simulated(settings, **asked)
    from taciturn.engine.transcript import Transcript
    from taciturn.simulation.record import RecordedRun

    recorded = RecordedRun.of(Transcript.load(transcript)).settings
    return simulated({**recorded.model_dump(exclude_none=True), **settings}, **asked)


def _refuse_settings(settings: dict[str, Any]) -> None:
    for name in settings:
        raise ConfigError(
            f"{hyphenated(name)} is fixed by the recording",
            setting=name,
            hint=Hint("leave {" + name + "} out: a real session has its own settings"),
        )


def _audit_session(
    options: dict[str, Any],
    html: Path | None,
    markdown: Path | None,
    json: bool,
    plan: Plan | None,
) -> None:
    from taciturn import api
    from taciturn.report.session import session_blocks, session_page

    with progress_bar() as meter:
        result = api.audit_session(
            **options,
            announce=meter.announce,
            observe=meter.observe,
            progress=meter.progress,
        )
    result = stamped(result)
    if html is not None or markdown is not None:
        write_page(session_page(result), html, markdown)
    finish(
        plan, result, json, session_blocks, lambda: _session(result), lambda: session_page(result)
    )


def _session(result: SessionAudit) -> Origin:
    recording = result.recording
    digests = {"table": recording.table_digest, "ids": recording.ids_digest}
    name = f"session {recording.session[:12]}"
    return Origin(dict(recording.agreement), name, digests, private=True)


# What Bob sees of the first two he sees of sealed too. Ten epochs would be right about one held-out
# row more of 114.
DEMO: tuple[tuple[str, SettingsOptions], ...] = (
    ("alice", {"mechanism": "none", "solver": "sgd", "epochs": 5}),
    ("alice", {"mechanism": "hybrid", "epochs": 5}),
    ("both", {"mechanism": "sealed"}),
    ("both", {"mechanism": "mutual"}),
)


def demo(
    html: Annotated[Path, typer.Option(help="Where to write the report on the last run.")] = Path(
        "taciturn-demo.html"
    ),
    out: Out = None,
    json: Json = False,
) -> None:
    """Train on breast-cancer: without protection, as the paper does it, sealed, and mutual.

    Both parties run in this process, with real encryption. Alice holds all 30 columns, Bob the
    labels; the attacks show what either can learn of the other's from the messages.
    """
    from taciturn import api
    from taciturn.report.audit import demo_blocks
    from taciturn.report.shown import result_page
    from taciturn.results.saved import DemoResult

    require_writable(html)
    plan = planned(out)
    runs = []
    with progress_bar() as meter:
        for seat, chosen in DEMO:
            options: SettingsOptions = {"dataset": "breast-cancer", "seed": 1, **chosen}
            audited = api.audit(
                seat=seat,
                observe=meter.observe,
                announce=meter.announce,
                progress=meter.progress,
                **options,
            )
            runs.append(stamped(audited))
    _write_reports(runs[-1], html, None)
    result = DemoResult(tuple(runs), str(html))
    finish(plan, result, json, demo_blocks, _demonstrated, lambda: result_page(result))


def _demonstrated() -> Origin:
    origin = simulated({"dataset": "breast-cancer", "seed": 1})
    return without_mechanism(origin, [chosen["mechanism"] for _, chosen in DEMO])


def without_mechanism(origin: Origin, mechanisms: Sequence[str]) -> Origin:
    """The same origin with several mechanisms in place of one."""
    one = ("mechanism", "epsilon", "solver")
    common = {name: value for name, value in origin.settings.items() if name not in one}
    return replace(origin, settings={**common, "mechanisms": list(mechanisms)})


def _write_reports(result: AuditResult, html: Path | None, markdown: Path | None) -> None:
    if html is None and markdown is None:
        return
    # Imported here: drawing takes a second to load.
    from taciturn.report.page import audit_page

    write_page(audit_page(result), html, markdown)


def write_page(page: Page, html: Path | None, markdown: Path | None) -> None:
    """Writes a page in the forms that were asked for."""
    from taciturn.report.html import render as render_html
    from taciturn.report.markdown import render as render_markdown

    if html is not None:
        write_text(html, render_html(page))
    if markdown is not None:
        write_text(markdown, render_markdown(page))


def stamped(result: Made) -> Made:
    """The result with what made it: the version, the command as it was typed, the moment in UTC."""
    moment = datetime.now(UTC).isoformat(timespec="seconds")
    return replace(result, version=__version__, command=typed(), audited=moment)


def asked(settings: dict[str, Any]) -> dict[str, object]:
    """What was asked for, in the words of the command line."""
    named = {name: value for name, value in settings.items() if value not in (None, (), [])}
    return {hyphenated(name): value for name, value in named.items()}
