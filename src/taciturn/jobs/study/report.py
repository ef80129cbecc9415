"""A study as blocks: one line for each combination, and which is best."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from shlex import quote

from taciturn.errors import counted
from taciturn.jobs.study.result import (
    COARSE_ROWS,
    SimulatedStudy,
    StudiedSetting,
    StudyRun,
    StudyTable,
)
from taciturn.numerics.bounded_waves import CAP
from taciturn.numerics.regression_metrics import RegressionMetrics
from taciturn.report import blocks as b
from taciturn.report.formatting import data_size, duration, figure, footer, share
from taciturn.report.training import label_epsilon, partner_adds
from taciturn.setting_syntax import hyphenated
from taciturn.settings.study import shown_value
from taciturn.version import __version__

MOST_LINES, MOST_DRAWN = 40, 30
_NAMES = {"loss": "log loss", "auc": "AUC"}
_ALIKE = (
    "Worse by: difference from the best model, ± its standard error over the folds. A model within "
    "two standard errors cannot be distinguished from the best by this study."
)
_SUMMED = (
    "Capped loss: mean over all rows, each at the model that was trained without its fold; a row "
    "counts at most {cap:g}. Only this sum was opened, with noise of {noise:g} rows (Laplace). "
    "Worse by: difference from the best model, ± the standard deviation of the noise alone."
)
_COARSE = (
    "{rows:,} rows are few for this noise: the choice is coarse. Below {least:,} rows a study in "
    "mutual often chooses another setting than the best; what that costs: docs/study.md. Compare a "
    "few penalties far apart."
)
_HELD_OUT_ALONE = (
    "Without folds the same held-out rows select the model and evaluate it: the best model's "
    "figures are optimistic."
)
_UNRANKED = (
    "No model can be ranked: the evaluation rows are all of one class. Use fewer folds, or rank "
    "by the loss."
)
_ALL_DIVERGED = (
    "No model can be ranked: every sum is below zero or above that of the base rate. Scale or clip "
    "the columns, use a wider score range, or more passes."
)
_FOR_ALICE = (
    "Model quality depends on labels: only Bob sees it. When he uses a model, you learn which."
)


def study_blocks(result: StudyRun | SimulatedStudy) -> list[b.Block]:
    """Report blocks with the table, for a terminal of 100 columns."""
    return [
        b.Paragraph(_subject(result), "strong"),
        b.Facts(_facts(result)),
        _table(result.study, MOST_LINES),
        *_reading(result),
        *_next(result),
    ]


def study_page(result: StudyRun | SimulatedStudy, made: str | None = None) -> b.Page:
    """The page of a study; ``made`` is in UTC, None where that is not recorded."""
    table = result.study
    combinations = (_table(table, None), *_reading(result))
    blocks: list[b.Block] = [
        _verdict(result),
        b.Section("All combinations", "table", combinations, "Table"),
    ]
    if table.best is not None and not table.summed:
        by = _NAMES[table.rank_by]
        by = by[0].upper() + by[1:]
        rows = "the rows of each fold" if table.folds else "the held-out rows"
        drawn = b.Figure(
            "study",
            f"{by} of each combination",
            "; ".join(
                f"{setting.number}: {_values(setting)}: {figure(getattr(setting, table.rank_by))}"
                for setting in table.settings
            ),
            _svg(table),
        )
        caption = f"{by} on {rows}: dots are folds, the bar is their mean; the best is on top."
        # Without folds there is one figure per model, and the table has it.
        if table.folds:
            figures = b.Figures((drawn,), caption=caption, wide=True)
            blocks.append(b.Section(f"{by} by fold", "picture", (figures,), "Folds"))
    facts = b.Section("Rows, models, cost", "facts", (b.Facts(_facts(result)),), "Details")
    return b.Page(
        window="Study – Taciturn",
        title="Study: which settings give the best model",
        subject=_subject(result),
        blocks=(*blocks, facts),
        footer=footer(__version__, made),
        wide=True,
    )


def _verdict(result: StudyRun | SimulatedStudy) -> b.Section:
    """The best combination, whether others are as good, and what the study opens to each side."""
    table, lines = result.study, list[str]()
    headline = "Only Bob sees which model is best"
    if any(one.loss is not None or one.summed_loss is not None for one in table.settings):
        headline = "No model can be ranked"
    best = next((one for one in table.settings if one.number == table.best), None)
    if best is not None:
        headline = f"The best model has {_values(best)}"
        figures = f"{_ranked_by(table)} {_figure(best, table.rank_by)}"
        if not isinstance(best.held_out, RegressionMetrics) and not table.summed:
            figures += f", {_NAMES[_other(table)]} {_figure(best, _other(table))}"
        if best.held_out is not None:
            figures += f"; held-out {' '.join(_held_out(best))}"
        lines.append(f"Model {best.number}: {figures}.")
        alike = [str(one.number) for one in table.by_rank if _as_good(one, best)]
        if alike:
            lines.append(
                f"Within two standard errors of it: model {', '.join(alike)}. This study cannot "
                "distinguish them."
            )
    if table.settings and all(one.converged is False for one in table.settings):
        lines.append("No model converged: use more passes before you rely on the ranking.")
    blocks: list[b.Block] = [*map(b.Paragraph, lines)]
    opened = result.scores_per_row
    alice = "Bob receives no score of a training row of yours."
    if _by_sums(result):
        alice = "Bob receives no score of any row, and one noisy number per setting."
    if opened:
        alice = (
            f"Over all models together Bob receives up to {opened:,} scores of each of your "
            "training rows, from which he can reconstruct your columns."
        )
    blocks += [b.Heading("What this means for Alice"), b.Paragraph(alice)]
    if result.ledger is not None:
        cost = label_epsilon(result.ledger.label_epsilon_total)
        bob = f"All models together cost a label {cost}, assuming {result.ledger.assumption}."
        blocks += [b.Heading("What this means for Bob"), b.Paragraph(bob)]
    return b.Section(headline, "verdict", tuple(blocks), "Verdict")


def _as_good(one: StudiedSetting, best: StudiedSetting) -> bool:
    if one is best or one.behind is None or one.behind_error is None:
        return False
    return one.behind <= 2 * one.behind_error


def _values(setting: StudiedSetting) -> str:
    return ", ".join(f"{hyphenated(name)} = {shown_value(v)}" for name, v in setting.values.items())


def _subject(result: StudyRun | SimulatedStudy) -> str:
    table = result.study
    judged = f"{table.folds} cross-validation folds" if table.folds else "the held-out rows"
    count = f"{counted(len(table.settings), 'combination')}, evaluated on {judged}"
    if isinstance(result, StudyRun):
        who = result.identity
        return f"{who.role} with {who.peer}: mechanism {who.mechanism}, {count}"
    return f"{result.data.dataset or 'own data'}: mechanism {result.mechanism}, {count}"


def _facts(result: StudyRun | SimulatedStudy) -> dict[str, b.Words]:
    facts = _simulated(result) if isinstance(result, SimulatedStudy) else _between(result)
    if result.ledger is not None:
        cost = label_epsilon(result.ledger.label_epsilon_total)
        facts |= {"privacy cost of a label": f"{cost}, all models together"}
        facts |= {"assumption": result.ledger.assumption}
    return facts


def _simulated(result: SimulatedStudy) -> dict[str, b.Words]:
    data = result.data
    return {
        "rows": f"{data.rows:,} for training, {data.held_out_rows:,} held out",
        "columns": f"{data.alice_columns} at Alice, {data.bob_columns} at Bob",
        "models": f"{result.study.models} trained; solver {result.solver}, encryption "
        f"{result.scheme}",
        "time": f"{duration(result.seconds)}, {counted(result.workers, 'process')}",
        "training scores that Bob receives": _opened(result),
        **({"note": "; ".join(result.notes)} if result.notes else {}),
    }


def _between(result: StudyRun) -> dict[str, b.Words]:
    table, run, who = result.study, result.run, result.identity
    facts: dict[str, b.Words] = {
        "rows": f"{who.rows:,} for training, {who.held_out_rows:,} held out",
        "models": f"{table.models} trained, of each combination one on all training rows",
        "time": f"{run.seconds:.1f} s, of which {run.waiting_seconds:.1f} s waiting for the peer",
        "traffic": f"{data_size(run.bytes_sent)} sent, {data_size(run.bytes_received)} received, "
        f"over {counted(run.links, 'link')}",
        "training scores that Bob received": _opened(result),
    }
    if table.settings and table.settings[0].model is not None:
        facts["models' files"] = str(Path(table.settings[0].model).parent)
    if result.partner_adds is not None:
        facts["the partner adds"] = partner_adds(result.partner_adds) + " (the best model)"
    return facts


def _opened(result: StudyRun | SimulatedStudy) -> str:
    if result.scores_per_row:
        return f"up to {result.scores_per_row:,} per row, all models together"
    return "none, and one noisy sum per setting" if _by_sums(result) else "none"


def _by_sums(result: StudyRun | SimulatedStudy) -> bool:
    """Whether noisy sums judge the settings; known at Alice too."""
    mechanism = (
        result.mechanism if isinstance(result, SimulatedStudy) else result.identity.mechanism
    )
    return mechanism == "mutual" and not result.scores_per_row


def _ranked_by(table: StudyTable) -> str:
    return "capped loss" if table.summed else _NAMES[table.rank_by]


def _table(table: StudyTable, most: int | None) -> b.Table:
    settings, known = table.by_rank, table.best is not None
    names = list(settings[0].values)
    headings = ["model", *map(hyphenated, names)]
    if known:
        means = isinstance(settings[0].held_out, RegressionMetrics)
        loss = "half deviance" if means else _ranked_by(table)
        headings += [loss, "worse by"]
        headings += [] if means or table.summed else [_NAMES[_other(table)]]
        headings += [f"held-out {_held_out(one)[0]}" for one in settings[:1] if one.held_out]
        headings += ["converged"]
    lines = [_line(setting, table, names) for setting in settings[:most]]
    caption = f"The best {len(lines)} of {len(settings)}" if len(lines) < len(settings) else ""
    texts = tuple(range(len(names) + 1))
    return b.table(headings, lines, caption=caption, label="Combinations", words=texts)


def _other(table: StudyTable) -> str:
    return "auc" if table.rank_by == "loss" else "loss"


def _line(setting: StudiedSetting, table: StudyTable, names: list[str]) -> tuple[b.Words, ...]:
    best = setting.number == table.best
    number = b.Span(f"{setting.number} best", "good") if best else b.Span(str(setting.number))
    cells: list[b.Words] = [number, *(shown_value(setting.values[name]) for name in names)]
    if table.best is None:
        return tuple(cells)
    behind = "–"
    if setting.behind is not None and not best:
        error = "" if setting.behind_error is None else f" ± {figure(setting.behind_error, 5)}"
        behind = f"{figure(setting.behind, 5)}{error}"
    ranked = _figure(setting, table.rank_by)
    cells += [f"{ranked} diverged" if setting.diverged else ranked, behind]
    if not isinstance(setting.held_out, RegressionMetrics) and not table.summed:
        cells.append(_figure(setting, _other(table)))
    cells += [_held_out(setting)[1]] if setting.held_out is not None else []
    cells += ["–" if setting.converged is None else ("yes" if setting.converged else "no")]
    return tuple(cells)


def _held_out(setting: StudiedSetting) -> tuple[str, str]:
    """Name and value of the figure of the held-out rows."""
    if isinstance(setting.held_out, RegressionMetrics):
        return "deviance explained", share(setting.held_out.deviance_explained)
    return "AUC", share(getattr(setting.held_out, "auc", None))


def _figure(setting: StudiedSetting, name: str) -> str:
    if setting.summed_loss is not None:
        return figure(setting.summed_loss, 5)
    return share(setting.auc) if name == "auc" else figure(setting.loss, 5)


def _reading(result: StudyRun | SimulatedStudy) -> Iterable[b.Block]:
    table = result.study
    if table.best is None:
        if table.summed:
            yield b.Paragraph(_ALL_DIVERGED, "warning")
            return
        known = any(setting.loss is not None for setting in table.settings)
        yield b.Paragraph(_UNRANKED if known else _FOR_ALICE, "warning" if known else "muted")
        return
    best = table.best_setting
    if best is not None and best.noise_rows is not None:
        yield b.Paragraph(_SUMMED.format(cap=CAP, noise=best.noise_rows), "muted")
        if table.coarse:
            rows = best.judged_rows
            yield b.Paragraph(_COARSE.format(rows=rows, least=COARSE_ROWS), "warning")
    else:
        yield b.Paragraph(_ALIKE, "muted")
    if not table.folds:
        yield b.Paragraph(_HELD_OUT_ALONE, "warning")


def _next(result: StudyRun | SimulatedStudy) -> Iterable[b.Block]:
    table = result.study
    if isinstance(result, SimulatedStudy) or table.best is None:
        return
    yield b.Paragraph(
        f"To use model {table.best}: taciturn model use {quote(result.settings)} {table.best}, and "
        "on the other side the same with its file. That discloses the choice to "
        f"{result.identity.peer}: at most {table.choice_bits:.1f} bits about all labels together, "
        "a release without a finite epsilon."
    )


def _svg(table: StudyTable) -> str:
    """Ranking figure of each combination, fold by fold; the best on top."""
    # Loaded here: drawing takes a second to load, and a terminal has no picture.
    from matplotlib.figure import Figure

    from taciturn.report.plots import COLOURS, LINE, POINTS, plot, style, to_svg

    shown = [setting for setting in table.by_rank if setting.behind is not None][:MOST_DRAWN]
    with style():
        drawn = Figure((860 / POINTS, (80 + 24 * len(shown)) / POINTS), layout="constrained")
        axes = drawn.add_subplot()
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        axes.set_xlabel(_NAMES[table.rank_by])
        axes.grid(True, axis="x", color=LINE, clip_on=False)
        axes.set_axisbelow(True)
        names = [str(setting.number) for setting in shown]
        axes.set_yticks(range(len(shown)), labels=names)
        axes.set_ylabel("model")
        axes.invert_yaxis()
        for place, setting in enumerate(shown):
            colour = COLOURS[1] if setting.number == table.best else COLOURS[0]
            folds = [getattr(fold, table.rank_by) for fold in setting.folds or ()]
            dots = {"marker": "o", "markersize": 5, "linestyle": "none", "alpha": 0.55}
            plot(axes, folds, [place] * len(folds), color=colour, **dots)
            mean = getattr(setting, table.rank_by)
            bar = {"marker": "|", "markersize": 16, "markeredgewidth": 3, "linestyle": "none"}
            plot(axes, [mean], [place], color=colour, **bar)
        return to_svg(drawn, "study")
