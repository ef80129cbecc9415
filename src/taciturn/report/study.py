"""A study as blocks: one line for each combination, and which is best."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from taciturn.errors import counted
from taciturn.report import blocks as b
from taciturn.report.training import label_epsilon
from taciturn.report.words import data_size, duration, figure, footer, share
from taciturn.report.worth import partner_adds
from taciturn.results.study import SimulatedStudy, StudiedSetting, StudyRun, StudyTable
from taciturn.settings.study import shown_value
from taciturn.version import __version__

MOST_LINES = 40
_ALIKE = (
    "Behind: how much worse than the best, with its standard error over the folds where there are "
    "any. What is within about two of those is not told apart by this study."
)
_HELD_OUT_ALONE = (
    "Without folds the held-out rows choose the model and judge it: the best one's figures are a "
    "little too good."
)
_UNRANKED = (
    "No model can be ranked: the rows that judge them are all of one class. Use fewer folds, or "
    "rank by the loss."
)
_FOR_ALICE = (
    "How good each model is depends on labels: only Bob knows. That he uses one of them tells you "
    "which, when he does."
)


def study_blocks(result: StudyRun | SimulatedStudy) -> list[b.Block]:
    """The table and what goes with it, for a terminal of 100 columns."""
    table = result.study
    ledger = _ledger(result)
    return [
        b.Paragraph(_subject(result), "strong"),
        b.Facts({**_facts(result), **ledger}),
        _table(table, MOST_LINES),
        *_reading(result),
        *_next(result),
    ]


def study_page(result: StudyRun | SimulatedStudy, made: str | None = None) -> b.Page:
    """The page of a study; ``made`` is in UTC, None where that is not recorded."""
    # Loaded here: drawing takes a second to load, and a terminal has no picture.
    from taciturn.report.plots import study_svg

    table = result.study
    blocks: list[b.Block] = [
        b.Section(
            "All combinations",
            "table",
            (_table(table, None), *_reading(result)),
            "Table",
        )
    ]
    if table.best is not None:
        by = "log loss" if table.rank_by == "loss" else "AUC"
        rows = "the rows of each fold" if table.folds else "the held-out rows"
        drawn = b.Figure(
            "study",
            f"{by.capitalize()} of each combination",
            "; ".join(f"{name_of(one)}: {figure(_ranked(one, table))}" for one in table.settings),
            study_svg(table, "study"),
        )
        caption = (
            f"{by.capitalize()} on {rows}: dots are folds, the bar is their mean; the best stands "
            "first."
        )
        blocks.append(
            b.Section("Picture", "picture", (b.Figures((drawn,), caption=caption, wide=True),))
        )
    facts = b.Section("What it was", "facts", (b.Facts({**_facts(result), **_ledger(result)}),))
    return b.Page(
        window="A study – Taciturn",
        title="A study: which settings",
        subject=_subject(result),
        blocks=(*blocks, facts),
        footer=footer(__version__, made),
        wide=True,
    )


def name_of(one: StudiedSetting) -> str:
    """A combination in words.

    >>> name_of(StudiedSetting(number=3, values={"l2": 0.001}, columns=2))
    '3: l2 0.001'
    """
    values = ", ".join(f"{name.replace('_', '-')} {_value(v)}" for name, v in one.values.items())
    return f"{one.number}: {values}"


def _value(value: object) -> str:
    return shown_value(tuple(value) if isinstance(value, list) else value)  # type: ignore[arg-type]


def _subject(result: StudyRun | SimulatedStudy) -> str:
    table = result.study
    judged = f"{table.folds} folds" if table.folds else "the held-out rows"
    count = counted(len(table.settings), "combination")
    if isinstance(result, StudyRun):
        who = result.identity
        return f"{who.role} with {who.peer}: a study of {who.mechanism}, {count}, by {judged}"
    return f"{result.dataset or 'own data'}: a study of {result.mechanism}, {count}, by {judged}"


def _facts(result: StudyRun | SimulatedStudy) -> dict[str, b.Words]:
    table = result.study
    if isinstance(result, SimulatedStudy):
        return {
            "rows": f"{result.rows:,} for training, {result.held_out_rows:,} held out",
            "columns": f"{result.alice_columns} at Alice, {result.bob_columns} at Bob",
            "models": f"{table.models} trained, {_solver(result)}",
            "time": f"{duration(result.seconds)}, {counted(result.workers, 'process')}",
            "Bob would see": _opened(result.scores_per_row),
            **({"note": "; ".join(result.notes)} if result.notes else {}),
        }
    run, who = result.run, result.identity
    facts: dict[str, b.Words] = {
        "rows": f"{who.rows:,} for training, {who.held_out_rows:,} held out",
        "models": f"{table.models} trained, of each combination one on all training rows",
        "time": f"{run.seconds:.1f} s, of which {run.waiting_seconds:.1f} s waiting for the peer",
        "traffic": f"{data_size(run.bytes_sent)} sent, {data_size(run.bytes_received)} received, "
        f"over {counted(run.links, 'link')}",
        "Bob has seen": _opened(result.scores_per_row),
    }
    if table.settings and table.settings[0].model is not None:
        facts["models' files"] = str(Path(table.settings[0].model).parent)
    if result.partner_adds is not None:
        facts["the partner adds"] = partner_adds(result.partner_adds) + " (the best model)"
    return facts


def _solver(result: SimulatedStudy) -> str:
    return f"{result.solver}, {result.scheme}"


def _opened(scores: int) -> str:
    return f"up to {scores:,} scores of a training row, over all models" if scores else "no score"


def _ledger(result: StudyRun | SimulatedStudy) -> dict[str, b.Words]:
    ledger = result.ledger
    if ledger is None:
        return {}
    return {
        "all models cost": f"of a label, {label_epsilon(ledger.label_epsilon_total)}",
        "this rests on": ledger.assumption,
    }


def _table(table: StudyTable, most: int | None) -> b.Table:
    known = table.best is not None
    settings = _ordered(table) if known else list(table.settings)
    names = list(settings[0].values)
    headings = ["model", *(name.replace("_", "-") for name in names)]
    if known:
        rank = "log loss" if table.rank_by == "loss" else "AUC"
        headings += [rank, "behind", "AUC" if table.rank_by == "loss" else "log loss"]
        headings += ["held-out AUC"] if settings[0].held_out is not None else []
        headings += ["converged"]
    lines = [_line(one, table, names) for one in settings[:most]]
    left = len(settings) - len(lines)
    caption = f"The best {len(lines)} of {len(settings)}" if left else ""
    texts = range(len(names) + 1)
    return b.table(headings, lines, caption=caption, label="Combinations", words=tuple(texts))


def _line(one: StudiedSetting, table: StudyTable, names: list[str]) -> tuple[b.Words, ...]:
    best = one.number == table.best
    number = b.Span(f"{one.number} best", "good") if best else b.Span(str(one.number))
    cells: list[b.Words] = [number, *(_value(one.values[name]) for name in names)]
    if table.best is None:
        return tuple(cells)
    other = one.auc if table.rank_by == "loss" else one.loss
    cells += [
        _figure(_ranked(one, table), table.rank_by),
        _behind(one, table),
        _figure(other, "auc" if table.rank_by == "loss" else "loss"),
    ]
    cells += [share(one.held_out.auc)] if one.held_out is not None else []
    cells += ["–" if one.converged is None else ("yes" if one.converged else "no")]
    return tuple(cells)


def _ranked(one: StudiedSetting, table: StudyTable) -> float | None:
    return one.loss if table.rank_by == "loss" else one.auc


def _figure(value: float | None, name: str) -> str:
    return share(value) if name == "auc" else figure(value, 5)


def _behind(one: StudiedSetting, table: StudyTable) -> str:
    if one.behind is None or one.number == table.best:
        return "–"
    error = "" if one.behind_error is None else f" ± {figure(one.behind_error, 5)}"
    return f"{figure(one.behind, 5)}{error}"


def _ordered(table: StudyTable) -> list[StudiedSetting]:
    return sorted(
        table.settings,
        key=lambda one: math.inf if one.behind is None else one.behind,
    )


def _reading(result: StudyRun | SimulatedStudy) -> Iterable[b.Block]:
    table = result.study
    if table.best is None:
        known = any(one.loss is not None for one in table.settings)
        yield b.Paragraph(_UNRANKED if known else _FOR_ALICE, "warning" if known else "muted")
        return
    yield b.Paragraph(_ALIKE, "muted")
    if not table.folds:
        yield b.Paragraph(_HELD_OUT_ALONE, "warning")


def _next(result: StudyRun | SimulatedStudy) -> Iterable[b.Block]:
    table = result.study
    if isinstance(result, SimulatedStudy) or table.best is None:
        return
    yield b.Paragraph(
        f"To use model {table.best}: taciturn model use FILE {table.best}, on both sides. That "
        f"names it to {result.identity.peer}, a release: at most {table.choice_bits:.1f} bits "
        "about all labels together, which have no finite price."
    )
