"""Declarations of jobs: what collides is named, and nothing is loaded before it is used."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from importlib.metadata import EntryPoint
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest

from taciturn import extensions
from taciturn.errors import BudgetExceeded, ConfigError, ExtensionError
from taciturn.extensions import JOBS, Extension
from taciturn.job_registry import (
    JobCommand,
    JobDeclaration,
    JobRegistry,
    Namespace,
    Section,
    registry,
)
from taciturn.party.config import PartyConfig
from taciturn.protocol.codec import decode, encode, kind_of, messages, messages_digest
from taciturn.protocol.messages import Hello
from taciturn.settings.checked import Checked, setting
from tests.expected import refused
from tests.modules import module_of
from tests.party.sides import write_config

MINE = JobDeclaration(
    name="mine",
    purposes={128: "a job of mine"},
    messages={200: "some.module:Message"},
    section=Section("mine", "some.module:MySection"),
    namespaces=(Namespace("my-things", "things"),),
    commands=(JobCommand("mine", "some.module:command"),),
    results={"mine": "some.module:Result"},
)
OTHERS = JobDeclaration(name="others", purposes={129: "a job of others"}, messages={})


@pytest.fixture
def declared(monkeypatch: pytest.MonkeyPatch) -> Any:
    """An installed job for a declaration, as another package brings it."""
    module = ModuleType("taciturn_test_jobs")
    monkeypatch.setitem(sys.modules, module.__name__, module)

    def install(declaration: object, package: str = "taciturn-elsewhere") -> Extension:
        name = f"J{len(vars(module))}"
        setattr(module, name, declaration)
        entry = EntryPoint(name, f"{module.__name__}:{name}", JOBS)
        # The class of entry points has no public way to say which distribution they are of.
        object.__setattr__(entry, "dist", SimpleNamespace(name=package, version="1.0"))
        vars(entry)["dist"] = SimpleNamespace(name=package, version="1.0")
        return Extension(getattr(declaration, "name", name), "job", f"{package} 1.0", entry)

    return install


@pytest.mark.parametrize(
    ("change", "shared"),
    [
        ({"name": "mine"}, "name mine"),
        ({"purposes": {128: "another"}}, "purpose 128"),
        ({"messages": {200: "another.module:Message"}}, "message code 200"),
        ({"section": MINE.section}, "section mine"),
        ({"namespaces": MINE.namespaces}, "namespace my-things"),
        ({"commands": MINE.commands}, "command mine"),
        ({"results": {"mine": "another.module:Result"}}, "kind of result mine"),
    ],
)
def test_two_jobs_that_share_something_are_refused_and_both_are_named(declared, change, shared):
    both = declared(MINE, "first-package"), declared(replace(OTHERS, **change), "second-package")
    with refused(ExtensionError, names=("first-package 1.0", "second-package 1.0", shared)):
        JobRegistry(both)


def test_one_message_may_be_declared_by_two_jobs(declared):
    jobs = JobRegistry((declared(MINE), declared(replace(OTHERS, messages=MINE.messages))))
    assert jobs.codes() == (200,)


@pytest.mark.parametrize("number", [0, 1, 99, 127, 256])
def test_a_job_from_outside_has_numbers_of_its_range(declared, number):
    with refused(ExtensionError, names=("mine", f"purpose {number}", "128", "255")):
        JobRegistry([declared(replace(MINE, purposes={number: "mine"}))])
    with refused(ExtensionError, names=("mine", f"message code {number}", "128", "255")):
        JobRegistry([declared(replace(MINE, messages={number: "some.module:Message"}))])


@pytest.mark.parametrize("number", [0, 100, 128])
def test_a_job_of_the_project_has_numbers_of_its_range(declared, number):
    with refused(ExtensionError, names=(f"purpose {number}", "1", "99")):
        JobRegistry([declared(replace(OTHERS, purposes={number: "ours"}), "taciturn-risk")])


def test_a_job_from_outside_may_send_messages_of_the_project_and_not_replace_them(declared):
    hello = "taciturn.protocol.messages:Hello"
    ours = declared(replace(OTHERS, messages={1: hello}, purposes={9: "ours"}), "taciturn")
    jobs = JobRegistry((declared(replace(MINE, messages={1: hello})), ours))
    assert jobs.message(1) is Hello
    replaced = declared(replace(MINE, messages={1: "some.module:Hello"}))
    with refused(ExtensionError, names=("mine", "others", "message code 1")):
        JobRegistry((replaced, ours))


@pytest.mark.parametrize("declaration", ["no declaration", replace(MINE, name="My Job")])
def test_what_is_no_declaration_is_refused(declared, declaration):
    with refused(ExtensionError, names="taciturn-elsewhere 1.0"):
        JobRegistry([declared(declaration)])


@pytest.mark.parametrize(
    "change",
    [
        {"name": 7},
        {"purposes": ["a job of mine"]},
        {"messages": ("some.module:Message",)},
        {"section": "mine"},
        {"namespaces": MINE.namespaces[0]},
        {"commands": MINE.commands[0]},
        {"commands": ("some.module:command",)},
        {"results": None},
    ],
)
def test_a_field_of_another_type_is_named_with_its_package(declared, change):
    names = ("taciturn-elsewhere 1.0", next(iter(change)))
    with refused(ExtensionError, names=names):
        JobRegistry([declared(replace(MINE, **change))])


@pytest.mark.parametrize("ours_first", [True, False])
def test_of_two_that_collide_the_one_from_outside_is_to_be_mended(declared, ours_first):
    ours = declared(replace(OTHERS, purposes={9: "ours"}), "taciturn")
    outside = declared(replace(MINE, purposes={9: "mine"}))
    with pytest.raises(ExtensionError) as raised:
        JobRegistry((ours, outside) if ours_first else (outside, ours))
    assert raised.value.where == outside.entry.value


def test_a_message_of_another_code_than_declared_is_refused(declared):
    jobs = JobRegistry(
        [declared(replace(MINE, messages={200: "taciturn.protocol.messages:Hello"}))]
    )
    with refused(ExtensionError, names=("200", "Hello")):
        jobs.message(200)
    assert jobs.message(201) is None


def test_a_budget_names_its_unit_and_its_setting():
    problem = MINE.namespaces[0].exceeded("bob.example", 1, 2, 1)
    assert isinstance(problem, BudgetExceeded)
    assert "things" in problem.message


# --- the installed jobs --------------------------------------------------------------------------


def test_every_declared_message_is_one_of_the_codec():
    declared_codes = {code for job in registry().jobs for code in job.declaration.messages}
    assert {kind.code for kind in messages()} == declared_codes
    for purpose, (job, title) in registry().purposes.items():
        assert registry().job_of(purpose) is job
        assert title


def test_every_declared_name_loads():
    for job in registry().jobs:
        declaration = job.declaration
        section = [declaration.section.model] if declaration.section else []
        for path in (
            *section,
            *(command.function for command in declaration.commands),
            *declaration.results.values(),
        ):
            assert job.load(path) is not None


def test_the_digest_tells_the_wire_forms_of_messages_apart():
    digests = {messages_digest(codes) for codes in ((), (1,), (2,), (1, 2))}
    assert len(digests) == 4
    assert messages_digest((2, 1)) == messages_digest((1, 2))


def test_messages_are_decoded_by_the_registered_classes():
    frame = encode(Hello(1, "alice", "", 0, "", 0, 0))
    assert kind_of(frame) is Hello
    assert isinstance(decode(frame), Hello)


@pytest.fixture(scope="module")
def loaded_by_help() -> set[str]:
    code = (
        "import sys; from taciturn.__main__ import run; run(['--help']); "
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_the_overview_loads_declarations_and_nothing_else_of_a_job(loaded_by_help):
    of_jobs = {name for name in loaded_by_help if ".jobs." in name or ".party" in name}
    folders = {name for name in of_jobs if name.count(".") == 2}
    assert {name for name in of_jobs - folders if not name.endswith(".declaration")} == set()
    assert not {"numpy", "pydantic", "grpc", "polars"} & loaded_by_help


def test_the_entry_points_are_the_names_of_the_declarations():
    assert [added.name for added in extensions.installed(JOBS)] == sorted(
        job.name for job in registry().jobs
    )


# --- sections of a party's file ------------------------------------------------------------------


@pytest.fixture
def core_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The jobs of this distribution only."""
    core = [added for added in extensions.installed(JOBS) if added.package == "taciturn"]
    monkeypatch.setattr(module_of(PartyConfig), "registry", lambda: JobRegistry(core))


@pytest.mark.usefixtures("core_alone")
@pytest.mark.parametrize(
    ("section", "distribution"), [("woe", "taciturn-risk"), ("serve", "taciturn-ops")]
)
def test_a_section_of_a_job_that_is_not_installed_names_its_distribution(
    tmp_path, section, distribution
):
    path = write_config(tmp_path, "alice", **{section: {"allow": True}})
    where = f"{path}, [{section}]"
    with refused(ConfigError, names=(f"[{section}]", distribution)) as raised:
        PartyConfig.read(path)
    text = raised.value.diagnostics()
    assert where in text
    # exact: the command that installs it
    assert f"pip install ./{distribution.removeprefix('taciturn-')}" in text


@pytest.mark.parametrize("line", ["[weo]\nallow = true", "woe = 3"])
def test_an_unknown_section_is_refused_as_ever(tmp_path, line):
    path = write_config(tmp_path, "alice")
    # A line without a section stands at the top of the file.
    text = path.read_text()
    path.write_text(f"{text}\n{line}\n" if line.startswith("[") else f"{line}\n{text}")
    with refused(ConfigError, names=line.split()[0].strip("[]")):
        PartyConfig.read(path)


class MySection(Checked):
    """The section of a job from outside."""

    section: ClassVar = "mine"

    most_things: int = setting(3)
    """Maximum number of things."""


def test_a_section_that_the_file_lacks_has_its_defaults_and_its_settings_are_known(
    tmp_path, declared, monkeypatch
):
    section = replace(MINE, section=Section("mine", f"{__name__}:MySection"))
    jobs = JobRegistry([declared(section)])
    monkeypatch.setattr(module_of(PartyConfig), "registry", lambda: jobs)
    config = PartyConfig.read(write_config(tmp_path, "alice"))
    assert not config.job_sections
    assert config.syntax.name("most_things") == "--most-things"
    read = config.section(MySection)
    assert read.most_things == 3
    assert config.syntax.name("most_things") == "most-things"
    assert config.section(MySection) is read
    held = PartyConfig.read(write_config(tmp_path, "alice", mine={"most-things": 4}))
    assert held.section(MySection).most_things == 4
    with refused(ConfigError, names="most-thing"):
        PartyConfig.read(write_config(tmp_path, "alice", mine={"most-thing": 4}))
