"""Scores on demand are those of ``taciturn predict``, bit for bit, with every mechanism."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ops.tests.serve.sides import (
    calling,
    opened,
    serve_settings,
    service,
)

from taciturn.errors import (
    BudgetExceeded,
    DataError,
    PeerAbsent,
    SignatureError,
    StateError,
)
from taciturn.model.share import ModelShare
from taciturn.party.applied_model import AppliedModel
from taciturn.party.config import PartyConfig
from taciturn_ops.serve.alice import FeatureSide
from taciturn_ops.serve.batcher import MOST_FAILURES
from taciturn_ops.serve.bob import LabelSide
from taciturn_ops.serve.declaration import SERVING
from taciturn_ops.serve.rounds import Verdict
from taciturn_ops.serve.side import ServeSide
from taciturn_ops.serve.sources import FetchedRows, RowSource, ServedRows
from tests.expected import all_refused
from tests.jobs.predict.test_sides import (
    ROLES,
    TRAININGS,
    answers,
    in_threads,
    question,
    trained,
)
from tests.modules import module_of
from tests.party.sides import NEWTON
from tests.party.spoken import declared_messages_only
from tests.party.wires import Wire
from tests.seldom import seldom
from tests.waiting import HANG, wait_until

SERVED: dict[str, dict[str, Any]] = {
    **TRAININGS,
    "sealed, newton": {"mechanism": "sealed", **NEWTON},
    "mutual, newton": {"mechanism": "mutual", **NEWTON},
}


def predicted(folder: Path) -> dict[str, float]:
    """What the command gives for all rows at once."""
    _, his = answers(in_threads(folder, {role: question(folder, role) for role in ROLES}))
    assert his.scores is not None
    return dict(zip(his.ids, his.scores.tolist(), strict=True))


def with_line(folder: Path, section: str, line: str) -> None:
    """Adds a line to Alice's file."""
    path = folder / "alice.toml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(f"[{section}]", f"[{section}]\n{line}"), encoding="utf-8")


@pytest.mark.parametrize("name", seldom(SERVED, always=["mutual, newton"]))
def test_scores_are_those_of_a_prediction_bit_for_bit(tmp_path, name):
    folder = trained(tmp_path, **SERVED[name])
    wanted = predicted(folder)
    ids = [*wanted]
    with declared_messages_only(SERVING), service(folder) as stand:
        one_by_one = {name: stand.scores([name])[name] for name in ids[:5]}
        together = stand.scores(ids)
    assert one_by_one.items() <= wanted.items()
    assert together == wanted


def test_the_same_for_one_mechanism_with_jobs_that_wait_together(folder):
    wanted = predicted(folder)
    ids = [*wanted]
    with service(folder) as stand:
        jobs = [stand.request(ids[start : start + 3]) for start in range(0, 30, 3)]
        # A row that stands in two requests is asked for in two rounds.
        jobs.append(stand.request(ids[:2]))
        given = [(job.ids, job.future.result(60)) for job in jobs]
        assert stand.batcher.stats.rounds < len(jobs) + 3
    for names, answered in given:
        assert answered.scores.tolist() == [wanted[name] for name in names]


def test_values_beyond_the_scale_of_the_shares_are_not_scored(folder):
    config = serve_settings(folder, "alice")
    share = AppliedModel.read(config, config.path(config.output.model)).alice_share
    served = ServedRows(replace(share, whitening=None))
    rows = np.zeros((4, len(share.values)))
    rows[1, 0], rows[2, 1], rows[3, 2] = 2.0**served.size, 2.1**served.size, np.nan
    assert {*served.checked(FetchedRows(rows), "abcd").unfit} == {2, 3}
    # Sixteen times what the training saw.
    assert served.size == share.magnitude_bits + 4


def test_a_list_of_common_rows_keeps_others_unknown(folder):
    (folder / "common.csv").write_text("id\np0121\np0122\n", encoding="utf-8")
    with service(folder, alice={"aligned": "common.csv"}) as stand:
        verdicts = stand.ask(["p0121", "p0130"]).verdicts
    assert verdicts == (Verdict.HELD, Verdict.UNKNOWN)


def test_alices_limit_on_a_row_counts_predictions_trainings_and_services(folder):
    with_line(folder, "privacy", "scores-per-row = 1\nrepetitions-per-row = 2")
    predicted(folder)
    with service(folder) as stand:
        assert stand.ask(["p0121"]).verdicts == (Verdict.HELD,)
    # Kept over a restart.
    with service(folder) as stand:
        assert stand.ask(["p0121"]).verdicts == (Verdict.HELD,)
        assert stand.ask(["p0121", "p0122"]).verdicts == (Verdict.ROW_SPENT, Verdict.HELD)
    # And a prediction counts what was served.
    ends = in_threads(folder, {role: question(folder, role, ("p0121",)) for role in ROLES})
    all_refused(BudgetExceeded, ends.alice, setting="repetitions_per_row", names=3)


def test_a_new_model_beyond_alices_limit_serves_no_row(folder):
    """Both sides' files name a model that has not scored the rows yet."""
    with_line(folder, "privacy", "scores-per-row = 1")
    predicted(folder)
    for role in ROLES:
        path = folder / f"{role}.model.json"
        share = ModelShare.load(path)
        replace(share, session="0" * 32).save(path)
    with service(folder) as stand:
        assert stand.ask(["p0121"]).verdicts == (Verdict.ROW_SPENT,)


def test_alices_limit_of_a_day_counts_rows_that_she_does_not_have(folder):
    with service(folder, alice={"rows-per-day": 4}) as stand:
        assert stand.ask(["p0121", "p0122"]).verdicts == (Verdict.HELD,) * 2
        # His side has no such row; hers is asked all the same, which tells whether she has it.
        assert stand.ask(["nobody"]).verdicts == (Verdict.UNKNOWN,)
        expected = (Verdict.HELD, Verdict.DAY_SPENT)
        assert stand.ask(["p0123", "p0124"]).verdicts == expected


@pytest.mark.parametrize("every", [3, 7])
def test_a_wire_that_breaks_changes_no_score(folder, every):
    wanted = predicted(folder)
    wire = Wire(lambda frame: frame % every == 0 and frame < 40)
    with service(folder, wire) as stand:
        assert stand.scores([*wanted]) == wanted
        assert stand.scores(["p0121"]) == {"p0121": wanted["p0121"]}


def test_alice_restarted_is_met_again_and_what_waited_is_answered(folder):
    wanted, wire = predicted(folder), Wire()
    with opened(folder, wire) as stand:
        with calling(folder, wire):
            assert stand.scores(["p0121"]) == {"p0121": wanted["p0121"]}
        job = stand.request(["p0122"])
        wait_until(lambda: not stand.batcher.stats.connected)
        with calling(folder, wire):
            assert job.future.result(HANG).scores.tolist() == [wanted["p0122"]]
        assert stand.batcher.stats.meetings >= 2


def test_another_model_is_refused_and_the_right_one_met_later(folder, tmp_path):
    (tmp_path / "other").mkdir()
    other, wire = trained(tmp_path / "other"), Wire()
    with opened(folder, wire) as stand:
        alone = stand.batcher.stats.reason
        with calling(other, wire):
            wait_until(lambda: stand.batcher.stats.reason not in ("", alone))
            assert stand.batcher.stats.rows == 0
        with calling(folder, wire):
            assert stand.ask(["p0121"]).verdicts == (Verdict.HELD,)


@pytest.mark.parametrize("role", ROLES)
def test_a_service_ends_with_its_agreement(folder, role, monkeypatch):
    over = threading.Event()

    def require(config: PartyConfig) -> None:
        if over.is_set() and config.role == role:
            raise SignatureError("its time is over")

    monkeypatch.setattr(module_of(ServeSide), "require_begun_in_time", require, raising=False)
    with service(folder) as stand:
        first, second = [*predicted(folder)][:2]
        stand.scores([first])
        over.set()
        job = stand.request([second])
        wait_until(lambda: job.future.done() or not stand.batcher.stats.connected)
        assert not job.future.done()
        assert stand.batcher.stats.rows == 1


def test_a_desk_that_is_closed_refuses_who_still_waits(folder):
    with opened(folder, Wire()) as stand:
        job = stand.request(["p0121"])
        threading.Thread(target=stand.close).start()
        assert isinstance(job.future.exception(HANG), PeerAbsent)


def test_after_so_many_rounds_the_two_meet_anew(folder, monkeypatch):
    wanted = predicted(folder)
    for defined in (LabelSide, FeatureSide):
        monkeypatch.setattr(module_of(defined), "ROUNDS", 2)
    with service(folder) as stand:
        for name in [*wanted][:5]:
            assert stand.scores([name]) == {name: wanted[name]}
        assert stand.batcher.stats.meetings >= 3


class Broken:
    """A source that cannot be read, and then can."""

    at_once = False

    def __init__(self, source: RowSource, failures: int) -> None:
        self._source, self.left = source, failures

    def take(self, ids: Sequence[str]) -> FetchedRows:
        if self.left:
            self.left -= 1
            raise DataError("the database does not answer")
        return self._source.take(ids)

    def close(self) -> None:
        self._source.close()


def test_rows_that_cannot_be_read_are_a_verdict_and_not_the_end_of_a_meeting(folder):
    wire = Wire()
    with opened(folder, wire) as stand, calling(folder, wire, lambda rows: Broken(rows, 1)):
        assert stand.ask(["p0121", "p0122"]).verdicts == (Verdict.SOURCE_AWAY,) * 2
        assert stand.ask(["p0121"]).verdicts == (Verdict.HELD,)
        assert stand.batcher.stats.meetings == 1


class Poisoned(Broken):
    """A source that ends Alice's round whenever a row is asked for."""

    def take(self, ids: Sequence[str]) -> FetchedRows:
        if "p0125" in ids:
            raise StateError("something that nobody thought of")
        return self._source.take(ids)


def test_what_makes_a_round_fail_is_asked_alone_and_takes_nobody_along(folder):
    wanted, wire = predicted(folder), Wire()
    with opened(folder, wire) as stand:
        jobs = [stand.request([name]) for name in ("p0121", "p0125", "p0122")]
        with calling(folder, wire, lambda rows: Poisoned(rows, 0)):
            assert jobs[0].future.result(HANG).scores.tolist() == [wanted["p0121"]]
            assert jobs[2].future.result(HANG).scores.tolist() == [wanted["p0122"]]
            assert isinstance(jobs[1].future.exception(HANG), PeerAbsent)
            assert jobs[1].failed == MOST_FAILURES


def test_sides_that_read_ids_in_another_way_do_not_meet(folder):
    wire = Wire()
    with opened(folder, wire) as stand:
        with_line(folder, "data", 'normalise-ids = "case"')
        with calling(folder, wire):
            wait_until(lambda: "normalise-ids" in stand.batcher.stats.reason)
