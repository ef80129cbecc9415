"""Commented settings templates, one for each side.

With several Alices each has a file of her name, and all have the list of them with the fingerprints
of their keys, as far as certificates are there already.

Which settings a file shows, in which order and to which value, is said here; what they mean, and
what holds where a file does not say, is said where they are declared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap

from taciturn.errors import OutputError
from taciturn.files import write_private
from taciturn.job_registry import installed_sections
from taciturn.party.config import file_default, section_settings
from taciturn.privacy.base import Mechanism
from taciturn.privacy.registry import mechanism_class
from taciturn.privacy.row_noise import OPENING_ROWS
from taciturn.protocol.messages import OTHER, Role
from taciturn.setting_syntax import Hint, hyphenated, toml_value
from taciturn.settings.checked import declared
from taciturn.settings.schema import Settings

_COMMENT_AT, _WIDTH = 27, 100
_CONTINUED = f"#{'':<{_COMMENT_AT}} "
_AGREEMENT_HEAD = """\
# --- The same on both sides: copy this section as it stands. ---------------------------------
# It is compared when the parties meet, and every difference is named.
# Where both are to sign it: taciturn agreement propose FILE writes it to a file of its own.
"""
_OWN_HEAD = """\
# --- This side's own business: nothing below leaves this machine. ----------------------------
"""
_FINGERPRINTS = "# The fingerprint of each Alice's key, in an order that all sides share."
_UNKNOWN = "Not known yet: write the fingerprint of certs/{name}.pem here, on all sides."
# What each section shows; a leading # is a setting that the person may switch on as it stands.
_NEWTON = ("solver", "#passes", "#l2")
_SGD = ("epochs", "batch_size", "minimum_batch", "learning_rate", "#l2")
_AGREED = (
    "intercept",
    "held_out",
    "split_seed",
    "evaluate",
    "#share_metrics",
    "#few_labels",
    "#rarest_value",
)
_TABLE = ("file", "id", "#aligned", "#normalise_ids", "#min_overlap")
_PREPARATION = (
    "#duplicates",
    "#drop",
    "#winsorise",
    "#transform",
    "#bins",
    "#impute",
    "#scale",
    "#clip",
)
_CREDENTIALS = ("peer", "ca", "certificate", "key")
_SECONDS = ("connect_seconds", "answer_seconds", "keepalive_seconds")
_STATE = ("folder", "#key", "checkpoint_iterations", "checkpoint_seconds", "sync")
_OUTPUT = ("model", "log", "metrics")
_LIMITS = (
    "#flip_set",
    "#budget",
    "#budget_total",
    "#consent",
    "delta",
    "#answer_interval_milliseconds",
)
# The sizes of the tables, which a dry run prints.
_SIZES = ("#alice_columns", "#rows")


@dataclass(frozen=True, slots=True)
class _OwnLines:
    """Lines of one side's file that the other's lacks.

    ``sections`` has the keys of each section. ``accept`` is the line by which the side accepts a
    mechanism that does not protect it. ``credentials`` and ``privacy`` are those with several
    Alices.
    """

    who: str
    sections: Mapping[str, tuple[str, ...]]
    accept: str
    credentials: tuple[str, ...]
    privacy: tuple[str, ...]


_OWN: Mapping[Role, _OwnLines] = {
    "alice": _OwnLines(
        "Alice has columns and no labels; she is the one who must not learn them.",
        {
            "privacy": ("#scores_per_row", "#consent"),
        },
        "#accept_column_exposure",
        _CREDENTIALS,
        # Several Alices may try it out in one folder: each has a count of her own.
        ("#scores_per_row", "consent"),
    ),
    "bob": _OwnLines(
        "Bob has the labels, and perhaps columns of his own.",
        {
            "data": ("label", "#positive"),
            "output": ("#held_out_scores", "#threshold", "#false_negative_cost", "#report"),
            "privacy": _LIMITS,
        },
        "#accept_leak",
        # His peers are in the agreement.
        _CREDENTIALS[1:],
        _LIMITS,
    ),
}


@dataclass(frozen=True, slots=True)
class Trial:
    """Trial for which templates are written.

    ``serves`` opens a port at ``address``, which is as the other side reaches it. ``salt`` decides
    the held-out rows. ``parties`` has the fingerprint of each of several Alices' keys by her name,
    empty where it is not known yet; nothing with one. ``ids`` has the id column of each role,
    ``positive`` the texts of Bob's label that stand for a one.
    """

    mechanism: str
    serves: Role = "bob"
    address: str = "localhost:9443"
    salt: str = "trial"
    tables: Mapping[str, str] = field(default_factory=dict)
    ids: Mapping[str, str] = field(default_factory=dict)
    label: str | None = None
    positive: tuple[str, ...] = ()
    parties: Mapping[str, str] = field(default_factory=dict)

    @property
    def sides(self) -> dict[str, Role]:
        """Everybody's role, by name."""
        alices: dict[str, Role] = dict.fromkeys(self.parties or ("alice",), "alice")
        return {**alices, "bob": "bob"}


def party_names(count: int) -> tuple[str, ...]:
    """Names of several Alices in a trial; empty for one, who is just alice.

    >>> party_names(2), party_names(1)
    (('alice-1', 'alice-2'), ())
    """
    return tuple(f"alice-{number}" for number in range(1, count + 1)) if count > 1 else ()


def listening_address(address: str) -> str:
    """Address at which the other side listens: of this machine alone if ``address`` is.

    >>> listening_address("bob.example:9443"), listening_address("localhost:9443")
    ('0.0.0.0:9443', '127.0.0.1:9443')
    """
    host, _, port = address.rpartition(":")
    local = host in ("127.0.0.1", "localhost", "[::1]")
    return f"{host.replace('localhost', '127.0.0.1')}:{port}" if local else f"0.0.0.0:{port}"


def template(name: str, trial: Trial) -> str:
    """The file of one side, by its name."""
    role = trial.sides[name]
    side, page = _OWN[role], _Page(name, OTHER[role])
    only = side.sections
    way, address = "connect", trial.address
    if role == trial.serves:
        way, address = "listen", listening_address(trial.address)
    chosen = mechanism_class(trial.mechanism)
    begin_with = chosen.required_settings()
    # Early stopping is sgd's, and a release.
    solver, stop = (_NEWTON, ()) if "newton" in chosen.solvers else (_SGD, ("#patience",))
    warning = []
    if "bob" in chosen.unprotected:
        warning = [f"{_CONTINUED}{trial.mechanism} gives labels NO protection"]
    sizes = tuple(name for name in _SIZES if name.removeprefix("#") not in begin_with)
    agreement = [
        page.line("agreement", "mechanism", trial.mechanism),
        *warning,
        *page.lines("agreement", begin_with),
        *own_setting_lines(chosen),
        *page.lines("agreement", ("scheme", *solver), passes=_passes(trial, chosen)),
        *page.lines("agreement", (*_AGREED, *stop), split_seed=trial.salt),
        *page.lines("agreement", sizes),
    ]
    columns: dict[str, object] = {
        "file": trial.tables.get(name),
        "id": trial.ids.get(role),
        "label": trial.label,
    }
    labels = only.get("data", ())
    if trial.positive:
        columns["positive"] = [*trial.positive]
        labels = tuple(setting.removeprefix("#") for setting in labels)
    credentials: tuple[str, ...] = _CREDENTIALS
    privacy = only["privacy"]
    if trial.parties:
        credentials, privacy = side.credentials, side.privacy
    # Where it cannot be otherwise, a side is shown what it has to accept.
    if role in chosen.unprotected:
        privacy = (side.accept, *privacy)
    lines_by_section = {
        "data": page.lines("data", (*_TABLE, *labels, *_PREPARATION), **columns),
        "link": page.lines("link", (way, *credentials, *_SECONDS), **{way: address}),
        "state": page.lines("state", _STATE),
        "output": page.lines("output", (*_OUTPUT, *only.get("output", ()))),
        "privacy": page.lines("privacy", privacy, consent=f"{name}.consent.sqlite"),
        **{
            section.name: page.lines(section.name, section.template.get(role, ()))
            for section, _ in installed_sections()
            if not (section.one_alice and trial.parties)
        },
    }
    head = f'# taciturn party {name}.toml\n# {side.who}\nrole = "{role}"\n\n'
    agreed = f"{_AGREEMENT_HEAD}{_section('agreement', agreement)}{_parties(trial)}\n"
    sections = "\n".join(
        _section(title, lines) for title, lines in lines_by_section.items() if lines
    )
    return f"{head}{agreed}{_OWN_HEAD}{sections}"


def _passes(trial: Trial, chosen: type[Mechanism]) -> object:
    """Default number of passes; of a large table, where it follows from the number of rows."""
    given = {"mechanism": trial.mechanism, "parties": max(1, len(trial.parties))}
    return chosen.row_defaults(Settings.from_mapping(given), OPENING_ROWS).get("passes")


def _parties(trial: Trial) -> str:
    if not trial.parties:
        return ""
    lines = [
        f"{name} = {toml_value(known)}"
        if known
        else _commented(f'{name} = ""', _UNKNOWN.format(name=name))
        for name, known in trial.parties.items()
    ]
    return "\n" + _section("agreement.parties", [_FINGERPRINTS, *lines])


@dataclass(frozen=True, slots=True)
class _Page:
    name: str
    peer: str

    def lines(self, section: str, names: tuple[str, ...], **values: object) -> list[str]:
        """A line for each setting, with its value here, its example or its default."""
        return [self.line(section, name, values.get(name.removeprefix("#"))) for name in names]

    def line(self, section: str, name: str, value: object = None) -> str:
        """One setting, switched off where its name has a leading #, and what it means."""
        sign, name = ("# ", name[1:]) if name.startswith("#") else ("", name)
        setting = section_settings(section)[name]
        if value is None:
            value = self._usual(section, name)
        return _commented(f"{sign}{hyphenated(name)} = {toml_value(value)}", setting.comment)

    def _usual(self, section: str, name: str) -> object:
        example = section_settings(section)[name].example
        if isinstance(example, str):
            return example.format(role=self.name, peer=self.peer)
        return file_default(section, name) if example is None else example


def own_setting_lines(chosen: type[Mechanism]) -> list[str]:
    """Lines for the settings that a mechanism declares itself; optional ones are switched off."""
    if chosen.settings is None:
        return []
    lines = []
    for name, setting in declared(chosen.settings).items():
        field = chosen.settings.model_fields[name]
        sign = "" if field.is_required() else "# "
        value = setting.example if field.is_required() else field.default
        lines.append(_commented(f"{sign}{hyphenated(name)} = {toml_value(value)}", setting.comment))
    return lines


def _section(name: str, lines: list[str]) -> str:
    return "\n".join([f"[{name}]", *lines]) + "\n"


def _commented(code: str, comment: str) -> str:
    """A line of a file with a comment behind it, which continues below where it is long."""
    start = f"{code:<{_COMMENT_AT - 2}}  "
    width = _WIDTH - max(len(start) + 2, len(_CONTINUED))
    # A name such as label-rr stays in one piece.
    first, *continued = wrap(comment, width, break_on_hyphens=False)
    return "\n".join([f"{start}# {first}", *(f"{_CONTINUED}{line}" for line in continued)])


def write_templates(folder: Path, trial: Trial) -> list[Path]:
    """Write the files of all sides, or none where one is there already."""
    paths = [folder / f"{name}.toml" for name in trial.sides]
    for path in paths:
        if path.exists():
            raise OutputError(
                "the file already exists, and may hold your settings",
                where=str(path),
                hint=Hint("name another folder with {folder}, or move the file away"),
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise OutputError(
            f"the folder cannot be made: {problem.strerror}",
            where=str(folder),
            hint=Hint("name another folder with {folder}"),
        ) from None
    for name, path in zip(trial.sides, paths, strict=True):
        write_private(path, template(name, trial))
    return paths
