"""The front door: ``align``, ``train``, ``check`` and ``audit``.

Options are the fields of ``Settings``, with the types of ``SettingsOptions``; each is also an
option of the commands and a key of their TOML file.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast, overload

import polars as pl

from taciturn.arrays import FloatArray
from taciturn.data.split import alice_names
from taciturn.engine.callbacks import (
    Announce,
    Callbacks,
    Observer,
    ReportProgress,
    ignore,
    quietly,
    silent,
)
from taciturn.engine.transcript import Transcript
from taciturn.errors import ConfigError, counted
from taciturn.extras import explained
from taciturn.faces import Hint, hyphenated
from taciturn.jobs.woe.result import WoeResult
from taciturn.privacy.registry import mechanism_class
from taciturn.report import notebook
from taciturn.report.progress import in_cell
from taciturn.results.audit import AuditRun
from taciturn.results.check import CheckResult as PlainCheck
from taciturn.results.compare import Comparison
from taciturn.results.estimate import Estimate
from taciturn.results.model_report import ModelReport
from taciturn.results.run_list import RunList as PlainRunList
from taciturn.results.runs import AuditResult as PlainAudit
from taciturn.results.runs import Runs
from taciturn.results.session import SessionAudit
from taciturn.results.study import SimulatedStudy
from taciturn.results.training import TrainingRun
from taciturn.results.woe_audit import WoeAudit
from taciturn.settings.checked import named
from taciturn.settings.options import SettingsOptions
from taciturn.settings.schema import SGD_ONLY, WHOLE_TABLE_ONLY, Settings
from taciturn.simulation.estimate import estimate as calibrate
from taciturn.simulation.outcome import Outcome, require_arrived
from taciturn.simulation.record import RecordedRun
from taciturn.simulation.run import simulate
from taciturn.simulation.source import arrange, load_features, load_raw

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class Displayed:
    """A result that a notebook shows as tables."""

    __slots__ = ()

    def to_pandas(self) -> pd.DataFrame:
        """The figures as a pandas frame.

        Raises:
            ConfigError: pandas is not installed; says which extra brings it.
        """
        return notebook.to_frame(notebook.rows_of(self._shown()))

    def plot(self) -> Figure:
        """The picture: how attacks compare with the controls, or predictions with what happened.

        Raises:
            ConfigError: matplotlib is not installed; says which extra brings it.
            TypeError: There is none, as of a check and of a list of runs.
        """
        return notebook.draw(self._shown())

    def _repr_html_(self) -> str | None:
        return notebook.to_html(self._shown())

    def _shown(self) -> notebook.Shown:
        result: Any = self
        return cast(notebook.Shown, result)


@dataclass(frozen=True, slots=True)
class AuditResult(Displayed, PlainAudit):
    """What the attacks found in one run, or in several seeds of it."""

    def __repr__(self) -> str:
        findings = self.findings
        return f"AuditResult({self.first.dataset}, {self.first.mechanism}: {findings.verdict})"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult(Displayed, PlainCheck):
    """What Alice will be able to do, attack by attack, and what to change."""

    @classmethod
    def of(cls, result: PlainCheck) -> CheckResult:
        """The same result, which a notebook shows."""
        return cls(**{entry.name: getattr(result, entry.name) for entry in fields(result)})


@dataclass(frozen=True, slots=True)
class TrainResult(Displayed):
    """One training, or several seeds of it.

    >>> result = train(dataset="breast-cancer", mechanism="none", scheme="clear", seed=1, epochs=2)
    >>> result.to_dict()["alice_columns"]
    30
    """

    outcomes: tuple[Outcome, ...] = field(repr=False)

    @property
    def weights(self) -> dict[str, FloatArray]:
        """Each party's weights (of the first seed)."""
        first = self.outcomes[0]
        return {"alice": first.alice_weights, "bob": first.bob_weights}

    @property
    def runs(self) -> Runs[TrainingRun]:
        """What each training gave, and their means."""
        return Runs(tuple(outcome.result for outcome in self.outcomes))

    def to_dict(self) -> dict[str, Any]:
        """The record of ``taciturn train --json``."""
        return self.runs.to_dict()

    def model_report(
        self,
        *,
        costs: tuple[float, float] | None = None,
        bands: int = 10,
        points: tuple[float, float, float] = (600.0, 50.0, 20.0),
    ) -> ModelReport:
        """What the model is worth (of the first seed), with exact standard errors.

        Args:
            costs: What a false alarm and a miss cost.
            bands: How many score bands.
            points: Base score, base odds, and the points that double the odds.

        Raises:
            ConfigError: One of them is not fit for use.

        >>> result = train(dataset="breast-cancer", mechanism="none", scheme="clear", seed=1)
        >>> [(rows.name, rows.metrics.rows) for rows in result.model_report().judged]
        [('training', 455), ('held-out', 114)]
        """
        from taciturn.numerics.cutoffs import Costs
        from taciturn.numerics.scorecard import Scale
        from taciturn.simulation.model_report import simulated_report

        known, scale = None if costs is None else Costs(*costs), Scale(*points)
        return simulated_report(self.outcomes[0], costs=known, bands=bands, scale=scale)

    def __repr__(self) -> str:
        first, test = self.runs.first, self.runs.means.test
        figures = f"held-out AUC {test.get('auc', math.nan):.4f}, log loss {test['loss']:.4f}"
        return f"TrainResult({first.dataset}, {first.mechanism}: {figures})"

    def _shown(self) -> notebook.Shown:
        return self.runs


@dataclass(frozen=True, slots=True)
class RunList(Displayed, PlainRunList):
    """The runs of a folder, and those of them that cannot be shown."""

    def __repr__(self) -> str:
        return f"RunList({self.folder}: {counted(len(self.listed), 'run')})"


@overload
def align(  # type: ignore[overload-overlap]  # a list is an object too, and comes first
    alice: list[Any], bob: object, *, id: str = ..., bob_id: str | None = ..., normalise: str = ...
) -> tuple[list[pl.DataFrame], pl.DataFrame]: ...


@overload
def align(
    alice: object, bob: object, *, id: str = ..., bob_id: str | None = ..., normalise: str = ...
) -> tuple[pl.DataFrame, pl.DataFrame]: ...


def align(
    alice: object,
    bob: object,
    *,
    id: str = "id",
    bob_id: str | None = None,
    normalise: str = "none",
) -> tuple[pl.DataFrame | list[pl.DataFrame], pl.DataFrame]:
    """The rows that tables have in common, found as the parties find them.

    Args:
        alice: A path to a CSV or Parquet file, or a pandas or polars frame; a list of them for
            several Alices.
        bob: A path or a frame.
        id: The column that names the rows.
        bob_id: Bob's, where it has another name.
        normalise: none, or any of trim, case, nfkc and zeros, separated by commas.

    Returns:
        The common rows of Alice's table and of Bob's, in the same order; of a list of tables, a
        list of theirs.

    Raises:
        TaciturnError: With what is wrong, where, and the way out.

    >>> hers = pl.DataFrame({"id": [3, 1, 2], "age": [30, 40, 50]})
    >>> his = pl.DataFrame({"id": [2, 4, 3], "paid": [1, 0, 0]})
    >>> [table.rows() for table in align(hers, his)]
    [[(2, 50), (3, 30)], [(2, 1), (3, 0)]]
    >>> others = pl.DataFrame({"id": [3, 4], "wage": [7, 8]})
    >>> hers, his = align([hers, others], his)
    >>> [table.rows() for table in hers], his.rows()
    ([[(3, 30)], [(3, 7)]], [(3, 0)])
    """
    # Loaded here: the sides of a job know the party's files too.
    from taciturn.jobs.align.simulation import align_tables

    his = id if bob_id is None else bob_id
    if not isinstance(alice, list):
        (one,), two = align_tables([alice], bob, alice_id=id, bob_id=his, normalise=normalise)
        return one, two
    if not alice:
        raise ConfigError("there is no table of an Alice", where="alice=", hint="name one or more")
    return align_tables(alice, bob, alice_id=id, bob_id=his, normalise=normalise)


def train(
    data: object = None,
    labels: object = None,
    *,
    record: str | Path | None = None,
    observe: Observer = ignore,
    **options: Unpack[SettingsOptions],
) -> TrainResult:
    """Trains a logistic regression between two simulated parties.

    Args:
        data: A path, or a pandas or polars frame with a ``label`` column; or columns alone (also a
            NumPy array or a ``FeatureTable``) with ``labels`` beside them; or nothing, and
            ``dataset`` names one.
        labels: The 0/1 labels of the rows (an array, a series or a ``LabelTable``).
        record: Write the transcript to this file (one seed only).
        observe: Called with each event of the run.
        options: Settings: mechanism, scheme, epochs, alice_columns, seed, …

    Returns:
        Metrics, weights, ledger and traffic.

    Raises:
        DivergenceError: The model is worse than none, and not by noise that protects labels.
        TaciturnError: With what is wrong, where, and the way out.

    >>> train(dataset="breast-cancr", mechanism="none")
    Traceback (most recent call last):
        ...
    taciturn.errors.ConfigError: unknown dataset breast-cancr
      where: dataset=
      try:   did you mean breast-cancer? ...
    """
    settings, table = _settings(data, _given(options, train))
    target = _target(record, settings)
    raw = load_raw(settings, table, labels)
    outcomes = []
    with in_cell(Callbacks(observe=observe)) as watching:
        for run in _per_seed(settings):
            outcomes.append(simulate(run, raw, record=target, observe=watching.observe))
            require_arrived(outcomes[-1].result)
    return TrainResult(tuple(outcomes))


def study(
    data: object = None,
    labels: object = None,
    *,
    vary: Mapping[str, Sequence[object]],
    folds: int = 0,
    rank_by: str = "loss",
    processes: int | None = None,
    progress: ReportProgress = quietly,
    **options: Unpack[SettingsOptions],
) -> SimulatedStudy:
    """Trains a model for each combination of some settings' values, on all cores.

    Args:
        data: As for ``train``.
        labels: As for ``train``.
        vary: For each setting that varies its values: ``{"l2": [1e-5, 1e-4], "passes": [12, 24]}``.
        folds: How many folds judge each combination; 0 for the held-out rows.
        rank_by: ``loss`` or ``auc``.
        processes: How many train at a time; None for one a core.
        progress: Called with how many models are trained, and of how many.
        options: Settings, as for ``train``.

    Raises:
        TaciturnError: With what is wrong, where, and the way out.

    >>> study(dataset="breast-cancer", vary={"l3": [1, 2]})
    Traceback (most recent call last):
        ...
    taciturn.errors.ConfigError: unknown setting l3
      where: l3=
      try:   ...
    """
    from taciturn.settings.study import Study
    from taciturn.simulation.study import simulate_study

    settings, table = _settings(data, _given(options, study))
    listed = {name: list(values) for name, values in vary.items()}
    wanted = Study.of({"folds": folds, "rank_by": rank_by, **listed})
    raw = load_raw(settings, table, labels)
    with in_cell(Callbacks(progress=progress)) as watching:
        return simulate_study(
            settings,
            wanted,
            raw,
            workers=processes,
            progress=watching.progress,
        )


def estimate(
    data: object = None, labels: object = None, **options: Unpack[SettingsOptions]
) -> Estimate:
    """How long a training with these settings will take, and how many bytes will cross.

    The training runs for a few seconds, on a sample of its rows or for its first iterations. The
    estimate is for one seed, both parties in one process.

    Args:
        data: As for ``train``.
        labels: As for ``train``.
        options: Settings, as for ``train``.

    >>> estimate(dataset="breast-cancer", mechanism="none", scheme="clear", epochs=2).iterations
    58
    """
    settings, table = _settings(data, _given(options, estimate))
    return calibrate(settings, load_raw(settings, table, labels))


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
    observe: Observer = ignore,
    announce: Announce = silent,
    progress: ReportProgress = quietly,
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
            is the protocol's leak alone. And on coin labels, where the ledger claims a finite
            epsilon, to set the guesses against the claim. Likewise with Alice's rows permuted
            against Bob's, for his seat.
        seat: Whose view is attacked: ``alice`` for labels, ``bob`` for Alice's columns, or
            ``both``; None for both, and for the recorder's with a transcript. Of several Alices
            ``alice`` is all, who pool what they have; ``alice-1`` is one of them, and
            ``alice-1+alice-3`` are two.
        known_rows: How many rows of Alice's columns Bob knows; None for 10, and for as many as she
            has columns.
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
        from taciturn.audit.session import Session

    callbacks = Callbacks(announce, observe, progress)
    given = _given(options, audit)
    _check_known_rows(seat, known_rows)
    if transcript is not None:
        if seat in ("bob", "both"):
            raise ConfigError(
                "this transcript was recorded at Alice's seat: Bob's coins are not in it",
                setting="seat",
                hint=Hint("use {seat}, or audit a new run", seat="alice"),
            )
        if record is not None:
            raise ConfigError("a transcript is read or recorded, not both", setting="record")
        loaded = Transcript.load(Path(transcript))
        return AuditResult(
            (_audit_recorded(loaded, (data, labels), given, callbacks, shuffle_truth, seat),)
        )
    settings, table = _settings(data, given)
    _check_seat(seat, known_rows, settings.parties)
    target = _target(record, settings)
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
        )
        return AuditResult(tuple(session.audit(run, target) for run in _per_seed(settings)))


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
    announce: Announce = silent,
    observe: Observer = ignore,
    progress: ReportProgress = quietly,
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
        canary: Also train on shuffled labels and on coins, where both sides' tables are at hand; at
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
        from taciturn.audit import recorded
        from taciturn.audit.guesses import GuessesFile
        from taciturn.audit.recording import OtherSide, RecordedSession

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
                "guesses are judged by labels, and none are given",
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
            f"this recording was made at {recorder.capitalize()}'s seat, and shows no other",
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


def woe(
    data: object = None,
    labels: object = None,
    *,
    smoothing: float = 0.5,
    min_rows: int | None = None,
    names: bool = True,
    observe: Observer = ignore,
    **options: Unpack[SettingsOptions],
) -> WoeResult:
    """Weight of evidence and information value of Alice's columns, for Bob.

    His labels are counted in her bins under his key: she learns nothing of them.

    Args:
        data: As for ``train``.
        labels: As for ``train``.
        smoothing: What is added to the ones and to the zeros of every bin.
        min_rows: Alice merges bins of fewer rows; None for 50, or one in a hundred rows.
        names: Whether Bob learns what columns and bins are called, and their order.
        observe: Called with each event.
        options: Settings, as for ``train``; ``bins`` says into how many bins numbers are cut (10).

    Raises:
        TaciturnError: With what is wrong, where, and the way out.

    >>> result = woe(dataset="breast-cancer", scheme="clear", seed=1)
    >>> result.ranked[0].name, round(result.ranked[0].iv, 2)
    ('worst perimeter', 6.19)
    """
    # Loaded here: the sides of a job know the party's files too.
    from taciturn.jobs.woe.job import WoeOptions
    from taciturn.jobs.woe.simulation import simulate_woe

    chosen = WoeOptions(smoothing, min_rows, names)
    settings, table = _settings(data, _given(options, woe))
    raw = load_raw(settings, table, labels)
    with in_cell(Callbacks(observe=observe)) as watching:
        return simulate_woe(settings, raw, chosen, watching.observe)


def audit_woe(
    data: object = None,
    labels: object = None,
    *,
    smoothing: float = 0.5,
    min_rows: int | None = None,
    announce: Announce = silent,
    progress: ReportProgress = quietly,
    **options: Unpack[SettingsOptions],
) -> WoeAudit:
    """What handing weights of evidence to the feature party tells, and what ``woe`` tells.

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
        from taciturn.audit.woe import audit_woe as attack
    from taciturn.jobs.woe.job import WoeOptions

    chosen = WoeOptions(smoothing, min_rows)
    settings, table = _settings(data, _given(options, audit_woe))
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
    announce: Announce = silent,
    observe: Observer = ignore,
    progress: ReportProgress = quietly,
    **options: Unpack[SettingsOptions],
) -> Comparison:
    """Sets mechanisms side by side on the same rows: the model, what Alice can tell, the cost.

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
        from taciturn.audit.compare import compare as side_by_side

    given = _given(options, compare)
    own = str(given.pop("mechanism", ""))
    if own and own not in {name.partition(":")[0] for name in mechanisms}:
        # That of the settings, in a file say, is one to compare.
        mechanisms = (own, *mechanisms)
    _require_comparable(mechanisms)
    given.setdefault("seed", 0)

    def settings_of(name: str) -> tuple[Settings, object]:
        mechanism, _, epsilon = name.partition(":")
        chosen = {**given, "mechanism": mechanism, **_epsilon_of(mechanism, epsilon, given)}
        if mechanism in WHOLE_TABLE_ONLY:
            # Batches and steps are those of the others.
            chosen |= dict.fromkeys(SGD_ONLY)
        return _settings(data, chosen)

    usual, table = _settings(data, {**given, "mechanism": "none"} | {"epsilon": None})
    raw = load_raw(usual, table, labels)
    wanted = [(name, lambda name=name: _per_seed(settings_of(name)[0])) for name in mechanisms]
    with in_cell(Callbacks(announce, observe, progress)) as watching:
        return side_by_side(wanted, raw, watching)


def _require_comparable(mechanisms: Sequence[str]) -> None:
    """Refuses names that are none.

    Raises:
        ConfigError: Says which.
    """
    if not mechanisms or len(set(mechanisms)) < len(mechanisms):
        raise ConfigError(
            "name each mechanism once, and at least one",
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


def _epsilon_of(mechanism: str, own: str, given: Mapping[str, object]) -> dict[str, object]:
    """The epsilon of one mechanism of several: its own, the common one, or 1; none where unused."""
    if "epsilon" not in mechanism_class(mechanism).takes:
        return {"epsilon": None}
    return {"epsilon": float(own) if own else given.get("epsilon", _DEFAULT_EPSILON)}


def runs(
    folder: str | Path = "runs",
    *,
    mechanism: str | None = None,
    dataset: str | None = None,
    kind: str | None = None,
    sort: str | None = None,
) -> RunList:
    """The runs that commands left in a folder with ``--out``.

    Args:
        folder: A folder of result folders, or a result folder itself.
        mechanism: Only runs with this mechanism.
        dataset: Only runs of these data.
        kind: Only results of this kind, such as ``train`` or ``audit``.
        sort: By ``time`` (as without it), ``name``, ``auc``, ``epsilon``, ``leakage``, ``seconds``
            or ``bytes``.

    Returns:
        What each was, how good its model is, what it told and cost; ``to_pandas()`` has a row for
        each.

    Raises:
        TaciturnError: There is no such folder, or no such order.

    >>> runs("no-such-folder")
    Traceback (most recent call last):
        ...
    taciturn.errors.FileError: there is no folder of runs here
      where: no-such-folder
      try:   ...
    """
    with explained():
        from taciturn.runs.collection import Wanted, collect

        plain = collect(Path(folder), Wanted(mechanism, dataset, kind, sort)).list
    return RunList(plain.folder, plain.listed, plain.unreadable)


def check(
    data: object = None,
    *,
    party: str | Path | None = None,
    columns: int | None = None,
    rows: int | None = None,
    seat: str | None = None,
    known_rows: int | None = None,
    announce: Announce = silent,
    **options: Unpack[SettingsOptions],
) -> CheckResult:
    """Shows before any training what Alice will be able to learn with these settings.

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
        from taciturn.audit.preflight import preflight
        from taciturn.audit.rehearsal import random_table

    given = _given(options, check)
    _check_seat(seat, known_rows)
    if party is not None:
        besides = {"data": data, **given, "rows": rows}
        return _check_party(Path(party), besides, columns, (seat, known_rows), announce)
    seat = seat or ("alice" if known_rows is None else "both")
    if columns is not None:
        if data is not None or given.get("dataset"):
            raise ConfigError("columns replaces a table: give one of the two", setting="columns")
        if columns < 1 or (rows is not None and rows < 2):
            raise ConfigError("a table needs at least one column and two rows", setting="columns")
        settings, _ = _settings(None, given)
        features = random_table(rows or 2000, columns)
        return CheckResult.of(
            preflight(settings, features, seat=seat, known_rows=known_rows, announce=announce)
        )
    if rows is not None:
        raise ConfigError(
            "rows is used only with columns", setting="rows", hint=Hint("give {columns} too")
        )
    # Alice's table has no labels: a name that no column has keeps the settings content.
    label = {"label": given.get("label") or _NO_LABEL} if data is not None else {}
    settings, table = _settings(data, {**given, **label})
    features = load_features(settings, table)
    return CheckResult.of(
        preflight(settings, features, seat=seat, known_rows=known_rows, announce=announce)
    )


_NO_LABEL = "(no label)"


def _check_seat(seat: str | None, known_rows: int | None, parties: int = 1) -> None:
    from taciturn.audit.seats import members

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


def _check_party(
    path: Path,
    besides: Mapping[str, object],
    columns: int | None,
    bob: tuple[str | None, int | None],
    announce: Announce,
) -> CheckResult:
    """Checks a party's file, which says everything but how many columns the other side has."""
    from taciturn.audit.own_side import check_party
    from taciturn.deploy.config import PartyConfig

    if given := [name for name, value in besides.items() if value is not None]:
        raise ConfigError(
            f"{hyphenated(given[0])} is said by the party's file",
            setting=given[0],
            hint="with a party's file only the number of Alice's columns may be given",
        )
    seat, known_rows = bob
    config = PartyConfig.read(path)
    return CheckResult.of(check_party(config, columns, announce, seat=seat, known_rows=known_rows))


def _audit_recorded(
    transcript: Transcript,
    given: tuple[object, object],
    options: Mapping[str, object],
    callbacks: Callbacks,
    shuffle_truth: bool,
    seat: str | None,
) -> AuditRun:
    """Audits a recorded run: its own settings load the rows, its own coins split them."""
    from taciturn.audit.seats import alice_view, members
    from taciturn.audit.session import Session

    run = RecordedRun.of(transcript)
    for name in options:
        # Where the rows lie now is no part of the run; all else is the recording's.
        if name != "data_dir":
            raise ConfigError(
                f"{hyphenated(name)} is fixed by the transcript",
                setting=name,
                hint=Hint("with {transcript} only {data} and {data_dir} may be given"),
            )
    settings, table = _settings(given[0], {**run.settings.model_dump(), **options})
    raw = load_raw(settings, table, given[1])
    vertical = arrange(settings, raw, run.coins)
    names = members(seat or "alice", [name for name, _ in vertical.alices])
    view = alice_view(transcript, vertical, names)
    run.require_labels(vertical.labels_train)
    session = Session(raw, callbacks, shuffle_truth=shuffle_truth, seat=seat or "alice")
    return session.examine(settings, view, vertical.labels_train, run.result)


def _given(options: SettingsOptions, function: Callable[..., object]) -> dict[str, object]:
    """The options by their settings' names, without those that are None, which means not given.

    Raises:
        ConfigError: One is neither a setting nor a parameter of the function.
    """
    parameters = [name for name in inspect.signature(function).parameters if name != "options"]
    given = named(options, [*Settings.model_fields, *parameters])
    return {name: value for name, value in given.items() if value is not None}


def _settings(data: object, options: Mapping[str, object]) -> tuple[Settings, object]:
    """The checked settings, and the table where one was given in Python."""
    if isinstance(data, str | Path):
        return Settings.of({**options, "data": str(data)}).resolved(), None
    return Settings.of(options).resolved(), data


def _target(record: str | Path | None, settings: Settings) -> Path | None:
    if record is not None and settings.seeds > 1:
        raise ConfigError(
            "a transcript holds one run", setting="record", hint=Hint("leave {seeds} out")
        )
    return None if record is None else Path(record)


def _per_seed(settings: Settings) -> list[Settings]:
    """One run's settings for each seed; without a first seed they count from 0."""
    if settings.seeds == 1:
        return [settings]
    first = settings.seed or 0
    return [
        settings.model_copy(update={"seed": first + number}) for number in range(settings.seeds)
    ]
