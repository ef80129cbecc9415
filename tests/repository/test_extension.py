"""Mechanisms and attacks of other packages: the example is run, and broken ones are named."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import taciturn
from taciturn import extensions
from taciturn.__main__ import run
from taciturn.errors import AgreementError, ConfigError, ExtensionError, PeerStopped, PrivacyError
from taciturn.party.config import PartyConfig
from taciturn.party.templates import Trial, template
from taciturn.privacy.prices import Price, price
from taciturn.privacy.registry import MECHANISMS, OURS, mechanism_class
from taciturn.settings.agreement import differences
from taciturn.settings.schema import Settings
from taciturn_audit.attacks.registry import ATTACKS, attacks
from taciturn_ops.doctor.machine import check_extensions
from tests.expected import refused
from tests.modules import module_of
from tests.party import sides
from tests.party.sides import write_certificates, write_config, write_tables
from tests.test_two_machines import free_port
from tests.waiting import HANG

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "extension"
EPSILON, EPOCHS = 1.0, 2
RUN = (
    *("--dataset", "breast-cancer", "--mechanism", "one-bit", "--epsilon", str(EPSILON)),
    *("--epochs", str(EPOCHS)),
)
# As the example says: ln((1 + exp(epsilon)) / 2) for each release of a label.
PRICE = math.log((1 + math.exp(EPSILON)) / 2)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed the example, without asking any index."""
    source = tmp_path_factory.mktemp("source") / "extension"
    # Copied first: a build leaves its traces beside the sources.
    shutil.copytree(EXAMPLE, source, ignore=shutil.ignore_patterns("build", "*.egg-info"))
    folder = tmp_path_factory.mktemp("installed")
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    flags = ("--no-index", "--no-deps", "--no-build-isolation", "--target", str(folder))
    subprocess.run([*pip, *flags, str(source)], check=True, capture_output=True)
    return folder


def python(folder: Path | None, *words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """A process of this Python that has the packages of the folder too."""
    paths = "" if folder is None else str(folder)
    return subprocess.run(
        [sys.executable, *words],
        env={**os.environ, "PYTHONPATH": paths, "COLUMNS": "140"},
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def command(folder: Path | None, *words: str) -> str:
    """What a command says, where it ends well."""
    done = python(folder, "-m", "taciturn", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


# --- the example, by the command line ------------------------------------------------------------


@pytest.mark.slow  # processes of their own, some seconds
def test_a_check_rehearses_it_and_says_what_to_change(installed):
    often = ("--epsilon", "6", "--epochs", "10")
    record = json.loads(command(installed, "check", *RUN, *often, "--json"))
    verdicts = {verdict["attack"]: verdict for verdict in record["verdicts"]}
    assert {"likelihood", "mean-residue"} <= verdicts.keys()
    assert verdicts["mean-residue"]["verdict"] == "leaks"
    assert verdicts["mean-residue"]["change"].startswith("--epsilon ")
    # The example refuses an epsilon below 0.001; the search for a smaller one begins above that.
    assert re.match(r"--epsilon [\d.]+ or less", verdicts["likelihood"]["change"])


@pytest.mark.slow  # processes of their own, some seconds
def test_it_trains_and_an_audit_attacks_the_recording_and_names_both(installed, tmp_path):
    path = str(tmp_path / "run.transcript")
    line: tuple[str, ...] = ("train", *RUN, "--seed", "1", "--record", path, "--json")
    record = json.loads(command(installed, *line))
    assert record["mechanism"] == "one-bit"
    assert record["ledger"]["claimed_epsilon_per_release"] == EPSILON
    assert record["ledger"]["label_epsilon_per_release"] == pytest.approx(PRICE)
    assert record["ledger"]["label_epsilon_total"] == pytest.approx(EPOCHS * PRICE)
    assert record["test"]["auc"] > 0.6
    assert record["weight_bound"] is None
    pages = ("--html", str(tmp_path / "report.html"), "--markdown", str(tmp_path / "report.md"))
    record = json.loads(command(installed, "audit", "--transcript", path, *pages, "--json"))
    scores = {score["name"]: score for score in record["attacks"]}
    assert {"likelihood", "mean-residue"} <= scores.keys()
    # Two epochs at this epsilon tell something of a label, and the mean finds it.
    canary = {score["name"]: score for score in record["canary"]["attacks"]}
    assert canary["mean-residue"]["auc"] > 0.55
    # The example's price is proven; coin labels must not contradict it.
    assert record["evidence"]["claim"] == pytest.approx(EPOCHS * PRICE)
    assert not record["evidence"]["violated"]
    for page in ("report.html", "report.md"):
        text = (tmp_path / page).read_text(encoding="utf-8")
        assert "one-bit" in text
        assert "mean-residue" in text


@pytest.mark.slow  # a second or two, and others show the same on less
def test_the_help_names_it_and_nothing_of_it_is_imported_before_it_is_used(installed):
    for name in ("train", "audit"):
        done = python(installed, "-X", "importtime", "-m", "taciturn", name, "--help")
        text = " ".join(done.stdout.replace("│", " ").split())
        assert "one-bit (taciturn-one-bit 0.1.0)" in text
        assert ("mean-residue" in text) == (name == "audit")
        assert "taciturn.cli" in done.stderr
        assert "taciturn_one_bit" not in done.stderr
    # Another mechanism's training uses neither.
    other = ("--data", str(ROOT / "examples/loans.csv"), "--id", "customer", "--label", "default")
    line = ("train", *other, "--mechanism", "add", "--epsilon", "1", "--epochs", "1")
    done = python(installed, "-X", "importtime", "-m", "taciturn", *line)
    assert done.returncode == 0, done.stderr
    assert "taciturn_one_bit" not in done.stderr


@pytest.mark.slow  # processes of their own, some seconds
def test_its_own_tests_pass(installed):
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull)
    done = python(installed, *words, str(EXAMPLE / "tests"), cwd=installed)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


# --- its job -------------------------------------------------------------------------------------


def test_its_job_is_a_command_a_section_and_a_template(installed, tmp_path):
    overview = command(installed, "--help").splitlines()
    (place,) = [at for at, line in enumerate(overview) if line.split()[:1] == ["counts"]]
    assert overview[place - 1].split()[0] in ("party", "woe")
    command(installed, "init", "--folder", str(tmp_path / "trial"))
    for role, setting in (("alice", "# share = "), ("bob", "# column = ")):
        text = (tmp_path / "trial" / f"{role}.toml").read_text(encoding="utf-8")
        assert setting in text.split("[counts]\n")[1]
    help_page = "import sys; from taciturn.__main__ import run; run(['--help']); "
    done = python(installed, "-c", help_page + "print(*sys.modules, file=sys.stderr)")
    loaded = set(re.findall(r"\btaciturn_counts[.\w]*", done.stderr))
    assert loaded == {"taciturn_counts", "taciturn_counts.declaration"}


def test_its_job_runs_between_two_processes(installed):
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull)
    done = python(installed, *words, str(EXAMPLE / "tests" / "test_counts.py"), cwd=installed)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


def test_two_packages_whose_jobs_have_one_number_part_with_both_names(installed, tmp_path):
    """Bob's package has another job of the purpose 128, and the same messages."""
    others = tmp_path / "others"
    shutil.copytree(installed, others)
    declaration = others / "taciturn_counts" / "declaration.py"
    text = declaration.read_text(encoding="utf-8")
    declaration.write_text(text.replace('name="counts",', 'name="tallies",'), encoding="utf-8")
    write_tables(tmp_path, rows=60)
    write_certificates(tmp_path / "certs")
    address, folders = f"127.0.0.1:{free_port()}", {"alice": installed, "bob": others}
    own: dict[str, dict[str, Any]] = {
        "alice": {"share": ["mean_radius"]},
        "bob": {"column": "mean_radius"},
    }
    running = {}
    for role, way in (("bob", "listen"), ("alice", "connect")):
        path = write_config(tmp_path, role, link={way: address}, counts=own[role])
        line = [sys.executable, "-m", "taciturn", "counts", str(path)]
        environment = {**os.environ, "PYTHONPATH": str(folders[role]), "COLUMNS": "200"}
        running[role] = subprocess.Popen(line, env=environment, stderr=subprocess.PIPE, text=True)
    for role, process in running.items():
        problems = process.communicate(timeout=HANG)[1]
        assert process.returncode in (AgreementError.exit_code, PeerStopped.exit_code), role
        assert {"counts", "tallies"} <= set(re.findall(r"\w+", problems)), problems


def test_a_section_of_an_extension_that_is_not_installed_is_unknown(tmp_path):
    path = write_config(tmp_path, "alice", counts={"share": ["a0"]})
    with refused(ConfigError, names="counts"):
        PartyConfig.read(path)


# --- broken ones ---------------------------------------------------------------------------------

Install = Callable[..., None]

# What a mechanism needs at least, as text, to leave parts out of.
WHOLE = """
from dataclasses import dataclass
from taciturn.privacy.base import ResidueMechanism, Released
from taciturn.privacy.events import PrivacyEvent
from taciturn.privacy.prices import Price, Priced

@dataclass(frozen=True, slots=True)
class Told(PrivacyEvent):
    name = "told-in-a-test"

class Thing(ResidueMechanism):
    name = "thing"
    summary = "a thing"
    event = Told()
    prices = (Priced(Told, lambda event: Price(1.0, 1.0, 1.0)),)

    @classmethod
    def from_agreement(cls, agreed):
        return cls()

    def draw(self, count, entropy):
        return entropy.words(count)

    def release(self, residues, draws):
        return Released(residues, self.event)

    def log_probability(self, released, residues):
        return 0.0 * residues
"""
ATTACK = """
import numpy as np
from taciturn_audit.attacks.base import Attack, LabelGuess
from taciturn.protocol.observations import Signal

class Thing(Attack):
    name = "thing"
    reference = "a test"
    needs = frozenset({Signal.FEATURES})

    def _guess(self, view, progress):
        rows = view.features.rows
        return LabelGuess(np.zeros(rows), np.zeros(rows, bool), np.zeros(rows, bool))
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Puts packages of one module on the path, with the metadata that an installer leaves."""
    modules: list[str] = []

    def put(text: str, group: str = extensions.MECHANISMS, name: str = "thing") -> None:
        module = f"broken_{len(modules)}"
        modules.append(module)
        (tmp_path / f"{module}.py").write_text(text, encoding="utf-8")
        info = tmp_path / f"{module}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {module}:Thing\n")
        forget()

    def forget() -> None:
        extensions.installed.cache_clear()
        module_of(mechanism_class)._loaded.cache_clear()
        module_of(Price)._KINDS.pop("told-in-a-test", None)
        for module in modules:
            sys.modules.pop(module, None)

    monkeypatch.syspath_prepend(tmp_path)
    yield put
    monkeypatch.undo()
    forget()


def require_refusal(act: Callable[[], object], names: str = "") -> None:
    with refused(ExtensionError, names=("broken_0 1.2", names)) as raised:
        act()
    assert raised.value.hint


def test_what_the_other_cases_leave_something_out_of_is_whole(install):
    install(WHOLE)
    assert mechanism_class("thing").summary == "a thing"
    assert (*MECHANISMS,) == (*OURS, "thing")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import no_such_module", "ModuleNotFoundError"),
        ("1 / 0", "ZeroDivisionError"),
        ("", "AttributeError"),
        ("Thing = 3", "taciturn.privacy.base.Mechanism"),
        ("class Thing: pass", "taciturn.privacy.base.Mechanism"),
        (WHOLE.replace("def release", "def other"), "release"),
        (WHOLE.replace('summary = "a thing"', ""), "summary"),
        (WHOLE.replace('name = "thing"', 'name = "other"'), "other"),
        (WHOLE.replace('summary = "', 'conversation, summary = "talk", "'), "conversation"),
        (WHOLE.replace('summary = "', 'takes, summary = ("salt",), "'), "salt"),
        (WHOLE.replace("told-in-a-test", "additive-noise"), "additive-noise"),
    ],
)
def test_a_broken_mechanism_is_named_with_its_package(install, text, names):
    install(text)
    require_refusal(lambda: mechanism_class("thing"), names)
    # It keeps nobody from using another one.
    assert mechanism_class("add").name == "add"


# --- a mechanism with a setting of its own --------------------------------------------------------

OWN = (
    WHOLE.replace(
        "class Thing(",
        """from typing import Annotated
from pydantic import Field
from taciturn.errors import ConfigError
from taciturn.settings.checked import Checked, setting

class ThingSettings(Checked):
    grain_size: Annotated[int, Field(ge=1, le=64)] = setting(..., example=4)
    '''Grain of a thing.'''
    sifted: bool = setting(False)
    '''Sift the grains.'''

class Thing(""",
    )
    .replace('    summary = "', '    settings = ThingSettings\n    summary = "')
    .replace(
        "        return cls()",
        """        own = cls.own_settings(agreed)
        if own.grain_size == 13:
            raise ConfigError("13 grains are refused", setting="grain_size")
        made = cls()
        made.assumption = f"{own.grain_size} grains, {own.sifted}"
        return made""",
    )
)
DATA: dict[str, Any] = {"dataset": "breast-cancer"}
LINE = ("train", "--dataset", "breast-cancer", "--epochs", "1", "--seed", "1", "--json")


def test_a_setting_of_its_own_is_an_option_a_key_and_a_keyword(install, tmp_path, capsys):
    install(OWN)
    file = tmp_path / "run.toml"
    file.write_text('mechanism = "thing"\ngrain-size = 7\nsifted = true\n')
    options = ("--mechanism", "thing", "--grain-size", "7", "--sifted")
    records = []
    for more in (options, ("--config", str(file))):
        assert run([*LINE, *more]) == 0
        records.append(json.loads(capsys.readouterr().out))
    keywords: dict[str, Any] = {"mechanism": "thing", "grain_size": 7, "sifted": True}
    same = taciturn.train(dataset="breast-cancer", epochs=1, seed=1, **keywords)
    records.append(same.to_dict())
    for record in records:
        assert record["mechanism_settings"] == {"grain_size": 7, "sifted": True}
        assert record["ledger"]["assumption"] == "7 grains, True"
    assert (
        "mechanism_settings"
        not in taciturn.train(dataset="breast-cancer", epochs=1, seed=1, mechanism="none").to_dict()
    )


def test_the_help_of_a_command_has_the_settings_of_the_mechanism_that_it_names(install, capsys):
    install(OWN)
    for more, listed in ((("--mechanism", "thing"), True), ((), False)):
        run(["train", *more, "--help"])
        text = " ".join(capsys.readouterr().out.split())
        # exact: the test's own content
        assert ("--grain-size" in text and "Grain of a thing" in text) is listed


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (("--grain-size", "65"), "--grain-size"),
        (("--grain-size", "13"), "--grain-size"),
        ((), "grain-size"),
        (("--grain-size", "7", "--epsilon", "1"), "--epsilon"),
    ],
)
def test_a_wrong_value_of_its_own_setting_is_refused_by_its_option(install, capsys, options, names):
    install(OWN)
    assert run([*LINE, "--mechanism", "thing", *options]) == ConfigError.exit_code
    assert names in capsys.readouterr().err


def test_a_setting_of_its_own_is_unknown_without_the_mechanism(install):
    install(OWN)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"mechanism": "none", "grain_size": 7}, "grain_size"),
        ({"mechanism": "thing", "grain_size": 7, "grain": 7}, "grain"),
    ]
    for given, name in wrong:
        with refused(ConfigError, names=name):
            taciturn.train(**DATA, **given)
    with refused(ConfigError, names=("grain_size", "none")):
        settings = {"mechanism_settings": {"grain_size": 7}}
        Settings.from_mapping({"mechanism": "none", **settings})


def test_parties_train_with_a_setting_of_its_own_and_name_a_difference(install, tmp_path):
    install(OWN)
    sides.write_tables(tmp_path)
    sides.write_certificates(tmp_path / "certs")
    sides.set_up(tmp_path, **{"mechanism": "thing", "grain-size": 7})
    results = sides.run_both(tmp_path)
    assert results
    config = PartyConfig.read(tmp_path / "alice.toml")
    assert config.settings().mechanism_settings == {"grain_size": 7}
    text = (tmp_path / "alice.toml").read_text()
    (tmp_path / "alice.toml").write_text(text.replace("grain-size = 7", "grain-size = 65"))
    with refused(ConfigError, names=("grain-size", "alice.toml")) as raised:
        PartyConfig.read(tmp_path / "alice.toml")
    assert "[agreement]" in raised.value.where


def test_a_template_shows_a_setting_of_its_own(install):
    install(OWN)
    text = template("bob", Trial("thing"))
    assert "\ngrain-size = 4 " in text
    assert "\n# sifted = false " in text


def test_a_difference_of_an_own_setting_is_named_alone():
    ours, theirs = (
        json.dumps({"mechanism": "thing", "mechanism_settings": {"grain_size": size}})
        for size in (7, 8)
    )
    assert differences(ours, theirs) == ["grain-size: 7 here, 8 there"]
    other = json.dumps({"mechanism": "none"})
    assert differences(ours, other) == ['mechanism: "thing" here, "none" there']


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (OWN.replace("(Checked)", ""), "Checked"),
        (OWN.replace("setting(False)", "False"), "sifted"),
        (OWN.replace("'''Sift the grains.'''", ""), "sifted"),
    ],
)
def test_settings_that_are_not_declared_as_such_are_the_packages_fault(install, text, names):
    install(text)
    given: dict[str, Any] = {**DATA, "mechanism": "thing", "grain_size": 7}
    require_refusal(lambda: taciturn.train(**given), names)


def test_an_event_that_is_not_priced_is_refused_when_it_is_charged(install):
    """The ledger's own rule: what has no known price is never guessed."""
    install(WHOLE.replace("    prices =", "    unused ="))
    with refused(PrivacyError, names="Told"):
        price(mechanism_class("thing").event)


def test_nobody_takes_the_name_of_a_mechanism_of_ours_or_of_another_package(install):
    install(WHOLE, name="sealed")
    require_refusal(lambda: mechanism_class("sealed"), "sealed")
    install(WHOLE, name="twice")
    install(WHOLE, name="twice")
    with refused(ExtensionError, names=("broken_1 1.2", "broken_2 1.2")):
        mechanism_class("twice")


def test_an_attack_of_another_package_stands_beside_ours(install):
    install(ATTACK, group=extensions.ATTACKS)
    assert [attack.name for attack in attacks()] == [*(ours.name for ours in ATTACKS), "thing"]
    assert "broken_0 1.2" in attacks()[-1].reference


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import no_such_module", "ModuleNotFoundError"),
        ("class Thing: pass", "taciturn_audit.attacks.base.Attack"),
        (ATTACK.replace("def _guess", "def guess"), "_guess"),
        (ATTACK.replace('reference = "a test"', ""), "reference"),
        (ATTACK.replace('name = "thing"', 'name = "sign"'), "sign"),
        (ATTACK.replace("{Signal.FEATURES}", '{"features"}'), "Signal"),
        (ATTACK + "    def __init__(self, more): pass", "TypeError"),
    ],
)
def test_a_broken_attack_is_named_with_its_package(install, text, names):
    install(text, group=extensions.ATTACKS)
    require_refusal(attacks, names)


def test_the_doctor_says_which_load_and_which_do_not(install):
    install(WHOLE)
    install("1 / 0", group=extensions.ATTACKS, name="worse")
    mechanism, attack = check_extensions()
    assert (mechanism.level.value, attack.level.value) == ("ok", "problem")
    assert "broken_0 1.2" in mechanism.summary
    assert "broken_1 1.2" in attack.summary


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (ATTACK.replace("rows =", "raise KeyError(3); rows ="), "KeyError"),
        (ATTACK.replace("np.zeros(rows),", "np.full(rows, np.nan),"), "LabelGuess"),
        (ATTACK.replace("return Label", "return None; Label"), "LabelGuess"),
    ],
)
def test_an_attack_that_fails_at_work_is_named_with_its_package(install, text, names):
    install(text, group=extensions.ATTACKS)
    run: dict[str, Any] = {
        "dataset": "breast-cancer",
        "mechanism": "add",
        "epsilon": 1.0,
        "epochs": 1,
        "seed": 1,
    }
    require_refusal(lambda: taciturn.audit(**run), names)
