"""Every command and example of the documents runs, and what they print is what they say."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from taciturn import errors
from taciturn.__main__ import run
from tests import bad_input

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*/*.md")])


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def commands() -> list[str]:
    lines = [line for block in blocks(README, "console") for line in block.splitlines()]
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder as after cloning, for commands that read examples or write files."""
    made = tmp_path_factory.mktemp("readme")
    (made / "examples").symlink_to(ROOT / "examples")
    return made


@pytest.mark.parametrize("line", [each for each in commands() if each.startswith("taciturn ")])
def test_readme_commands_run(line, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert run(shlex.split(line)[1:]) == 0
    assert capsys.readouterr().out


def test_readme_names_the_two_commands_and_the_makefile_has_them():
    made = [line for line in commands() if not line.startswith("taciturn ")]
    assert made == ["make demo", "make test"]
    for line in made:
        subprocess.run([*line.split(), "--dry-run"], cwd=ROOT, check=True, capture_output=True)


EXAMPLES = [
    pytest.param(page, code, id=f"{page}-{number}")
    for page in ("README.md", "docs/estimator.md")
    for number, code in enumerate(blocks((ROOT / page).read_text(encoding="utf-8"), "python"))
]


@pytest.mark.parametrize(("page", "code"), EXAMPLES)
def test_an_example_prints_what_its_page_says(page, code):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, page, "exec"), {})  # noqa: S102 - the page's own example
    after = (ROOT / page).read_text(encoding="utf-8").split(code, 1)[1]
    assert printed.getvalue() == blocks(after, "text")[0]
    if page == "README.md":
        assert len([line for line in code.splitlines() if line.strip()]) <= 10


def test_readme_has_its_examples():
    assert len(blocks(README, "python")) == 2


def test_errors_page_is_what_the_program_says():
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    assert page == bad_input.render(), "remake it: python -m tests.bad_input > docs/errors.md"
    assert len(bad_input.CASES) >= 25


def test_every_exit_code_is_documented():
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    listed = {int(code) for code in re.findall(r"^\| (\d+)", page, flags=re.MULTILINE)}
    kinds = [errors.TaciturnError]
    for kind in kinds:
        kinds += kind.__subclasses__()
        assert kind.exit_code in listed or 30 <= kind.exit_code <= 33, kind.__name__


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (document.parent / target).exists(), target


def test_every_citation_is_in_the_bibliography():
    known = set(re.findall(r"@\w+\{(\w+),", (ROOT / "docs/references.bib").read_text()))
    for path in [*ROOT.glob("src/**/*.py"), *DOCUMENTS]:
        for key in re.findall(r"\[([A-Z][A-Za-z]+\d{2,4})\b[^\]]*\]", path.read_text("utf-8")):
            assert key in known, f"{path.name} cites {key}"


def test_architecture_names_every_room():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for room in (ROOT / "src/taciturn").iterdir():
        if room.suffix == ".py" or (room.is_dir() and (room / "__init__.py").exists()):
            assert room.stem == "__init__" or room.stem in text, room.name
