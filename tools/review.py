"""Write ``docs/review.md``: what a partner's reviewer reads, in the order in which it runs.

Run it in a checkout, with its environment (``make review``)::

    .venv/bin/python tools/review.py [--check]

The text is in ``tools/review.md``, with marks where the generated parts go. The functions are those
that ``tools/walk.py`` records in a ``mutual`` training of two parties, by default settings.
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
# 320 rows to train on: with 256 or more the sigmoid is modulo a small prime. Enough passes for a
# checkpoint, which is after five in these files.
ROWS, PASSES = 400, 8


class Stage(NamedTuple):
    """A stage of every job: its functions by file and name, its title and what it does."""

    functions: tuple[str, ...]
    title: str
    does: str


# From the outermost to the innermost. A function belongs to the innermost that is on its stack when
# it is first entered.
STAGES = (
    Stage((), "The party's file", "Read and check this side's settings; nothing is sent."),
    Stage(
        ("base.run_job",),
        "run_job: prepare",
        "Read this side's table, plan the training, refuse before anybody is contacted.",
    ),
    Stage(
        ("base.run_session",),
        "run_session: begin or resume",
        "Journal, consent and budgets, keys; at the end the model's file and the result.",
    ),
    Stage(
        ("session.Meeting.run",),
        "Meeting.run: the connection",
        "Greet the peer, compare the session, wait, confirm the end.",
    ),
    Stage(
        ("resume.run_program",),
        "run_program: replay, then live",
        "Feed the program from the journal and then from the peer.",
    ),
    Stage(
        ("driver.Driver.feed", "driver.Driver.start"),
        "Driver.feed: the conversation",
        "The party's program: one message in, messages out. Its steps call journal, link, budget.",
    ),
)

WORDS_A_MINUTE = 250
HEAD = "its head"


class Portion(NamedTuple):
    """A portion of a file to read: sections of a page, or functions of a file and its ``HEAD``.

    ``instead`` marks what Bob's reviewer reads in place of the row above.
    """

    path: str
    what: str
    names: tuple[str, ...]
    instead: bool = False


# The first hour. What is left of it is for the tables.
ALICE, BOB = "src/taciturn/protocol/alice/", "src/taciturn/protocol/bob/"
HOUR = (
    Portion(
        "docs/threat_model.md",
        "who learns what, on which assumptions, and what each message reveals",
        ("In short", "What each mechanism rests on", "What each message reveals"),
    ),
    Portion(
        "docs/mutual.md",
        "the protocol of this training, what it opens, what a deviating side can do",
        (
            *("Use", "The protocol", "What is opened"),
            "Alice learns nothing about labels, under IND-CPA of Bob's key",
            "Bob learns at most two sums about Alice's columns, under RLWE and the sigmoid's flood",
            "What a party that deviates can do",
        ),
    ),
    Portion("src/taciturn/protocol/mutual_table.py", "chart of a training's messages", (HEAD,)),
    Portion("src/taciturn/protocol/party.py", "chart of the messages around it", (HEAD,)),
    Portion(
        "src/taciturn/engine/driver.py",
        "the one place from which a program's messages leave",
        ("Driver._advance",),
    ),
    Portion(
        "src/taciturn/party/link.py",
        "what a link sends besides: openings, notes and failure texts",
        (HEAD,),
    ),
    Portion("src/taciturn/party/session.py", "what a peer is told about a failure", ("tellable",)),
    Portion(
        ALICE + "party.py",
        "Alice's side: her program",
        ("alice_program", "_announce_scoring", "_answer_scores"),
    ),
    Portion(
        BOB + "party.py",
        "Bob's side: his program, instead",
        ("bob_program", "_hear_scoring"),
        True,
    ),
    Portion(
        ALICE + "train_table_mutual.py",
        "her training, and her part of the sigmoid",
        ("train", "SigmoidResponder._waves"),
    ),
    Portion(
        BOB + "train_table_mutual.py",
        "his training, and his part of the sigmoid, instead",
        ("train", "SigmoidRequester._waves"),
        True,
    ),
    Portion(
        "src/taciturn/protocol/mutual_training.py",
        "both sides' passes",
        ("SharedTraining.run",),
    ),
    Portion(
        ALICE + "scoring.py",
        "scores of held-out rows: below 8,192 rows the only numbers of her columns that are opened",
        (HEAD,),
    ),
    Portion(ALICE + "scoring_mutual.py", "her answer to them", ("MutualResponder.answer",)),
    Portion(BOB + "scoring_mutual.py", "his requests, instead", ("MutualRequester.ask",), True),
    Portion(ALICE + "score_noise.py", "the noise on each score", (HEAD,)),
    Portion(
        "src/taciturn/jobs/resumable.py",
        "where a budget is charged",
        ("JournaledSession.task_in",),
    ),
    Portion(
        "src/taciturn/party/consent/score_budget.py",
        "Alice's limit on scores; a plain `mutual` needs no acceptance of hers",
        ("score_limit",),
    ),
    Portion(
        "src/taciturn/jobs/train/label_consent.py",
        "what Bob's file must accept, instead",
        ("LabelConsent.refusal", "LabelConsent.budget"),
        True,
    ),
)
TRUSTED = {
    "cryptography": "ChaCha20 for masks, keys and noise (`rng.py`), journal encryption "
    "(ChaCha20-Poly1305, HKDF), certificates (X.509); keys pass through it",
    "gmpy2": "big integers of Paillier",
    "grpcio": "the connection: TLS 1.3, frames in and out; it parses what the peer sends first",
    "numpy": "all arithmetic on tables, weights and scores",
    "polars": "reading this side's own table: text, numbers, dates",
    "pydantic": "checking this side's settings, a signed agreement and the rules in a model file; "
    "no message",
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
    stage: int
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


def stage_of(chain: tuple[str, ...]) -> int:
    """Number of the innermost stage among calls."""
    numbers = [
        number for call in chain for number, stage in enumerate(STAGES) if call in stage.functions
    ]
    return numbers[-1] if numbers else 0


def entries(parties: dict[str, walk.Walk]) -> list[Entry]:
    """The functions that the parties enter, in order; nested ones are lines of those around."""
    found: dict[walk.Function, Entry] = {}
    for party, walked in parties.items():
        for place, (function, lines) in enumerate(walk.lengths(walked).items()):
            if "<locals>" in function.name:
                continue
            stage = stage_of(walked.entered[function])
            known = found.get(function)
            if known is None:
                found[function] = Entry(function, lines, stage, {party: place})
            else:
                places = {**known.places, party: place}
                found[function] = Entry(function, lines, min(stage, known.stage), places)
    return sorted(found.values(), key=lambda entry: (entry.stage, entry.first, entry.function))


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
    """What to read in one hour, and the time that is left for the tables."""
    yield "| read | what it tells | lines | minutes |\n|---|---|--:|--:|"
    left = 60
    for portion in HOUR:
        path = portion.path
        target = path.removeprefix("docs/") if path.startswith("docs/") else f"../{path}"
        texts = list(portion_texts(portion))
        lines = sum(text.count("\n") + 1 for text in texts)
        minutes = max(1, round(sum(map(minutes_of, portion.names, texts))))
        left -= 0 if portion.instead else minutes
        shown = ", ".join(
            name if name == HEAD or path.endswith(".md") else f"`{name}`" for name in portion.names
        )
        yield (
            f"| [{'/'.join(Path(path).parts[-2:])}]({target}): {shown} | {portion.what} "
            f"| {lines} | {'–' if portion.instead else minutes} |"
        )
    if left < 1:
        raise SystemExit(f"the hour's portions take {60 - left} minutes: shorten HOUR")
    yield (
        "| [review.md](review.md) | the tables below: where your own questions lead, and what is "
        f"not run | | {left} |"
    )


def portion_texts(portion: Portion) -> Iterator[str]:
    """The text of each named section, function or head of a file."""
    text = (ROOT / portion.path).read_text(encoding="utf-8")
    for name in portion.names:
        if portion.path.endswith(".md"):
            found = re.search(rf"^(#+) {re.escape(name)}\n(.*?)(?=^#|\Z)", text, re.M | re.S)
            if found is None:
                raise SystemExit(f"{portion.path} has no section {name}")
            yield found[2].strip()
        elif name == HEAD:
            yield ast.get_docstring(ast.parse(text)) or ""
        else:
            yield source_of(portion.path, name)


def source_of(path: str, name: str) -> str:
    """Source of a function of a file, or of a method as ``Class.method``."""
    text = (ROOT / path).read_text(encoding="utf-8")
    body: list[ast.stmt] = ast.parse(text).body
    node: ast.AST | None = None
    for step in name.split("."):
        node = next((one for one in body if getattr(one, "name", "") == step), None)
        if node is None:
            raise SystemExit(f"{path} has no {name}")
        body = getattr(node, "body", [])
    return ast.get_source_segment(text, node) or ""  # type: ignore[arg-type]  # found above


def minutes_of(name: str, text: str) -> float:
    """Rough time to read prose, or code with care."""
    if name == HEAD or (name[:1].isupper() and "." not in name):
        return len(text.split()) / WORDS_A_MINUTE
    return (text.count("\n") + 1) * 60 / LINES_AN_HOUR


def line_count(path: Path) -> int:
    """Lines of a file."""
    return len(path.read_text(encoding="utf-8").splitlines())


def overview(listed: list[Entry]) -> Iterator[str]:
    """Functions and lines of each stage, and the time to read them."""
    yield "| stage | what it does | Alice: functions | lines | Bob: functions | lines |"
    yield "|---|---|--:|--:|--:|--:|"
    for number, stage in enumerate(STAGES):
        own = [entry for entry in listed if entry.stage == number]
        yield f"| {number}. {stage.title} | {stage.does} | {of(own, 'Alice')} | {of(own, 'Bob')} |"
    yield f"| **all** | | {of(listed, 'Alice')} | {of(listed, 'Bob')} |"


def tables(listed: list[Entry]) -> Iterator[str]:
    """For each stage and package a table of files with their functions."""
    for number, stage in enumerate(STAGES):
        own = [entry for entry in listed if entry.stage == number]
        yield f"\n### {number}. {stage.title}\n\n{stage.does}"
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


def unread(listed: list[Entry]) -> Iterator[str]:
    """What the recording enters nothing of; stops where it does."""
    from tests.repository.test_path_of_a_party import OF_THE_OTHER, UNUSED

    yield "| not run | where | lines |\n|---|---|--:|"
    others = {
        f"for {party}: what the other side alone runs": names
        for party, names in OF_THE_OTHER.items()
    }
    for capability, names in {**UNUSED, **others}.items():
        lines = sum(map(line_count, files_of(names)))
        require_unread(listed, capability, names)
        shown = ", ".join(f"`{name.rstrip('/')}`" for name in names)
        yield f"| {capability} | {shown} | {lines:,} |"


def require_unread(listed: list[Entry], capability: str, names: tuple[str, ...]) -> None:
    """Stop where the recording enters one of these files, or the party one of the other's."""
    party = capability.removeprefix("for ").partition(":")[0]
    entered = {
        entry.path.partition("src/taciturn/")[2]
        for entry in listed
        if party not in BOTH or party in entry.places
    }
    if found := sorted(path for path in entered if path and path.startswith(names)):
        raise SystemExit(f"not unused by the recording ({capability}): {', '.join(found)}")


def dependencies(listed: list[Entry]) -> Iterator[str]:
    """Third-party packages that a party installs, and which of the files above import them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wire = {str(path.relative_to(ROOT)) for path in files_of(("transport/",))}
    crossed = sorted({entry.path for entry in listed} | wire)
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
    walk.train("mutual", over_network=True, rows=ROWS, passes=PASSES, reveals=False)
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
    "stages": overview,
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
    walk.train("mutual", rows=ROWS, passes=PASSES, reveals=False)
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
