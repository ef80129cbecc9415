"""The Python functions of the audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Unpack

from taciturn.data.split import alice_names
from taciturn.engine.callbacks import Announce, Callbacks, Observer, ReportProgress, noop
from taciturn.engine.transcript import Transcript
from taciturn.errors import ConfigError
from taciturn.extras import explained
from taciturn.jobs.train.record import RecordedRun
from taciturn.privacy.registry import mechanism_class
from taciturn.setting_syntax import Hint, hyphenated
from taciturn.settings.options import given_options, per_seed, record_target
from taciturn.settings.schema import SGD_ONLY, Settings
from taciturn.settings.signatures import SettingsOptions
from taciturn.simulation import arrange, in_cell, load_features, load_raw, settings_of
from taciturn_audit.results.audit import AuditRun
from taciturn_audit.results.check import CheckResult
from taciturn_audit.results.compare import Comparison
from taciturn_audit.results.runs import AuditResult
from taciturn_audit.results.session import SessionAudit
from taciturn_audit.results.woe_audit import WoeAudit


def audit(
    data: object = None,
    labels: object = None,
    *,
    transcript: str | Path | None = None,
    record: str | Path | None = None,
    shuffle_truth: bool = False,
    canary: bool = True,
    seat: str | None = None,
    known_rows: int | None = None,
    further_trainings: bool = False,
    observe: Observer = noop,
    announce: Announce = noop,
    progress: ReportProgress = noop,
    **options: Unpack[SettingsOptions],
) -> AuditResult:
    """Trains, or reads a recorded training, and runs the attacks on each side's view of it.

    Args:
        data: As for ``train``.
        labels: As for ``train``.
        transcript: A file that ``train`` recorded, instead of a new run; its own settings hold, and
            only ``data`` and ``data_dir`` may say where its rows lie now.
        record: Write the transcript of the new run to this file (one seed only).
        shuffle_truth: Judge against labels shuffled after the run: every attack must then sit at
            chance.
        canary: Also train on shuffled labels, unencrypted, and attack that: what is recovered there
            is the protocol's leak alone. And on random labels, where the ledger claims a finite
            epsilon, to set the guesses against the claim. Likewise with Alice's rows permuted
            against Bob's, for his seat.
        seat: Whose view is attacked: ``alice`` for labels, ``bob`` for Alice's columns, or
            ``both``; None for both, and for the recorder's with a transcript. Of several Alices
            ``alice`` is all, who pool what they have; ``alice-1`` is one of them, and
            ``alice-1+alice-3`` are two.
        known_rows: How many rows of Alice's columns Bob knows; None for 10, and for as many as she
            has columns.
        further_trainings: Also train again and attack what that opens: several models of the same
            rows, inputs that a side chooses against single rows, a Bob who knows all other rows.
        observe: Called with each event of the training.
        announce: Called with the name of each attack before it runs.
        progress: Called with how much of an attack is done, and of how much.
        options: Settings, as for ``train``.

    Raises:
        TaciturnError: With what is wrong, where, and the way out.

    >>> result = audit(dataset="breast-cancer", mechanism="none", scheme="clear", seed=1, epochs=1)
    >>> result.attack("exact-solve")["accuracy"]
    1.0
    """
    # Loaded here: a training needs no attack, nor what attacks need.
    with explained():
        from taciturn_audit.session import Session

    callbacks = Callbacks(announce, observe, progress)
    given = given_options(options, audit)
    _check_known_rows(seat, known_rows)
    if transcript is not None:
        if further_trainings:
            raise ConfigError(
                "a transcript is not trained again",
                setting="further_trainings",
                hint=Hint("leave {further_trainings} out, or audit a new run"),
            )
        if seat in ("bob", "both"):
            raise ConfigError(
                "this is Alice's transcript: it does not hold Bob's randomness",
                setting="seat",
                hint=Hint("use {seat}, or audit a new run", seat="alice"),
            )
        if record is not None:
            raise ConfigError("a transcript is read or recorded, not both", setting="record")
        loaded = Transcript.load(Path(transcript))
        return AuditResult(
            (_audit_recorded(loaded, (data, labels), given, callbacks, shuffle_truth, seat),)
        )
    settings, table = settings_of(data, given)
    _check_seat(seat, known_rows, settings.parties)
    target = record_target(record, settings)
    raw = load_raw(settings, table, labels)
    with in_cell(callbacks) as watching:
        session = Session(
            raw,
            watching,
            canary,
            shuffle_truth,
            # Shuffled truth is a check of the audit of labels.
            seat=seat or ("alice" if shuffle_truth else "both"),
            known_rows=known_rows,
            further_trainings=further_trainings,
        )
        return AuditResult(tuple(session.audit(run, target) for run in per_seed(settings)))


def audit_session(
    transcript: str | Path | None = None,
    party: str | Path | None = None,
    *,
    truth: str | Path | None = None,
    guesses: str | Path | None = None,
    write_guesses: str | Path | None = None,
    shuffle_truth: bool = False,
    canary: bool = True,
    seat: str | None = None,
    known_rows: int | None = None,
    announce: Announce = noop,
    observe: Observer = noop,
    progress: ReportProgress = noop,
) -> SessionAudit:
    """Audits a real session from one side's own recording; the other side's table judges.

    The recording is attacked from its recorder's seat: Alice's for labels, Bob's for her columns.

    Args:
        transcript: What ``taciturn party --record`` wrote.
        party: The settings file of the side that recorded, beside its table.
        truth: The other side's settings file, beside its table: Bob's labels judge guesses, Alice's
            columns estimates.
        guesses: Judge what Alice's side wrote down, instead of a recording.
        write_guesses: Write down what the attacks say of each row, for Bob to judge.
        shuffle_truth: Judge against labels shuffled after the run: every attack must then sit at
            chance.
        canary: Also train on shuffled and on random labels, if both sides' tables are given; at
            Bob's seat, with Alice's rows permuted against his.
        seat: The recorder's, which is the only one there is; None for that.
        known_rows: How many rows of Alice's columns Bob knows, at his seat; they are drawn from her
            table, where it is given. None for 10, and for as many as she has columns.
        announce: Called with the name of each attack before it runs.
        observe: Called with each event of such a training.
        progress: Called with how much of an attack is done, and of how much.

    Raises:
        TaciturnError: With what is wrong, where, and the way out.
    """
    with explained():
        from taciturn_audit import recorded
        from taciturn_audit.guesses import GuessesFile
        from taciturn_audit.recording import OtherSide, RecordedSession

    _check_seat(seat, known_rows)
    if shuffle_truth and truth is None:
        raise ConfigError(
            "there are no labels to shuffle",
            setting="shuffle_truth",
            hint=Hint("give {truth} too: Bob's file", truth="bob.toml"),
        )
    if guesses is not None:
        if transcript is not None or party is not None or write_guesses is not None:
            raise ConfigError(
                "guesses are judged without a recording and without Alice's file",
                setting="guesses",
                hint=Hint(
                    "give {truth} and nothing else, or leave {guesses} out", truth="bob.toml"
                ),
            )
        if truth is None:
            raise ConfigError(
                "guesses cannot be judged without labels",
                setting="guesses",
                hint=Hint("give {truth} too: Bob's file", truth="bob.toml"),
            )
        file = GuessesFile.load(Path(guesses))
        judge = OtherSide.read(Path(truth), file.recording)
        return recorded.audit_guesses(file, judge, shuffle_truth=shuffle_truth)
    if transcript is None or party is None:
        missing = "party" if party is None else "transcript"
        raise ConfigError(
            "a real session is audited by a recording and the file of the side that made it",
            setting=missing,
            hint=Hint("give {transcript} and {party}", transcript="FILE", party="alice.toml"),
        )
    session = RecordedSession.read(Path(transcript), Path(party))
    if seat not in (None, recorder := session.recording.recorder):
        raise ConfigError(
            f"this is {recorder.capitalize()}'s recording, and shows no other view",
            setting="seat",
            hint=Hint("use {seat}", seat=recorder),
        )
    return recorded.audit_recording(
        session,
        None if truth is None else Path(truth),
        write_guesses=None if write_guesses is None else Path(write_guesses),
        callbacks=Callbacks(announce, observe, progress),
        canary=canary,
        shuffle_truth=shuffle_truth,
        known_rows=known_rows,
    )


def audit_woe(
    data: object = None,
    labels: object = None,
    *,
    smoothing: float = 0.5,
    min_rows: int | None = None,
    announce: Announce = noop,
    progress: ReportProgress = noop,
    **options: Unpack[SettingsOptions],
) -> WoeAudit:
    """Audit of handing weights of evidence to the feature party, and of ``woe``.

    Args:
        data: As for ``train``.
        labels: As for ``train``.
        smoothing: As for ``woe``.
        min_rows: As for ``woe``.
        announce: Called with what runs now.
        progress: Called with how much is done, and of how much.
        options: Settings, as for ``train``.

    Raises:
        TaciturnError: With what is wrong, where, and the way out.

    >>> result = audit_woe(dataset="breast-cancer", scheme="clear", seed=1)
    >>> result.roundings[3].digits, result.roundings[3].exact
    (4, 1.0)
    """
    with explained():
        from taciturn_audit.woe import audit_woe as attack
        from taciturn_risk.woe.job import WoeOptions

    chosen = WoeOptions(smoothing, min_rows)
    settings, table = settings_of(data, given_options(options, audit_woe))
    raw = load_raw(settings, table, labels)
    with in_cell(Callbacks(announce, progress=progress)) as watching:
        return attack(settings, raw, chosen, watching)


DEFAULT_MECHANISMS = ("sealed", "none", "label-rr", "add")

_DEFAULT_EPSILON = 1.0


def compare(
    data: object = None,
    labels: object = None,
    *,
    mechanisms: Sequence[str] = DEFAULT_MECHANISMS,
    announce: Announce = noop,
    observe: Observer = noop,
    progress: ReportProgress = noop,
    **options: Unpack[SettingsOptions],
) -> Comparison:
    """Compare mechanisms on the same rows: the model, the labels that Alice recovers, the cost.

    Args:
        data: As for ``train``.
        labels: As for ``train``.
        mechanisms: Names, each with an epsilon of its own if one stands behind a colon
            (``add:10``); others take ``epsilon``, or 1 where they need one.
        announce: Called with what runs now.
        observe: Called with each event of a training.
        progress: Called with how much of an attack is done, and of how much.
        options: Settings, as for ``train``; their mechanism is compared too. Without a seed it is
            0, so that all are trained on the same rows.

    Raises:
        TaciturnError: With what is wrong, where, and the way out.

    >>> result = compare(dataset="breast-cancer", mechanisms=("none",), epochs=1, scheme="clear")
    >>> result.compared[0].shuffled.leak
    True
    """
    with explained():
        from taciturn_audit.compare import compare as side_by_side

    given = given_options(options, compare)
    base_mechanism = str(given.pop("mechanism", ""))
    if base_mechanism and base_mechanism not in {name.partition(":")[0] for name in mechanisms}:
        # That of the settings, in a file say, is one to compare.
        mechanisms = (base_mechanism, *mechanisms)
    _require_comparable(mechanisms)
    given.setdefault("seed", 0)

    def settings_with(name: str) -> tuple[Settings, object]:
        mechanism, _, epsilon = name.partition(":")
        chosen = {**given, "mechanism": mechanism, **_epsilon_of(mechanism, epsilon, given)}
        if "sgd" not in mechanism_class(mechanism).solvers:
            # Batches and steps are those of the others.
            chosen |= dict.fromkeys(SGD_ONLY)
        return settings_of(data, chosen)

    usual, table = settings_of(data, {**given, "mechanism": "none"} | {"epsilon": None})
    raw = load_raw(usual, table, labels)
    wanted = [(name, lambda name=name: per_seed(settings_with(name)[0])) for name in mechanisms]
    with in_cell(Callbacks(announce, observe, progress)) as watching:
        return side_by_side(wanted, raw, watching)


def _require_comparable(mechanisms: Sequence[str]) -> None:
    """Refuses names that are none.

    Raises:
        ConfigError: Says which.
    """
    if not mechanisms or len(set(mechanisms)) < len(mechanisms):
        raise ConfigError(
            "name at least one mechanism, and none twice",
            setting="mechanisms",
            hint=Hint("use {mechanisms}, say", mechanisms=",".join(DEFAULT_MECHANISMS)),
        )
    for name in mechanisms:
        mechanism, colon, epsilon = name.partition(":")
        mechanism_class(mechanism)
        if colon:
            try:
                float(epsilon)
            except ValueError:
                raise ConfigError(
                    f"{epsilon!r} is not an epsilon",
                    setting="mechanisms",
                    hint=Hint("use {mechanisms}, say", mechanisms="add:10,label-rr:1"),
                ) from None


def _epsilon_of(mechanism: str, epsilon: str, given: Mapping[str, object]) -> dict[str, object]:
    """The epsilon of one mechanism of several: its own, the common one, or 1; none where unused."""
    if "epsilon" not in mechanism_class(mechanism).takes:
        return {"epsilon": None}
    return {"epsilon": float(epsilon) if epsilon else given.get("epsilon", _DEFAULT_EPSILON)}


def check(
    data: object = None,
    *,
    party: str | Path | None = None,
    columns: int | None = None,
    rows: int | None = None,
    seat: str | None = None,
    known_rows: int | None = None,
    announce: Announce = noop,
    **options: Unpack[SettingsOptions],
) -> CheckResult:
    """Show before any training what Alice could learn with these settings.

    Args:
        data: A path or a frame with her columns; a label column is not needed and not looked at.
        party: A party's own file, in place of all settings: its table and agreement are rehearsed,
            and something stands in for the other side's, as the notes say.
        columns: Only their number, where there is no table: random ones stand in.
        rows: How many rows there will be, with ``columns`` (2,000).
        seat: ``bob`` or ``both``: also what Bob will be able to tell of Alice's columns, and what
            she can do about it. None for ``both`` where her own file is checked, else ``alice``.
        known_rows: How many of her rows Bob knows; None for 10, and for as many as her columns.
        announce: Called with what runs now.
        options: Settings, as for ``train``.

    Raises:
        TaciturnError: With what is wrong, where, and the way out.

    >>> check(columns=30, mechanism="none", batch_size=16, epochs=1).worst
    'leaks'
    """
    with explained():
        from taciturn_audit.preflight import preflight
        from taciturn_audit.rehearsal import random_table

    given = given_options(options, check)
    _check_seat(seat, known_rows)
    if party is not None:
        from taciturn.party.config import PartyConfig
        from taciturn_audit.party_check import check_party

        besides = {"data": data, **given, "rows": rows}
        for name in (name for name, value in besides.items() if value is not None):
            raise ConfigError(
                f"{hyphenated(name)} is set by the party's file",
                setting=name,
                hint="with a party's file only the number of Alice's columns may be given",
            )
        config = PartyConfig.read(Path(party))
        return check_party(config, columns, announce, seat=seat, known_rows=known_rows)
    seat = seat or ("alice" if known_rows is None else "both")
    if columns is not None:
        if data is not None or given.get("dataset"):
            raise ConfigError("columns replaces a table: give one of the two", setting="columns")
        if columns < 1 or (rows is not None and rows < 2):
            raise ConfigError("a table needs at least one column and two rows", setting="columns")
        settings, _ = settings_of(None, given)
        features = random_table(rows or 2000, columns)
        return preflight(settings, features, seat=seat, known_rows=known_rows, announce=announce)
    if rows is not None:
        raise ConfigError(
            "rows is used only with columns", setting="rows", hint=Hint("give {columns} too")
        )
    # Alice's table has no labels: a name that no column has keeps the settings content.
    label = {"label": given.get("label") or _NO_LABEL} if data is not None else {}
    settings, table = settings_of(data, {**given, **label})
    features = load_features(settings, table)
    return preflight(settings, features, seat=seat, known_rows=known_rows, announce=announce)


_NO_LABEL = "(no label)"


def _check_seat(seat: str | None, known_rows: int | None, parties: int = 1) -> None:
    from taciturn_audit.adversaries import members

    members(seat or "both", alice_names(parties) if parties > 1 else ())
    _check_known_rows(seat, known_rows)


def _check_known_rows(seat: str | None, known_rows: int | None) -> None:
    if known_rows is not None and known_rows < 0:
        raise ConfigError(
            f"Bob cannot know {known_rows} rows", setting="known_rows", hint="use 0 or more"
        )
    if known_rows is not None and seat not in (None, "bob", "both"):
        raise ConfigError(
            "known rows are Bob's: he knows them of Alice's columns",
            setting="known_rows",
            hint=Hint("use {seat}, or leave {known_rows} out", seat="bob"),
        )


def _audit_recorded(
    transcript: Transcript,
    given: tuple[object, object],
    options: Mapping[str, object],
    callbacks: Callbacks,
    shuffle_truth: bool,
    seat: str | None,
) -> AuditRun:
    """Audit a recorded run: its settings load the rows, its randomness splits them."""
    from taciturn_audit.adversaries import alice_view, members
    from taciturn_audit.session import Session

    run = RecordedRun.from_transcript(transcript)
    for name in options:
        # Where the rows lie now is no part of the run; all else is the recording's.
        if name != "data_dir":
            raise ConfigError(
                f"{hyphenated(name)} is fixed by the transcript",
                setting=name,
                hint=Hint("with {transcript} only {data} and {data_dir} may be given"),
            )
    settings, table = settings_of(given[0], {**run.settings.model_dump(), **options})
    raw = load_raw(settings, table, given[1])
    vertical = arrange(settings, raw, run.entropy)
    names = members(seat or "alice", [name for name, _ in vertical.alices])
    view = alice_view(transcript, vertical, names)
    run.require_labels(vertical.labels_train)
    session = Session(raw, callbacks, shuffle_truth=shuffle_truth, seat=seat or "alice")
    return session.examine(settings, view, vertical.labels_train, run.result)
