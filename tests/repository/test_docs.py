"""Every command and example of the documents runs, and what they print is what they say."""

from __future__ import annotations

import ast
import contextlib
import importlib
import io
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from taciturn import errors
from taciturn.__main__ import run
from taciturn.privacy.registry import MECHANISMS

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
OTHERS = ("audit", "ops", "paper", "risk")
DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *(path for top in ("docs", "examples", *OTHERS) for path in ROOT.glob(f"{top}/**/*.md")),
    ]
)


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def command_output(text: str) -> dict[str, list[str]]:
    """The lines that a page shows below each command."""
    shown: dict[str, list[str]] = {}
    for line in (line for block in blocks(text, "console") for line in block.splitlines()):
        if line.startswith("$ "):
            below = shown[line.removeprefix("$ ")] = []
        else:
            below.append(line)
    return shown


def commands(text: str) -> list[str]:
    lines = [line for block in blocks(text, "console") for line in block.splitlines()]
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]


FIGURE = re.compile(r"[0-9]+\.[0-9]+")


def numbers(text: str) -> list[float]:
    return [float(figure) for figure in FIGURE.findall(text)]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as after cloning, with the examples: commands write into it."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_readme_commands_run_and_print_what_it_shows(checkout, capsys):
    """One after the other: some read what others have written."""
    chosen = {line: shown for line, shown in command_output(README).items() if "taciturn" in line}
    assert len(chosen) >= 9
    for line, shown in chosen.items():
        assert run(shlex.split(line)[1:]) == 0, f"{line}: {capsys.readouterr().err}"
        printed = capsys.readouterr().out
        assert printed, line
        figures = {
            FIGURE.sub("#", printed_line.strip()): printed_line
            for printed_line in printed.splitlines()
        }
        for shown_line in shown:
            match = figures[FIGURE.sub("#", shown_line.strip())]
            assert numbers(match) == pytest.approx(numbers(shown_line), abs=0.5)
    assert any(chosen.values())


@pytest.mark.slow  # the README's commands, which run always, are of the same kinds
@pytest.mark.parametrize(
    "page", ["researcher", pytest.param("data-scientist", marks=pytest.mark.slow)]
)
def test_the_commands_of_a_tutorial_run(page, checkout, capsys):
    """The operator's tutorial needs two terminals: test_two_machines.py."""
    lines = commands((ROOT / f"docs/tutorials/{page}.md").read_text(encoding="utf-8"))
    assert len(lines) >= 7
    for line in lines:
        first, *arguments = shlex.split(line)
        assert first == "taciturn"
        assert run(arguments) == 0, f"{line}: {capsys.readouterr().err}"
        assert capsys.readouterr().out, line


def test_the_commands_of_the_page_on_runs_run_and_python_reads_what_they_left(checkout, capsys):
    text = (ROOT / "risk/docs/runs.md").read_text(encoding="utf-8")
    lines = commands(text)
    assert len(lines) >= 3
    for line in lines:
        assert run(shlex.split(line)[1:]) == 0, f"{line}: {capsys.readouterr().err}"
        assert capsys.readouterr().out, line
    (code,), (said,) = blocks(text, "python"), blocks(text, "text")
    exec(compile(code, "risk/docs/runs.md", "exec"), {})  # noqa: S102 - the page's own example
    assert capsys.readouterr().out == said


def test_the_makefile_has_the_readme_s_commands():
    """On its first screen the one that shows the main job and the one that passes the tests."""
    printed = {}
    for line in re.findall(r"`(make[ a-z-]*)`", README):
        done = subprocess.run(
            [*line.split(), "--dry-run"], cwd=ROOT, check=True, capture_output=True, text=True
        )
        printed[line] = done.stdout
    first_screen = "\n".join(README.splitlines()[:40])
    # exact: commands of the Makefile
    assert "taciturn demo" in printed["make demo"]
    # exact: commands of the Makefile
    assert "pytest" in printed["make test"]
    assert all(f"`{line}`" in first_screen for line in ("make demo", "make test"))
    assert len(README.splitlines()) <= 130


# The README's always; the pages' train and audit the same way.
EXAMPLES = [
    pytest.param(
        page,
        code,
        id=f"{page}-{number}",
        marks=[] if page == "README.md" else [pytest.mark.slow],
    )
    for page in (
        "README.md",
        "docs/reference/api.md",
        "docs/tutorials/researcher.md",
        "docs/tutorials/data-scientist.md",
    )
    for number, code in enumerate(blocks((ROOT / page).read_text(encoding="utf-8"), "python"))
]


# A processor's own order of additions moves a weight in its last bits, and now and then a row that
# lies on the border: of 569 rows three may change sides.
PERCENTAGE = re.compile(r"([0-9.]+) ?%")


def percentages(text: str) -> list[float]:
    return [float(figure) for figure in PERCENTAGE.findall(text)]


@pytest.mark.parametrize(("page", "code"), EXAMPLES)
def test_an_example_prints_what_its_page_says(page, code, checkout):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, page, "exec"), {})  # noqa: S102 - the page's own example
    after = (ROOT / page).read_text(encoding="utf-8").split(code, 1)[1]
    said = blocks(after, "text")[0]
    assert PERCENTAGE.sub("%", printed.getvalue()) == PERCENTAGE.sub("%", said)
    assert percentages(printed.getvalue()) == pytest.approx(percentages(said), abs=0.5)
    if page == "README.md":
        assert len([line for line in code.splitlines() if line.strip()]) <= 10


def test_readme_has_its_examples():
    assert len(blocks(README, "python")) == 1


# Done, wrong usage, what the doctor found, interrupted: the others are an error's.
OTHER_CODES = {0, 2, 80, 130}


def test_every_exit_code_is_documented_and_no_other():
    page = (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| (\d+) \|", page, flags=re.MULTILINE)
    kinds = [errors.TaciturnError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    codes = OTHER_CODES | {kind.exit_code for kind in kinds}
    assert [int(code) for code in listed] == sorted(codes)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (document.parent / target).exists(), target


def test_every_citation_is_in_the_bibliography():
    known = set(re.findall(r"@\w+\{(\w+),", (ROOT / "docs/references.bib").read_text()))
    for path in [*ROOT.glob("src/**/*.py"), *ROOT.glob("*/src/**/*.py"), *DOCUMENTS]:
        for key in re.findall(r"\[([A-Z][A-Za-z]+\d{2,4})\b[^\]]*\]", path.read_text("utf-8")):
            assert key in known, f"{path.name} cites {key}"


ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
PACKAGES = {
    "taciturn": ROOT / "src/taciturn",
    **{f"taciturn_{other}": ROOT / other / "src" / f"taciturn_{other}" for other in OTHERS},
}


def test_architecture_draws_every_room_and_no_other():
    """At two spaces: a folder with its slash, or the names of files before two spaces."""
    tree, *_ = blocks(ARCHITECTURE, "text")
    drawn = re.findall(r"^  ([a-z_]+(?:, [a-z_]+)*)(/?)(?=  |$)", tree, flags=re.MULTILINE)
    rooms = {f"{room}{slash}" for names, slash in drawn for room in names.split(", ")}
    top = PACKAGES["taciturn"]
    folders = {f"{path.parent.name}/" for path in top.glob("*/__init__.py")}
    files = {path.stem for path in top.glob("*.py")} - {"__init__"}
    assert rooms == folders | files


def defined() -> dict[str, set[str]]:
    """By name, the dotted paths of every module, class, function and method."""
    paths: dict[str, set[str]] = {}

    def note(node: ast.AST, place: str) -> None:
        paths.setdefault(place.rpartition(".")[2], set()).add(place)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                note(child, f"{place}.{child.name}")

    for package, folder in PACKAGES.items():
        for path in folder.rglob("*.py"):
            parts = [package, *path.relative_to(folder).with_suffix("").parts]
            place = ".".join(parts).removesuffix(".__init__")
            note(ast.parse(path.read_text(encoding="utf-8")), place)
    return paths


def symbols(text: str) -> list[str]:
    """What a document sets in code, outside blocks; a keyword argument is no symbol."""
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return sorted({name for name in re.findall(r"`([^`]+)`", prose) if not name.endswith("=")})


def resolves(symbol: str) -> bool:
    """A path, a command, a target of make, or what an import of the dotted name gives."""
    if "/" in symbol or symbol.endswith(".toml"):
        return (ROOT / symbol).exists()
    if symbol.startswith("taciturn "):
        return run([*symbol.split()[1:], "--help"]) == 0
    if symbol.startswith("make "):
        return f"\n{symbol.removeprefix('make ')}:" in (ROOT / "Makefile").read_text()
    return imports(f"taciturn.{symbol}") or imports(symbol)


def imports(dotted: str) -> bool:
    """A module, or a name in the module before the last dot."""
    with contextlib.suppress(ModuleNotFoundError):
        importlib.import_module(dotted)
        return True
    module, _, name = dotted.rpartition(".")
    with contextlib.suppress(ModuleNotFoundError):
        return hasattr(importlib.import_module(module), name)
    return False


def test_what_architecture_names_can_be_imported(capsys):
    named = symbols(ARCHITECTURE)
    assert len(named) > 40
    assert [symbol for symbol in named if not resolves(symbol)] == []
    for wrong in ("simulation.run.imitate", "simulation.walk", "src/taciturn/lables.py"):
        assert not resolves(wrong)


def test_architecture_is_one_page():
    assert len(ARCHITECTURE.splitlines()) <= 90


CHANGE = (ROOT / "docs/how-to/change-the-code.md").read_text(encoding="utf-8")
DESIGN = CHANGE.partition("\n## Why the code is as it is\n")[2]


def is_defined(symbol: str, paths: dict[str, set[str]]) -> bool:
    """The design speaks of what a reader has met: bare names, a path, or a mechanism."""
    if "/" in symbol:
        bases = (ROOT, *PACKAGES.values(), *(folder.parent for folder in PACKAGES.values()))
        return any((base / end).exists() for base in bases for end in (symbol, f"{symbol}.py"))
    if symbol in {*MECHANISMS, "map"}:
        return True
    places = paths.get(symbol.rpartition(".")[2], set())
    return any(place.endswith(f".{symbol}") for place in places)


def test_what_the_design_names_is_defined():
    paths = defined()
    assert "taciturn.jobs.train.simulation.simulate_training" in paths["simulate_training"]
    assert len(symbols(DESIGN)) > 20
    assert [symbol for symbol in symbols(DESIGN) if not is_defined(symbol, paths)] == []
    assert not is_defined("simulation.run.imitate", paths)


CITED_FILE = re.compile(r"\b(?:(?:audit|ops|paper|risk)/)?tests/[\w/]+\.py")
CITED_TEST = re.compile(r"\btest_\w+")
COLLECTED = re.compile(r"^def (test_\w+)\(", re.MULTILINE)


def test_every_test_that_a_page_cites_exists_and_is_collected():
    """By path, by path::name or by name alone; a file of tests has some."""
    tests = {
        str(file.relative_to(ROOT)): COLLECTED.findall(file.read_text(encoding="utf-8"))
        for folder in (".", *OTHERS)
        for file in (ROOT / folder).glob("tests/**/test_*.py")
    }
    known = {name for names in tests.values() for name in names}
    known |= {Path(file).stem for file, names in tests.items() if names}
    cited = 0
    for page in DOCUMENTS:
        text = page.read_text(encoding="utf-8")
        paths = set(CITED_FILE.findall(text))
        assert [path for path in paths if not (ROOT / path).is_file()] == [], page
        cited += len(paths)
        named = set(CITED_TEST.findall(text)) - set(COLLECTED.findall(text))
        assert sorted(named - known) == [], page
        for path, name in re.findall(rf"({CITED_FILE.pattern})::(test_\w+)", text):
            assert name in tests[path], f"{page}: {path}::{name}"
    assert cited > 25
