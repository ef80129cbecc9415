"""Write ``docs/review.md``: what a partner's reviewer reads, in the order in which it runs.

Run it in a checkout, with its environment (``make review``)::

    .venv/bin/python tools/review.py [--check]

The text is in ``tools/review.md``, with marks where the generated parts go. The functions are those
that ``tools/walk.py`` records in a ``mutual`` training of two parties.
``--check`` writes nothing and exits with 1 where the page is not current, line numbers apart.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import re
import sys
import textwrap
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tools import walk  # noqa: E402 - of this checkout, and before all of taciturn

PAGE, TEXT = ROOT / "docs" / "review.md", ROOT / "tools" / "review.md"
CORE = ROOT / "src" / "taciturn"
LINES_AN_HOUR = 500


class Frame(NamedTuple):
    """A frame of every job: its functions by file and name, its title and what it does."""

    functions: tuple[str, ...]
    title: str
    does: str


# From the outermost to the innermost. A function belongs to the innermost that is on its stack when
# it is first entered.
FRAMES = (
    Frame((), "The party's file", "Read and check this side's settings; nothing is sent."),
    Frame(
        ("base.run_job",),
        "run_job: prepare",
        "Read this side's table, plan the training, refuse before anybody is contacted.",
    ),
    Frame(
        ("base.run_session",),
        "run_session: begin or resume",
        "Journal, consent and budgets, keys; at the end the model's file and the result.",
    ),
    Frame(
        ("session.Meeting.run",),
        "Meeting.run: the connection",
        "Greet the peer, compare the session, wait, confirm the end.",
    ),
    Frame(
        ("resume.run_program",),
        "run_program: replay, then live",
        "Feed the program from the journal and then from the peer; store each frame first.",
    ),
    Frame(
        ("driver.Driver.feed", "driver.Driver.start"),
        "Driver.feed: the conversation",
        "The party's program: one message in, messages out. Every message of the training is "
        "made here.",
    ),
)

# The first hour: what to read, with its minutes.
HOUR = (
    (
        "docs/threat_model.md",
        "its first two sections: who learns what, and on which assumptions",
        8,
    ),
    (
        "docs/mutual.md",
        "the protocol of this training, what it opens, what a deviating side can do",
        12,
    ),
    ("src/taciturn/protocol/steps.py", "what a program may do: send, receive, emit, persist", 4),
    ("src/taciturn/engine/driver.py", "the one place from which a program's messages leave", 4),
    ("src/taciturn/protocol/mutual_table.py", "the head: chart of all messages", 6),
    ("src/taciturn/protocol/alice/train_table_mutual.py", "Alice's side: her program, whole", 14),
    (
        "src/taciturn/protocol/bob/train_table_mutual.py",
        "Bob's side: his program, whole, instead",
        0,
    ),
    ("src/taciturn/jobs/train/feature_consent.py", "what Alice's file must accept to begin", 6),
    ("src/taciturn/jobs/train/label_consent.py", "what Bob's file must accept, instead", 0),
    ("docs/review.md", "the tables below: where your own questions lead, and what is not run", 6),
)
TRUSTED = {
    "cryptography": "TLS certificates, journal encryption (AES-GCM), hashes; keys pass through it",
    "gmpy2": "big integers of Paillier",
    "grpcio": "the connection: TLS 1.3, frames in and out; it parses what the peer sends first",
    "numpy": "all arithmetic on tables, weights and scores",
    "polars": "reading this side's own table: text, numbers, dates",
    "pydantic": "checking this side's own settings, and the fields of received messages' records",
    "rbcl": "the group of the alignment of row ids",
    "rich": "the terminal",
    "tenseal": "BFV (Microsoft SEAL): keys, encryption, products; it parses received ciphertexts",
    "threadpoolctl": "the number of threads of linear algebra",
    "tomlkit": "writing settings into a party's file",
    "typer": "the command line",
    "zstandard": "compression of ciphertexts; it unpacks received ones, within limits",
}
# The distribution's name, where a module has another.
MODULES = {"grpcio": "grpc"}
WIRE = re.compile("/taciturn/transport/|/taciturn/party/(endpoints|credentials)[.]py")
BOTH = {"Alice": 0, "Bob": 0}


@dataclass(frozen=True)
class Entry:
    """A function, with the place of its first call among each party's."""

    function: walk.Function
    lines: int
    frame: int
    places: dict[str, int]

    @property
    def path(self) -> str:
        """Path of its file in the repository."""
        return str(Path(self.function.file).relative_to(ROOT))

    @property
    def first(self) -> int:
        """The earlier of both places."""
        return min(self.places.values())

    @property
    def link(self) -> str:
        """The function as a link, with its lines and the only party that enters it."""
        (*only,) = self.places
        mark = f", {only[0]}" if len(only) == 1 else ""
        target = f"../{self.path}#L{self.function.line}"
        return f"[{self.function.name}]({target}) ({self.lines}{mark})"


def frame_of(chain: tuple[str, ...]) -> int:
    """Number of the innermost frame among calls."""
    numbers = [
        number for call in chain for number, frame in enumerate(FRAMES) if call in frame.functions
    ]
    return numbers[-1] if numbers else 0


def entries(parties: dict[str, walk.Walk]) -> list[Entry]:
    """The functions that the parties enter, in order; nested ones are lines of those around."""
    found: dict[walk.Function, Entry] = {}
    for party, walked in parties.items():
        for place, (function, lines) in enumerate(walk.lengths(walked).items()):
            if "<locals>" in function.name:
                continue
            frame = frame_of(walked.entered[function])
            known = found.get(function)
            if known is None:
                found[function] = Entry(function, lines, frame, {party: place})
            else:
                places = {**known.places, party: place}
                found[function] = Entry(function, lines, min(frame, known.frame), places)
    return sorted(found.values(), key=lambda entry: (entry.frame, entry.first, entry.function))


@cache
def sentence(folder: Path) -> str:
    """First paragraph of the docstring of a package or a file."""
    file = folder / "__init__.py" if folder.is_dir() else folder
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split())


def package_of(path: str) -> Path:
    """The package that a file is in, or the file itself at the top of the core."""
    return ROOT / path if Path(path).parent == CORE.relative_to(ROOT) else (ROOT / path).parent


def grouped(listed: Iterable[Entry], key: str) -> dict[str, list[Entry]]:
    """Entries by their file or package, in order."""
    groups: dict[str, list[Entry]] = {}
    for entry in listed:
        name = entry.path if key == "file" else str(package_of(entry.path).relative_to(ROOT))
        groups.setdefault(name, []).append(entry)
    return groups


def of(listed: Iterable[Entry], party: str) -> str:
    """Functions and lines that one party enters."""
    lines = [entry.lines for entry in listed if party in entry.places]
    return f"{len(lines):,} | {sum(lines):,}"


def hours(lines: int) -> str:
    """Rough time to read lines with care."""
    return f"{round(lines / LINES_AN_HOUR)} h"


def the_hour(_: list[Entry]) -> Iterator[str]:
    """What to read in one hour."""
    yield "| read | what it tells | lines | minutes |\n|---|---|--:|--:|"
    for path, what, minutes in HOUR:
        target = path.removeprefix("docs/") if path.startswith("docs/") else f"../{path}"
        lines = "" if path == "docs/review.md" else f"{line_count(ROOT / path):,}"
        yield f"| [{Path(path).name}]({target}) | {what} | {lines} | {minutes or '–'} |"


def line_count(path: Path) -> int:
    """Lines of a file."""
    return len(path.read_text(encoding="utf-8").splitlines())


def overview(listed: list[Entry]) -> Iterator[str]:
    """Functions and lines of each frame, and the time to read them."""
    yield "| frame | what it does | Alice: functions | lines | Bob: functions | lines |"
    yield "|---|---|--:|--:|--:|--:|"
    for number, frame in enumerate(FRAMES):
        own = [entry for entry in listed if entry.frame == number]
        yield f"| {frame.title} | {frame.does} | {of(own, 'Alice')} | {of(own, 'Bob')} |"
    yield f"| **all** | | {of(listed, 'Alice')} | {of(listed, 'Bob')} |"


def tables(listed: list[Entry]) -> Iterator[str]:
    """For each frame and package a table of files with their functions."""
    for number, frame in enumerate(FRAMES):
        own = [entry for entry in listed if entry.frame == number]
        yield f"\n### {number + 1}. {frame.title}\n\n{frame.does}"
        for package, of_package in grouped(own, "package").items():
            lines = sum(entry.lines for entry in of_package)
            name = package.rpartition("src/")[2].removesuffix(".py").replace("/", ".")
            head = f"**`{name}`** ({lines:,} lines). {sentence(ROOT / package)}"
            yield "\n" + textwrap.fill(head, 118, break_on_hyphens=False) + "\n"
            yield "| file | functions, in the order of their first call | lines |\n|---|---|--:|"
            for path, of_file in grouped(of_package, "file").items():
                links = " · ".join(entry.link for entry in of_file)
                yield f"| `{Path(path).name}` | {links} | {sum(e.lines for e in of_file):,} |"


def files_of(names: tuple[str, ...]) -> list[Path]:
    """Python files of the core or of other distributions by their names, or by their folders."""
    found: list[Path] = []
    for name in names:
        home = ROOT / name.removeprefix("taciturn_") / "src" if "taciturn_" in name else CORE
        path = home / name
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return found


def unread(_: list[Entry]) -> Iterator[str]:
    """What a plain training enters nothing of."""
    from tests.repository.test_path_of_a_party import OF_THE_OTHER, UNUSED

    yield "| not run | where | lines |\n|---|---|--:|"
    others = {
        f"for {party}: what the other side alone runs": names
        for party, names in OF_THE_OTHER.items()
    }
    for capability, names in {**UNUSED, **others}.items():
        lines = sum(map(line_count, files_of(names)))
        shown = ", ".join(f"`{name.rstrip('/')}`" for name in names)
        yield f"| {capability} | {shown} | {lines:,} |"


def dependencies(listed: list[Entry]) -> Iterator[str]:
    """Third-party packages that a party installs, and which of the files above import them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    crossed = sorted({entry.path for entry in listed})
    yield "| package | trusted with | imported by, of what is listed above |\n|---|---|---|"
    for requirement in project["dependencies"]:
        name = re.split(r"[<>=;]", requirement)[0]
        users = {
            package_of(path).name.removesuffix(".py")
            for path in crossed
            if imports(ROOT / path, MODULES.get(name, name))
        }
        listed_users = ", ".join(f"`{user}`" for user in sorted(users))
        yield f"| {name} | {TRUSTED[name]} | {listed_users or 'nothing'} |"


@cache
def imports(path: Path, module: str) -> bool:
    """Whether a file imports a module, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        if any(name.split(".")[0] == module for name in names):
            return True
    return False


def totals(listed: list[Entry]) -> Iterator[str]:
    """Lines that each side enters, and the time to read them."""
    alice, bob = (
        sum(entry.lines for entry in listed if party in entry.places) for party in ("Alice", "Bob")
    )
    cli = sum(map(line_count, files_of(("cli/",))))
    yield f"Alice's side enters {alice:,} lines of functions, Bob's {bob:,}. Read with care"
    yield f"({LINES_AN_HOUR} lines an hour) that is about {hours(alice)} or {hours(bob)}; the wire"
    yield f"and the command line (`cli`, {cli:,} lines) come on top."


def wire_tables() -> Iterator[str]:
    """What a training over gRPC enters besides: the transport, and what opens it."""
    walk.walks.clear()
    walk.train("mutual", over_network=True)
    found = {
        function: lines
        for walked in walk.walks.values()
        for function, lines in walk.lengths(walked).items()
        if WIRE.search(function.file) and "<locals>" not in function.name
    }
    ordered = sorted(found, key=lambda function: (function.file, function.line))
    listed = [Entry(function, found[function], 0, BOTH) for function in ordered]
    yield "| file | functions | lines |\n|---|---|--:|"
    for path, of_file in grouped(listed, "file").items():
        links = " · ".join(entry.link for entry in of_file)
        yield f"| `{Path(path).name}` | {links} | {sum(e.lines for e in of_file):,} |"


def gone(text: str) -> list[str]:
    """Functions that a part of the page links to and that their files do not define."""
    return [
        f"{path}: {name}"
        for name, path in re.findall(r"\[([\w.]+)\]\(\.\./([\w/]+\.py)#L\d+\)", text)
        if name not in defined(ROOT / path)
    ]


@cache
def defined(path: Path) -> set[str]:
    """Qualified names of the functions of a file."""
    names: set[str] = set()

    def add(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef):
                names.add(f"{prefix}{child.name}")
                add(child, f"{prefix}{child.name}.")

    if path.exists():
        add(ast.parse(path.read_text(encoding="utf-8")), "")
    return names


PARTS = {
    "totals": totals,
    "hour": the_hour,
    "frames": overview,
    "functions": tables,
    "not run": unread,
    "dependencies": dependencies,
}


def part(text: str, name: str) -> tuple[str, str, str]:
    """A page before a generated part with its mark, the part, and the page after it."""
    before, begin, rest = text.partition(f"<!-- generated: {name} -->")
    if not begin:
        raise SystemExit(f"the page has no mark for the part {name}")
    body, end, after = rest.partition("<!-- end -->")
    return before + begin, body, end + after


def filled(text: str, name: str, lines: Iterable[str]) -> str:
    """The page with a generated part anew."""
    before, _, after = part(text, name)
    body = "\n".join(lines).strip("\n").replace("``", "`")
    return f"{before}\n\n{body}\n\n{after}"


def without_numbers(text: str) -> list[str]:
    """Lines of a page without their numbers, which every edit of a file moves."""
    return re.sub(r"[\d,]+", "0", text).splitlines()


def main() -> int:
    """Write the page, or compare."""
    parser = argparse.ArgumentParser(description="Write docs/review.md.")
    parser.add_argument("--check", action="store_true", help="compare, line numbers apart")
    check = parser.parse_args().check
    walk.train("mutual")
    listed, text = entries(walk.parties()), TEXT.read_text(encoding="utf-8")
    for name, made in PARTS.items():
        text = filled(text, name, made(listed))
    if not check:
        PAGE.write_text(filled(text, "wire", wire_tables()), encoding="utf-8")
        return 0
    written = PAGE.read_text(encoding="utf-8")
    # How often a side calls depends on time: what is linked to must be there.
    wire = part(written, "wire")[1]
    text = filled(text, "wire", [wire])
    if missing := gone(wire):
        print("docs/review.md is not current: make review", *missing, sep="\n")
        return 1
    changes = list(
        difflib.unified_diff(without_numbers(written), without_numbers(text), "page", "now", n=0)
    )
    if changes:
        print("docs/review.md is not current: make review", *changes[:10], sep="\n")
    return int(bool(changes))


if __name__ == "__main__":
    sys.exit(main())
