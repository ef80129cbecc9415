"""The documentation as a site: it builds without a warning, is complete, and needs no network."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
DISTRIBUTIONS = ("audit", "ops", "paper", "risk")
DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *(
            path
            for top in ("docs", "examples", *DISTRIBUTIONS)
            for path in ROOT.glob(f"{top}/**/*.md")
        ),
    ]
)
WIDTH = 120
# Written by `taciturn reproduce`, a paragraph a line.
GENERATED = ROOT / "paper" / "docs" / "reproduction.md"


class Parsed(HTMLParser):
    """What a built page points at, what it loads, and what can be pointed at in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = {""}
        self.fences = text.count("```")
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag in ("link", "script", "img", "iframe"):
            self.loads += [values[name] for name in ("src", "href") if name in values]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Parsed]:
    """Every page of a fresh build, by its place."""
    base = tmp_path_factory.getbasetemp()
    # Processes that share the tests of one run share the site too: whoever comes first builds it.
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base).resolve() / "site"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "index.html").exists():
            build(folder)
    return {path: Parsed(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html")}


def build(folder: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    assert built.stderr == ""


@pytest.mark.slow  # builds the site
def test_internal_links_and_anchors_resolve(site):
    broken = [
        f"{path.name}: {link}"
        for path, page in site.items()
        if path.name != "404.html"  # Its links are those of a server's root.
        for link in page.links
        if not urlsplit(link).scheme and not resolves(path, link, site)
    ]
    assert broken == []


def resolves(path: Path, link: str, site: dict[Path, Parsed]) -> bool:
    parts = urlsplit(link)
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target /= "index.html"
    if target not in site:
        return target.exists() and not parts.fragment
    return unquote(parts.fragment) in site[target].anchors


@pytest.mark.slow  # builds the site
def test_every_block_of_code_is_rendered(site):
    assert [path.name for path, page in site.items() if page.fences] == []


@pytest.mark.slow  # builds the site
def test_a_broken_link_would_be_seen(site):
    index = next(
        path for path in site if path.name == "index.html" and (path.parent / "assets").exists()
    )
    assert resolves(index, "glossary.html#encryption", site)
    assert not resolves(index, "glossary.html#no-such-word", site)
    assert not resolves(index, "no-such-page.html", site)


@pytest.mark.slow  # builds the site
def test_no_page_loads_anything_from_elsewhere(site):
    loads = {load for page in site.values() for load in page.loads}
    assert any(load.endswith(".css") for load in loads)
    assert {load for load in loads if urlsplit(load).netloc} == set()


def pages(entry: object) -> Iterator[str]:
    """The files that a part of the navigation names."""
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, dict):
        for below in entry.values():
            yield from pages(below)
    elif isinstance(entry, list):
        for below in entry:
            yield from pages(below)


def test_every_page_is_in_the_navigation_once():
    named = list(pages(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]))
    own = {page for page in named if not page.startswith("project/")}
    pages_of = {name: ROOT / name / "docs" for name in DISTRIBUTIONS}
    assert all([*folder.rglob("*.md")] for folder in pages_of.values())
    assert own == {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")} | {
        f"{name}/{path.relative_to(folder)}"
        for name, folder in pages_of.items()
        for path in folder.rglob("*.md")
    }
    assert len(named) == len(set(named))


@pytest.mark.slow  # builds the site
def test_the_reference_has_every_command_and_every_public_name(site):
    import taciturn
    from taciturn.cli.app import ENTRIES, job_commands

    commands, api = (
        next(page for path, page in site.items() if path.match(f"reference/{name}.html"))
        for name in ("commands", "api")
    )
    # A group has no entry of its own, and its commands have.
    listed = " ".join(f"{anchor}-" for anchor in commands.anchors)
    assert [name for name in (*ENTRIES, *job_commands()) if f"taciturn-{name}-" not in listed] == []
    public = set(taciturn.__all__) - {"__version__"}
    assert {f"taciturn.{name}" for name in public} <= api.anchors


def prose(text: str) -> Iterator[tuple[int, str]]:
    """The lines outside code, tables and pictures, with their numbers."""
    code = False
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("```"):
            code = not code
        elif not code and not re.match(r"\s*(\||!\[|<)", line):
            yield number, line


@pytest.mark.parametrize(
    "document",
    [path for path in DOCUMENTS if path != GENERATED],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_prose_is_at_most_120_wide(document):
    lines = prose(document.read_text(encoding="utf-8"))
    assert [number for number, line in lines if len(line) > WIDTH] == []
