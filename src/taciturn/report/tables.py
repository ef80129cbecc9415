"""Tables for a terminal, at most 100 columns wide."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from taciturn.report.record import Record

WIDTH = 100
MOST_COLUMNS_SHOWN = 15


def percent(value: float | None, digits: int = 2) -> str:
    """A share in per cent, or a dash where there is none.

    >>> percent(0.97368), percent(None)
    ('97.37', '–')
    """
    return "–" if value is None or value != value else f"{100 * value:.{digits}f}"


def data_size(count: float) -> str:
    """A number of bytes for a person.

    >>> data_size(1536), data_size(20), data_size(3 << 20)
    ('1.5 KiB', '20 B', '3.0 MiB')
    """
    if count < 1024:
        return f"{count:.0f} B"
    size = count
    for unit in ("KiB", "MiB", "GiB"):
        size /= 1024
        if size < 1024 or unit == "GiB":
            break
    return f"{size:.1f} {unit}"


def training(record: Record) -> RenderableType:
    """A training's results: how good, how near the centralised model, at what price."""
    return Group(
        _title(record), *_preparation(record), _metrics(record), _facts(record), *_notes(record)
    )


def forecast(record: Record) -> Text:
    """What a training will take."""
    return Text(
        f"{record['iterations']:,} iterations, about {record['seconds']:.1f} s and "
        f"{data_size(record['bytes_to_alice'])} to Alice, "
        f"{data_size(record['bytes_to_bob'])} to Bob",
        style="dim",
    )


def findings(record: Record) -> RenderableType:
    """What the attacks found, beside the controls; in a canary run first, where there was one."""
    shuffled = record.get("canary") if not record["permute_labels"] else None
    remarks = [
        Text(f"  {attack['name']}: {attack['remark']}")
        for attack in record["attacks"]
        if attack["remark"]
    ]
    skipped = [Text(f"  {each['name']}: skipped, {each['reason']}") for each in record["skipped"]]
    parts: list[RenderableType] = [_scores(record, "What Alice can tell of the training labels")]
    if shuffled:
        words = "Labels shuffled before training: what the protocol alone tells"
        parts = [_scores(shuffled, words), *parts]
    return Group(
        *parts, *remarks, *skipped, *_membership(record), *_evidence(record), _verdict(record)
    )


def _scores(record: Record, title: str) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("", min_width=20)
    for heading in ("accuracy %", "95 % interval", "AUC %", "certain %", "of those right %"):
        table.add_column(heading, justify="right")
    for control in record["controls"]:
        table.add_row(
            f"[dim]{control['name']} (control)[/dim]",
            percent(control["accuracy"]),
            "",
            percent(control["auc"]),
            "",
            "",
        )
    table.add_section()
    for attack in record["attacks"]:
        table.add_row(
            attack["name"],
            percent(attack["accuracy"]),
            f"{percent(attack['accuracy_low'])} – {percent(attack['accuracy_high'])}",
            percent(attack["auc"]),
            percent(attack["decided"]),
            percent(attack["decided_correct"]),
        )
    return table


def demo(record: Record) -> RenderableType:
    """Mechanisms side by side: how good the model is, and what Alice can tell."""
    first = record["runs"][0]
    title = f"breast-cancer, {first['rows_train']} training rows, {first['alice_columns']} columns"
    table = Table(title=f"{title} at Alice, labels at Bob", title_justify="left")
    table.add_column("mechanism")
    for heading in ("held-out accuracy %", "centralised %", "labels told, shuffled %", "true %"):
        table.add_column(heading, justify="right")
    table.add_column("by")
    for run in record["runs"]:
        shuffled, true = _best(run["canary"]), _best(run)
        table.add_row(
            run["mechanism"],
            percent(run["test"]["accuracy"]),
            percent(run["centralised"]["accuracy"]),
            percent(shuffled["accuracy"]),
            percent(true["accuracy"]),
            shuffled["name"],
        )
    chance = max(control["accuracy"] for control in first["canary"]["controls"])
    notes = Text(
        "  Shuffled: labels shuffled before training, so that only the messages tell them;\n"
        f"  without messages {percent(chance)} %.\n"
        f"  The report on {record['runs'][-1]['mechanism']}: {record['html']}",
        style="dim",
    )
    return Group(table, notes)


def _best(run: Record) -> Record:
    """The best attack; where none applies, what Alice can do without any."""
    found: Record = max(run["attacks"] or run["controls"], key=lambda each: each["accuracy"])
    return found


def _membership(record: Record) -> list[Text]:
    found = record.get("membership")
    if not found:
        return []
    return [
        Text(
            f"  who is in the batch: precision {percent(found.get('precision'))} %, recall "
            f"{percent(found.get('recall'))} %, its size right in {percent(found.get('k_exact'))} "
            f"% of {found['iterations']:.0f} iterations; {percent(found.get('base_rate'))} % of "
            "the scored rows are in it"
        )
    ]


def _evidence(record: Record) -> list[Text]:
    found = record.get("evidence")
    if not found:
        return []
    end = "the claim is refuted" if found["violated"] else "the claim is not refuted"
    return [
        Text(
            f"  evidence: {found['attack']} guessed {found['correct']} of {found['guesses']} coin "
            f"labels right, which shows an epsilon of at least {found['lower_bound']:.3g} "
            f"(failure {found['failure']:g}); the ledger says {_short(found['claim'])}: {end}"
        )
    ]


_LEVELS = {"leaks": "bold red", "at risk": "yellow", "no attack of ours applies": "dim"}


def preflight(record: Record) -> RenderableType:
    """What Alice will be able to do, attack by attack."""
    table = Table(title="Before training: what Alice will be able to do", title_justify="left")
    table.add_column("attack", no_wrap=True)
    table.add_column("verdict")
    table.add_column("why")
    table.add_column("smallest change that helps")
    for names, row in _alike(record["verdicts"]):
        level = Text(row["verdict"], style=_LEVELS[row["verdict"]])
        table.add_row("\n".join(names), level, row["why"], row["change"])
    grid = Table.grid(padding=(0, 2))
    for name, value in _preflight_facts(record["facts"]):
        grid.add_row(Text(f"  {name}", style="dim"), value)
    warnings = [
        Text(f"  note: {each}", style="yellow") for each in (*record["warnings"], *record["notes"])
    ]
    closing = {
        "leaks": "This configuration leaks: the rehearsal recovered labels.",
        "at risk": "This configuration is at risk: the rehearsal told more than coins would.",
    }.get(record["verdict"], "No attack of ours told anything. That is not a proof of safety.")
    advice = [] if record["verdict"] == "no attack of ours applies" else [_advice(record)]
    later = [_predictions(record["prediction"])] if record.get("prediction") else []
    return Group(table, grid, *warnings, *later, Text(closing, style="bold"), *advice)


def _predictions(notes: Record) -> RenderableType:
    """What scoring new rows will tell each side."""
    grid = Table.grid(padding=(0, 2))
    for name, key in (("Bob", "bob"), ("Alice", "alice"), ("repeated", "repeated")):
        grid.add_row(Text(f"  {name}", style="dim"), notes[key])
    return Group(Text("What predictions with the model will tell:"), grid)


def _alike(rows: list[Record]) -> list[tuple[list[str], Record]]:
    """Rows that say the same together, under all of their names."""
    groups: dict[tuple[str, str, str], tuple[list[str], Record]] = {}
    for row in rows:
        key = row["verdict"], row["why"], row["change"]
        groups.setdefault(key, ([], row))[0].append(row["attack"])
    return list(groups.values())


def _advice(record: Record) -> Table:
    grid = Table.grid(padding=(0, 2))
    for each in record["recommendations"]:
        grid.add_row(Text(f"  for {each['need']}", style="dim"), f"{each['use']}: {each['why']}")
    return grid


def _preflight_facts(facts: Record) -> list[tuple[str, str]]:
    lines = [
        (
            "batches",
            f"{facts['batch_size']} rows against {facts['alice_columns']} columns; "
            f"{percent(facts['full_rank_share'], 0)} % of sampled ones have full rank "
            f"(condition {_short(facts['median_condition'])}), the last has {facts['last_batch']}",
        ),
        (
            "stacked epochs",
            f"{facts['stacked_equations_per_row']:.2g} equations per row in {facts['epochs']} "
            "epochs",
        ),
        (
            "privacy of a label",
            f"{_epsilon(facts['label_epsilon_per_release'])} per release, "
            f"{_epsilon(facts['label_epsilon_total'])} in all",
        ),
        (
            "best possible guess",
            f"right about {percent(facts['attack_ceiling'])} % of labels at even odds, at most: "
            "the bound of that epsilon on any attack",
        ),
    ]
    if "sparsity" in facts:
        lines.append(
            (
                "sparse recovery",
                f"{facts['true_rows']:.1f} of {facts['l_rr']:.1f} residues are not zero: "
                f"{facts['sparsity']:.2f} per column, recoverable up to about "
                f"{facts['recoverable_sparsity']:.2f}",
            )
        )
    return lines


def _verdict(record: Record) -> Text:
    """The verdict of the run, or of each where there are several."""
    runs = record.get("runs", [record])
    lines = [run["verdict"] for run in runs]
    if record.get("canary") and not record["permute_labels"]:
        lines = [f"With shuffled labels: {record['canary']['verdict']}"] + [
            f"With the true ones: {line}" for line in lines
        ]
    if record["permute_labels"]:
        lines.append("A canary run: labels shuffled before training, so that columns say nothing.")
    return Text("\n".join(dict.fromkeys(lines)), style="bold")


def _title(record: Record) -> Text:
    shape = (
        f"{record['rows_train']:,} + {record['rows_test']:,} rows, "
        f"{record['alice_columns']} columns at Alice, {record['bob_columns']} at Bob"
    )
    seeds = f", mean of {record['seeds']} seeds" if "seeds" in record else ""
    return Text(f"{record['dataset']}: {shape}{seeds}", style="bold")


def _metrics(record: Record) -> Table:
    table = Table()
    table.add_column("")
    names = {
        "accuracy": "accuracy %",
        "auc": "AUC %",
        "pr_auc": "PR-AUC %",
        "ks": "KS %",
        "balanced_accuracy": "balanced %",
        "brier": "Brier",
        "loss": "log loss",
    }
    for heading in names.values():
        table.add_column(heading, justify="right")
    for part, label in (
        ("train", "training rows"),
        ("test", "held-out rows"),
        ("centralised", "centralised, held-out"),
    ):
        figures = record[part]
        table.add_row(
            label,
            *(
                f"{figures[name]:.4f}" if name in ("brier", "loss") else percent(figures[name])
                for name in names
            ),
        )
    return table


def _facts(record: Record) -> Table:
    grid = Table.grid(padding=(0, 2))
    for name, value in facts(record):
        grid.add_row(Text(f"  {name}", style="dim"), value)
    return grid


def facts(record: Record) -> list[tuple[str, str]]:
    """The lines below the metrics."""
    bound = record["weight_bound"]
    return [
        (
            "training",
            f"{record['epochs']} epochs, batches of {record['batch_size']}, learning rate "
            f"{record['learning_rate']:g}, {record['iterations']:,} iterations, "
            f"{record['seconds']:.1f} s",
        ),
        (
            "distance to centralised",
            f"{record['max_weight_difference']:.2e} in the weight that differs most "
            + (
                "(no bound is known here)"
                if bound is None
                else f"(rounding bounds it by {bound:.1e})"
            ),
        ),
        ("randomness", _randomness(record)),
        ("protection", _protection(record)),
        *_hidden_batches(record),
        ("encryption", _encryption(record)),
        (
            "traffic",
            f"{data_size(record['bytes_to_alice'])} to Alice, "
            f"{data_size(record['bytes_to_bob'])} to Bob",
        ),
        *_privacy(record),
    ]


def _protection(record: Record) -> str:
    """The mechanism with its parameters."""
    words = [record["mechanism"], *([record["variant"]] if record["variant"] else [])]
    given = [
        f"{name.replace('_', '-')} {record[name]:g}"
        for name in ("epsilon", "b1", "b2", "budget")
        if record[name] is not None
    ]
    noise = f"{record['noise']} noise" if record["noise"] else ""
    update = "Bob updates with true residues" if record["bob_update"] == "true" else ""
    return ", ".join(part for part in (" ".join(words), *given, noise, update) if part)


def _encryption(record: Record) -> str:
    if record["noise"]:
        return "none: residues travel in clear, with noise"
    if not record["encrypted"]:
        return f"{record['scheme']} (hides nothing)"
    return f"{record['scheme']}, {record['key_bits']} bits"


def _hidden_batches(record: Record) -> list[tuple[str, str]]:
    found = record["hidden_batches"]
    if found is None:
        return []
    return [
        (
            "hidden batches",
            f"{found['mean_batch']:.1f} of {found['l_rr']:.1f} scored rows of a subset of "
            f"{found['subset_size']}; {found['redraws']} draws too short and redrawn "
            f"(expected {percent(found['rejected'], 1)} %)",
        )
    ]


def _privacy(record: Record) -> list[tuple[str, str]]:
    ledger = record["ledger"]
    lines = [
        (
            "privacy of a label",
            f"{_epsilon(ledger['label_epsilon_total'])} after {ledger['releases_per_row']} "
            f"release{'' if ledger['releases_per_row'] == 1 else 's'} per row: "
            f"{ledger['assumption']}",
        )
    ]
    if ledger["label_epsilon_per_release"] != "inf":
        lines += [
            (
                "one release",
                f"epsilon {ledger['label_epsilon_per_release']:.4g} for the label, "
                f"{ledger['residue_epsilon_per_release']:.4g} for the residue; "
                f"claimed {ledger['claimed_epsilon_per_release']:g}",
            ),
            (
                "at delta",
                f"epsilon {_short(ledger['label_epsilon_total_delta'])} in all with delta "
                f"{ledger['delta']:g}",
            ),
        ]
    if record["stopped"]:
        lines.append(("stopped", f"{record['stopped']} after {record['iterations']:,} iterations"))
    return lines


def _short(value: Any) -> str:  # noqa: ANN401 - a number, or the text "inf"
    return "∞" if value == "inf" else f"{value:.4g}"


def _randomness(record: Record) -> str:
    if "seeds" in record:
        last = record["seed"] + record["seeds"] - 1
        return f"seeds {record['seed']} to {last}: repeatable simulations"
    if record["seed"] is None:
        return "from the operating system"
    return f"seed {record['seed']}: a repeatable simulation"


def _epsilon(value: Any) -> str:  # noqa: ANN401 - a number, or the text "inf"
    return "epsilon is infinite" if value == "inf" else f"epsilon {value:.4g}"


def _preparation(record: Record) -> list[Text]:
    """What was done to each column, where there are few enough to read."""
    lines = record["preparation"]
    if len(lines) > MOST_COLUMNS_SHOWN:
        return [Text(f"  {len(lines)} source columns prepared; --json lists how", style="dim")]
    return [Text(f"  {line}", style="dim") for line in lines]


def _notes(record: Record) -> list[Text]:
    return [Text(f"  note: {note}", style="yellow") for note in record["notes"]]
