"""Two real processes, real certificates, real HTTP: right requests, wrong ones, and stops."""

from __future__ import annotations

import csv
import http.client
import json
import shutil
import signal
import ssl
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import polars as pl
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from ops.tests.serve.services import Running, Service, furnish, started
from ops.tests.serve.sides import serve_settings
from ops.tests.serve.wrong_requests import COLUMNS, PAGE, ROW, WRONG, case, render

from taciturn.errors import CertificateError
from taciturn.transport.certs import (
    certify,
    make_certificates,
    make_issuer,
    pem,
    self_signed,
    subject_of,
)
from taciturn_ops.serve.http.callers import new_token
from taciturn_ops.serve.http.server import tls_context
from tests.system import promtool_path
from tests.waiting import HANG, wait_until


def predicted(folder: Path) -> dict[str, float]:
    """What the command says of the new rows."""
    sides = [
        subprocess.Popen(
            [sys.executable, "-m", "taciturn", "predict", f"{role}.toml"]
            + ["--rows", f"new-{role}.csv"]
            + (["--out", "scores.csv"] if role == "bob" else []),
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for role in ("alice", "bob")
    ]
    assert [side.wait(HANG) for side in sides] == [0, 0]
    with (folder / "scores.csv").open(encoding="utf-8") as stream:
        return {row["id"]: float(row["score"]) for row in csv.DictReader(stream)}


def test_one_row_several_rows_and_rows_with_columns_have_the_score_of_the_command(
    model, service, tmp_path
):
    other = furnish(Path(shutil.copytree(model, tmp_path / "predicted"))).alice.folder
    wanted = predicted(other)
    reply = service.score("p0121")
    assert reply.status == 200
    assert reply.json["score"] == wanted["p0121"]
    assert reply.json.keys() == {"id", "score", "probability", "class", "model", "request"}
    rows = service.request("POST", "/v1/scores", {"ids": [*wanted]}).json["rows"]
    assert {row["id"]: row["score"] for row in rows} == wanted
    # In the order of the request.
    assert [row["id"] for row in rows] == [*wanted]
    frame = pl.read_csv(other / "new-bob.csv")
    sent = [{"id": row.pop("id"), "columns": row} for row in frame.to_dicts()[:20]]
    mixed = [*sent, {"id": "p0149"}, {"id": "p0125"}]
    unique = list({row["id"]: row for row in mixed}.values())
    rows = service.request("POST", "/v1/scores", {"rows": unique}).json["rows"]
    assert {row["id"]: row["score"] for row in rows}.items() <= wanted.items()
    assert len(rows) == len(unique)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_request_is_refused_by_name(service, name):
    wrong = case(name)
    reply = service.request(wrong.method, wrong.path, wrong.body, wrong.headers, token=wrong.token)
    if wrong.inside:
        assert reply.status == 200
        first, second = reply.json["rows"]
        assert "score" in first
        error = second["refused"]
    else:
        from taciturn_ops.serve.http.requests import REASONS

        assert reply.status == REASONS[wrong.code].status
        error = reply.json["error"]
    assert error["code"] == wrong.code
    assert all(str(name) in error["message"] for name in wrong.names)
    assert error["try"]


def test_the_documentation_has_the_wrong_requests_and_their_answers():
    text = PAGE.read_text(encoding="utf-8")
    assert render(text) == text


def test_what_is_open_to_all_says_nothing_of_rows_and_columns(service):
    for path in ("/healthz", "/readyz", "/openapi.json", "/"):
        reply = service.request("GET", path, headers={"Authorization": ""})
        assert reply.status == 200
        assert not any(name in reply.text for name in ("p0121", *COLUMNS))
    assert service.request("GET", "/readyz").json == {"ready": True, "partner": "connected"}


def test_the_description_is_openapi_and_describes_the_answers(service):
    import jsonschema

    description = service.request("GET", "/openapi.json").json
    assert description["openapi"].startswith("3.1")

    def schema_of(path: str, status: str) -> dict[str, object]:
        answer = description["paths"][path]["post"]["responses"][status]
        schema = answer["content"]["application/json"]["schema"]
        return {**schema, "components": description["components"]}

    jsonschema.validate(service.score("p0121").json, schema_of("/v1/score", "200"))
    jsonschema.validate(
        service.score("nobody").json["error"],
        {
            "$ref": "#/components/schemas/Error",
            "components": description["components"],
        },
    )
    batch = service.request("POST", "/v1/scores", {"rows": [{"id": "p0121"}, {"id": "no"}]})
    jsonschema.validate(batch.json, schema_of("/v1/scores", "200"))


def test_the_description_accepts_the_requests_that_the_service_does(service):
    import jsonschema

    description = service.request("GET", "/openapi.json").json
    schema = {**description["components"]["schemas"]["BatchRequest"]}
    schema["components"] = description["components"]
    row = {"id": "p0121"}
    bodies: list[tuple[dict[str, object], bool]] = [
        ({"ids": ["p0121"]}, True),
        ({"ids": ["p0121"], "rows": None}, True),
        ({"rows": [row]}, True),
        ({"rows": [row], "ids": None}, True),
        ({}, False),
        ({"ids": None, "rows": None}, False),
        ({"ids": ["p0121"], "rows": [row]}, False),
        ({"ids": []}, False),
        ({"rows": []}, False),
        ({"ids": ["p0121", "p0121"]}, False),
        ({"ids": [str(number) for number in range(101)]}, False),
    ]
    for body, accepted in bodies:
        valid = jsonschema.Draft202012Validator(schema).is_valid(body)
        status = service.request("POST", "/v1/scores", body).status
        assert (valid, status == 200) == (accepted, accepted), body


def test_a_method_that_a_path_does_not_take_is_answered_with_those_that_it_does(service):
    reply = service.request("GET", "/v1/score")
    assert (reply.status, reply.headers["allow"]) == (405, "POST")
    reply = service.request("POST", "/healthz")
    assert {*reply.headers["allow"].split(", ")} == {"GET", "HEAD"}


def test_metrics_are_such_as_prometheus_takes(service):
    service.score("p0121")
    text = service.request("GET", "/metrics").text
    assert "taciturn_serve_partner_up 1" in text
    assert 'taciturn_serve_requests_total{status="200"}' in text
    done = subprocess.run(
        [promtool_path(), "check", "metrics"],
        input=text,
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_log_has_a_line_for_each_request_and_no_value(service):
    reply = service.score("p0127")
    log = (service.bob.folder / "bob.log").read_text(encoding="utf-8")
    (line,) = (json.loads(text) for text in log.splitlines() if reply.json["request"] in text)
    assert line["caller"] == "crm"
    assert (line["path"], line["status"], line["rows"]) == ("/v1/score", 200, 1)
    for side in (service.alice, service.bob):
        text = (side.folder / f"{side.role}.log").read_text(encoding="utf-8") + side.said()
        assert "p0127" not in text
        assert str(reply.json["score"])[:8] not in text
        assert service.token not in text


def test_a_large_request_of_wrong_rows_is_refused_before_they_are_looked_at(service):
    for rows in ([1] * 1_000_000, ["a"] * 1_000_000):
        reply = service.request("POST", "/v1/scores", {"ids": rows})
        assert (reply.status, reply.code) == (413, "too-large")


def test_nothing_listens_beyond_this_machine(service):
    done = subprocess.run(["ss", "-ltnH"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("not tested: where the service listens; get ss by `make system`")
    lines = [line.split()[3] for line in done.stdout.splitlines() if f":{service.port}" in line]
    assert lines == [f"127.0.0.1:{service.port}"]


@pytest.mark.slow  # three starts
def test_limits_of_callers_and_rows_are_kept_over_a_restart(folder):
    running = furnish(folder, bob={"rows-per-day": 4, "requests-per-row-per-day": 2})
    with started(running):
        assert running.score("p0121").status == 200
        assert running.score("p0121").status == 200
        reply = running.score("p0121")
        assert (reply.status, reply.code) == (429, "row-limit")
        assert running.bob.stop() == 0
        running.bob.start()
        running.wait_ready()
        assert running.score("p0121").code == "row-limit"
        reply = running.score("p0122")
        assert (reply.status, reply.code) == (429, "caller-limit")


@pytest.mark.slow  # ten seconds
def test_either_side_killed_under_load_gives_no_wrong_score(folder):
    """Every request is answered or refused by name; sixteen callers, and three kills."""
    running = furnish(folder, bob={"request-seconds": 60.0})
    with started(running):
        rows = running.request(
            "POST", "/v1/scores", {"ids": [f"p{n:04d}" for n in range(120, 150)]}
        )
        wanted = {row["id"]: row["score"] for row in rows.json["rows"]}
        over, seen = threading.Event(), list[tuple[int, str]]()

        def call(number: int) -> None:
            turn = number
            while not over.is_set():
                name = f"p{120 + turn % 30:04d}"
                turn += 1
                try:
                    reply = running.score(name)
                except (OSError, http.client.HTTPException) as problem:
                    # Bob's process is gone: no answer at all.
                    seen.append((0, type(problem).__name__))
                    over.wait(0.05)
                    continue
                if reply.status == 200:
                    assert reply.json["score"] == wanted[name]
                    seen.append((200, ""))
                else:
                    seen.append((reply.status, reply.code))

        def answered() -> int:
            return sum(status == 200 for status, _ in seen)

        def more_than(number: int) -> bool:
            return answered() > number

        # The port of a service that is started anew is another: fixed here.
        text = (folder / "bob.toml").read_text(encoding="utf-8")
        (folder / "bob.toml").write_text(
            text.replace("127.0.0.1:0", f"127.0.0.1:{running.port}"), encoding="utf-8"
        )
        with ThreadPoolExecutor(16) as callers:
            calls = [callers.submit(call, number) for number in range(16)]
            try:
                for side in (running.alice, running.bob, running.alice):
                    wait_until(partial(more_than, answered() + 20))
                    side.kill()
                    side.start()
                    running.wait_ready()
                wait_until(partial(more_than, answered() + 20))
            finally:
                over.set()
            for one in calls:
                one.result(HANG)
    statuses = {status for status, _ in seen}
    assert statuses <= {200, 0, 503}
    assert {code for status, code in seen if status == 503} <= {"partner-away", "busy", "stopping"}


@pytest.mark.slow  # some seconds
def reload(side: Service, event: str) -> str:
    """Reads a side's file anew; the line that it logs, of this event."""
    log = side.file("log")

    def lines() -> list[str]:
        logged = log.read_text("utf-8").splitlines()
        return [line for line in logged if json.loads(line)["event"].startswith("settings")]

    before = len(lines())
    side.signal(signal.SIGHUP)
    wait_until(lambda: len(lines()) > before, side.said())
    assert json.loads(lines()[-1])["event"] == event
    return lines()[-1]


def test_settings_are_reloaded_and_no_request_is_lost(folder):
    running = furnish(folder)
    alice, bob = (folder / f"{role}.toml" for role in ("alice", "bob"))
    rows = pl.read_csv(folder / "new-alice.csv")
    with started(running):
        wanted = running.score("p0121").json["score"]
        over, seen = threading.Event(), list[tuple[int, float]]()

        def call() -> None:
            while not over.is_set():
                reply = running.score("p0121")
                seen.append((reply.status, reply.json.get("score")))

        caller = threading.Thread(target=call)
        caller.start()
        try:
            token, kept = new_token(folder / "callers.toml", "audit"), bob.read_text()
            assert running.request("GET", "/v1/model", token=token).status == 401
            bob.write_text(f"{kept}max-rows-per-request = 7\n")
            reload(running.bob, "settings reloaded")
            about = running.request("GET", "/v1/model", token=token)
            assert (about.status, about.json["max_rows_per_request"]) == (200, 7)
            # A broken file, and a change that needs another start: the old settings hold.
            changed = bob.read_text()
            for text, named in (
                (changed.replace("max-rows", "most-rows"), "most-rows-per-request"),
                (changed.replace("127.0.0.1:0", "127.0.0.1:1"), "address"),
                (changed.replace("new-bob.csv", "absent.csv"), "absent.csv"),
            ):
                bob.write_text(text)
                assert named in reload(running.bob, "settings not reloaded")
                assert running.request("GET", "/v1/model").json["max_rows_per_request"] == 7
            # Alice's rows are another file, which lacks one.
            rows.filter(pl.col("id") != "p0122").write_csv(folder / "fewer.csv")
            assert running.score("p0122").status == 200
            alice.write_text(alice.read_text().replace("new-alice.csv", "fewer.csv"))
            reload(running.alice, "settings reloaded")
            assert running.score("p0122").code == "unknown-id"
        finally:
            over.set()
            caller.join(HANG)
    assert {*seen} == {(200, wanted)}


def test_more_requests_than_may_wait_are_refused_at_once(folder):
    running = furnish(folder, bob={"max-queued-requests": 2})
    with started(running):
        running.alice.kill()
        wait_until(lambda: not running.ready())
        with ThreadPoolExecutor(8) as callers:
            calls = [callers.submit(running.score, f"p012{number}") for number in range(8)]
            wait_until(lambda: sum(call.done() for call in calls) == 6)
            running.alice.start()
            replies = [call.result(HANG) for call in calls]
        statuses = sorted(reply.status for reply in replies)
        assert statuses == [200, 200, *[503] * 6]
        assert {reply.code for reply in replies if reply.status == 503} == {"busy"}


@pytest.mark.slow  # three starts
def test_a_partner_that_is_away_is_named_and_a_stop_answers_what_is_under_way(folder):
    running = furnish(folder, bob={"request-seconds": 0.5})
    with started(running):
        assert running.alice.stop() == 0
        wait_until(lambda: not running.ready())
        reply = running.score("p0121")
        assert (reply.status, reply.code) == (503, "partner-away")
        assert reply.headers["retry-after"] == "1"
        running.alice.start()
        running.wait_ready()
        # A busy machine may need more than half a second for the first round.
        wait_until(lambda: running.score("p0121").status == 200)
        assert running.bob.stop() == 0
    assert "Traceback" not in running.bob.said() + running.alice.said()


def asked(running: Running, name: str | None) -> tuple[int, str]:
    """The status and the name of the refusal of a caller with a certificate of this name."""
    folder = running.bob.folder / "callers"
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    context.check_hostname = False
    if name is not None:
        context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
    link = http.client.HTTPSConnection("127.0.0.1", running.port, context=context, timeout=HANG)
    body = json.dumps({"id": "p0121"})
    link.request("POST", "/v1/score", body, {"Content-Type": "application/json"})
    answer = link.getresponse()
    text = answer.read().decode()
    link.close()
    return answer.status, json.loads(text).get("error", {}).get("code", "")


CALLERS = {
    "tls-certificate": "callers/service.pem",
    "tls-key": "callers/service.key",
    "callers-ca": "callers/ca.pem",
}


@pytest.mark.slow  # two starts each
@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        # Without a file of callers whoever has a certificate may ask, except in the peer's name.
        (False, {"crm": (200, ""), "erp": (200, ""), "alice": (403, "not-allowed")}),
        (True, {"crm": (200, ""), "erp": (403, "not-allowed"), None: (401, "not-authenticated")}),
    ],
)
def test_callers_with_certificates_are_known_by_their_names(folder, listed, expected):
    make_certificates(folder / "callers", ["service", "crm", "erp", "alice"])
    running = furnish(folder, bob=CALLERS)
    if not listed:
        path = folder / "bob.toml"
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace('tokens = "callers.toml"', ""), encoding="utf-8")
    for side in (running.alice, running.bob):
        side.start()
    try:
        assert {name: asked(running, name) for name in expected} == expected
    finally:
        running.alice.stop()
        running.bob.stop()


@pytest.mark.parametrize("callers", ["the link's", "one above the link's", "the link's, renewed"])
def test_the_authority_of_the_link_is_not_that_of_callers(folder, callers):
    """Every peer has a certificate of it; the peer's would get scores, which tell labels."""
    furnish(folder)
    make_certificates(folder / "callers", ["service", "crm"])
    config = serve_settings(folder, "bob", **CALLERS)
    assert tls_context(config) is not None
    start, end = datetime.now(UTC) - timedelta(hours=1), datetime.now(UTC) + timedelta(hours=1)
    link, others = folder / "certs" / "ca.pem", folder / "callers" / "ca.pem"
    key = load_pem_private_key((folder / "certs" / "ca.key").read_bytes(), None)
    assert isinstance(key, EllipticCurvePrivateKey)
    if callers == "the link's":
        authority = link.read_bytes()
    elif callers == "one above the link's":
        above = make_issuer("above", start, end)
        under = certify(above, "link", key.public_key(), start, end)
        link.write_bytes(pem(under))
        authority = pem(above.certificate)
    else:
        authority = pem(self_signed(subject_of("another name"), key, start, end))
    # Beside others that are in order, too.
    others.write_bytes(others.read_bytes() + authority)
    with pytest.raises(CertificateError):
        tls_context(config)


def test_the_row_of_the_examples_has_the_models_columns(service):
    assert service.score("p0121", columns=ROW).status == 200
