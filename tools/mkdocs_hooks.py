"""Hooks of mkdocs: what stands outside ``docs/`` and belongs to the site, and the generated parts.

Links in the documents are those of the repository, so that they also work there. For the site, the
pages of a distribution (``ops/docs``) are put under its name, the files of ``OUTSIDE`` under
``project/``, and links that leave ``docs/`` are rewritten.
"""

from __future__ import annotations

import contextlib
import io
import os
import posixpath
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import typer.main
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from taciturn.setting_syntax import COMMAND_LINE, TomlFile
from taciturn.settings.removed import FORMER_NAMES, FormerName, Kind

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = "examples/two-machines"
OUTSIDE = (
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    f"{EXAMPLE}/README.md",
    f"{EXAMPLE}/Containerfile",
    f"{EXAMPLE}/alerts.yml",
    f"{EXAMPLE}/compose.yaml",
    f"{EXAMPLE}/taciturn@.service",
    "examples/bank-and-telco/README.md",
    "examples/insurer-and-telco/README.md",
    "examples/cluster/README.md",
    "examples/kubernetes/README.md",
    "examples/kubernetes/alice.yaml",
    "examples/kubernetes/bob.yaml",
    "examples/signed-agreement/README.md",
    "examples/three-parties/README.md",
    "examples/story.ipynb",
    "docs/references.bib",
)
DISTRIBUTIONS = ("audit", "ops", "paper", "risk")
COMMANDS = "<!-- commands -->"
ERRORS = "<!-- errors -->"
FORMER = "<!-- former names -->"
_LINK = re.compile(r"(?<=\]\()([^)#:\s]+)(?=[#)])")
# A file of the site has no lines to point at, as the repository's viewers have.
_LINE = re.compile(r"(?<=\.py)#L\d+(?=\))")
# A block of one party's commands, which superfences would not recognise as a block.
_TERMINAL = re.compile(r"^```sh (\S+)$", flags=re.MULTILINE)
_FENCED = re.compile(r"(```.*?```)", flags=re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the files of ``OUTSIDE`` and the pages of the distributions."""
    for path in (*OUTSIDE, *distribution_files(), *reviewed_files()):
        files.append(File.generated(config, site_path(path), abs_src_path=str(ROOT / path)))
    return files


def reviewed_files() -> list[str]:
    """The source files that ``docs/review.md`` links to."""
    page = (ROOT / "docs" / "review.md").read_text(encoding="utf-8")
    return sorted(set(re.findall(r"\]\(\.\./([^)#]+\.py)[)#]", page)))


def distribution_files() -> Iterator[str]:
    """The pages of the distributions and what they show, by their paths in the repository.

    A page that a program wrote as HTML has a twin in Markdown, which the site takes.
    """
    for name in DISTRIBUTIONS:
        for path in sorted((ROOT / name / "docs").rglob("*")):
            if path.is_file() and path.suffix != ".html":
                yield path.relative_to(ROOT).as_posix()


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrites the links of one page, and fills in what is generated."""
    if COMMANDS in markdown:
        markdown = markdown.replace(COMMANDS, commands())
    if ERRORS in markdown:
        markdown = markdown.replace(ERRORS, errors())
    if FORMER in markdown:
        markdown = markdown.replace(FORMER, former_names())
    return relinked(with_terminals(_LINE.sub("", markdown)), page.file.src_uri)


def with_terminals(markdown: str) -> str:
    r"""A page's text in which a block's terminal is its title.

    >>> with_terminals("```sh bob\ntaciturn align bob.toml\n```")
    '```sh title="bob"\ntaciturn align bob.toml\n```'
    """
    return _TERMINAL.sub(r'```sh title="\1"', markdown)


def site_path(path: str) -> str:
    """Where a file of the repository is in the site.

    >>> site_path("docs/sealed.md"), site_path("ops/docs/serve.md"), site_path("SECURITY.md")
    ('sealed.md', 'ops/serve.md', 'project/SECURITY.md')
    """
    if path in OUTSIDE:
        return f"project/{path}"
    top, _, below = path.partition("/")
    if top == "docs":
        return below
    if top in DISTRIBUTIONS and below.startswith("docs/"):
        return f"{top}/{below.removeprefix('docs/')}"
    return f"project/{path}"


def repository_path(uri: str) -> str:
    """The reverse of ``site_path``.

    >>> repository_path("sealed.md"), repository_path("ops/serve.md")
    ('docs/sealed.md', 'ops/docs/serve.md')
    """
    top, _, below = uri.partition("/")
    if top == "project":
        return below
    return f"{top}/docs/{below}" if top in DISTRIBUTIONS else f"docs/{uri}"


def relinked(markdown: str, uri: str) -> str:
    """A page's text with its links between files as the site has them; code stays as it is.

    >>> relinked("[the design](../ARCHITECTURE.md)", "sealed.md")
    '[the design](project/ARCHITECTURE.md)'
    """
    here = posixpath.dirname(repository_path(uri))

    def place(match: re.Match[str]) -> str:
        target = site_path(posixpath.normpath(posixpath.join(here, match[1])))
        return posixpath.relpath(target, posixpath.dirname(uri) or ".")

    parts = _FENCED.split(markdown)
    return "".join(part if part.startswith("```") else _LINK.sub(place, part) for part in parts)


def commands() -> str:
    """The help of every command, as the program prints it at a width of 100."""
    # The help is as wide as the terminal, of which a build has none.
    os.environ["COLUMNS"] = "100"
    from taciturn.cli.app import whole_app

    return "\n".join(
        f"## {name}\n\n```text\n{_help(name)}\n```\n"
        for name in command_names(typer.main.get_command(whole_app()), "taciturn")
    )


def command_names(command: object, name: str) -> Iterator[str]:
    """Every command that does something, by its full name; a group is replaced by its commands."""
    children = getattr(command, "commands", None)
    if children is None:
        yield name
        return
    for child, below in children.items():
        yield from command_names(below, f"{name} {child}")


def _help(name: str) -> str:
    """What ``--help-all`` prints. In this process: a new one for each command takes longer."""
    from taciturn.__main__ import run

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        run([*name.split()[1:], "--help-all"])
    return "\n".join(line.rstrip() for line in printed.getvalue().strip("\n").splitlines())


def errors() -> str:
    """The errors of all wrong inputs that the tests have.

    In a process of its own: the commands change the working directory and write state keys.
    """
    with tempfile.TemporaryDirectory() as settings:
        return subprocess.run(
            [sys.executable, "-m", "tests.repository.bad_input"],
            cwd=ROOT,
            env={**os.environ, "XDG_CONFIG_HOME": settings},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout


def former_names() -> str:
    """The names of earlier versions as a table: old name, new name, where it stood, why."""
    if not FORMER_NAMES:
        return "No name has changed since version 0.3."
    rows = (
        (
            f"`{entry.old}`",
            "–" if entry.new is None else f"`{entry.new}`",
            ", ".join(_place(*place) for place in entry.places),
            entry.why if entry.new is not None else f"{entry.why}; {_instead(entry)}",
        )
        for entry in FORMER_NAMES
    )
    head = "| old name | new name | was | why, and what to use |\n|---|---|---|---|\n"
    return head + "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _instead(entry: FormerName) -> str:
    """What to use in place of a removed name, as lines of a file where only files had it."""
    in_files = all(kind is Kind.KEY for kind, _ in entry.places)
    return entry.hint.text(TomlFile("", section="") if in_files else COMMAND_LINE)


def _place(kind: Kind, within: str) -> str:
    """Where a name stood, in words."""
    match kind:
        case Kind.KEY:
            return f"key in `[{within}]`" if within else "key in a file of settings"
        case Kind.KEYWORD:
            return f"keyword of `taciturn.{within}`" if within else "Python keyword"
        case Kind.RECORD:
            return "JSON key"
        case _:
            return f"{kind} of `taciturn {within}`" if within else str(kind)
