"""Names of earlier versions that were renamed or removed: settings, options, commands, JSON keys.

The one table of them makes the errors for an old name and the list on the page about upgrades.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from taciturn.errors import ConfigError
from taciturn.setting_syntax import Hint, SettingSyntax, hyphenated


class Kind(StrEnum):
    """Kind of a removed name."""

    OPTION = "option"
    COMMAND = "command"
    KEY = "key in a file"
    KEYWORD = "Python keyword"
    RECORD = "JSON key"


Place: TypeAlias = tuple[Kind, str]
"""A kind, and within what: a command, a section of a party's file, a function.

Empty is every command or function that takes settings, the top level of a file of settings, or
any JSON result.
"""


@dataclass(frozen=True, slots=True)
class FormerName:
    """An old name, its new one or None, where it stood, and why.

    ``old`` and ``new`` are spelled with hyphens. ``instead`` is the way out where there is no new
    name.
    """

    old: str
    new: str | None
    places: tuple[Place, ...]
    why: str
    instead: Hint | None = None

    @property
    def hint(self) -> Hint:
        """The way out: the new name, or what to use in its place."""
        if self.instead is not None:
            return self.instead
        return Hint(f"use {{{(self.new or '').replace('-', '_')}}}")

    def message(self, spelled: str) -> str:
        """Error message for the name, as the user spelled it."""
        change = "was removed" if self.new is None else "was renamed"
        return f"{spelled} {change}: {self.why}"


def _simulated(*sections: str) -> tuple[Place, ...]:
    """The places of a setting that simulations take too."""
    everywhere = (Kind.OPTION, ""), (Kind.KEYWORD, ""), (Kind.KEY, "")
    return (*everywhere, *_keys(*sections))


def _keys(*sections: str) -> tuple[Place, ...]:
    return tuple((Kind.KEY, section) for section in sections)


_RECORD: Place = (Kind.RECORD, "")
_VARIED = "a study no longer varies it, since all its models train on one table"
_ONE_FILE = "one file counts everything that the peer was given"
_CONSENT = Hint(
    "leave it out, or name that file with {consent}; the counts of the former file are not "
    "carried over",
    consent="consent.sqlite",
)
_CERTIFICATES = "certificates are requested, signed and renewed with openssl"
_OPENSSL = Hint("use the commands in docs/how-to/install.md")
_AGREEMENT = "the commands on an agreement are one group"
_RUNS = "a result folder holds the record and the report, and taciturn.runs() makes a table of runs"
_RESULT_FOLDERS = Hint(
    "use taciturn runs list, open result.json or report.html in the folder, or compare runs in "
    "MLflow with taciturn runs export"
)

FORMER_NAMES: tuple[FormerName, ...] = (
    # Renamed.
    FormerName(
        "over",
        "base-mechanism",
        (*_simulated("agreement"), _RECORD),
        "it names the mechanism that trains on the flipped labels of label-rr",
    ),
    FormerName(
        "split-salt",
        "split-seed",
        _keys("agreement"),
        "it seeds the choice of the held-out rows",
    ),
    FormerName(
        "tell-alice",
        "share-metrics",
        _keys("agreement"),
        "it says which metrics of the model Bob shares with Alice",
    ),
    FormerName(
        "tell-epsilon",
        "metrics-epsilon",
        _keys("agreement"),
        "it is the epsilon of the metrics that Bob shares",
    ),
    FormerName(
        "null-words",
        "na-values",
        _simulated("data"),
        "pandas calls the texts that stand for a missing value so",
    ),
    FormerName(
        "rare-share",
        "min-frequency",
        _simulated("data"),
        "scikit-learn's OneHotEncoder calls the smallest share of a category so",
    ),
    FormerName(
        "minimum-match",
        "min-overlap",
        _keys("data"),
        "it is the smallest overlap of the two lists of ids",
    ),
    FormerName(
        "normalise",
        "normalise-ids",
        (
            *_keys("data"),
            (Kind.OPTION, "align"),
            (Kind.OPTION, "predict"),
            (Kind.KEYWORD, "align"),
            _RECORD,
        ),
        "it normalises ids, and no column",
    ),
    FormerName(
        "common",
        "aligned",
        (*_keys("serve"), (Kind.OPTION, "predict")),
        "it names the list that taciturn align wrote, as aligned in [data] does",
    ),
    FormerName(
        "dead-seconds",
        "keepalive-seconds",
        _keys("link"),
        "it is the keepalive timeout of the connection",
    ),
    FormerName(
        "every-iterations",
        "checkpoint-iterations",
        _keys("state"),
        "it is the number of iterations between checkpoints",
    ),
    FormerName(
        "every-seconds",
        "checkpoint-seconds",
        _keys("state"),
        "it is the number of seconds between checkpoints",
    ),
    FormerName(
        "miss-cost",
        "false-negative-cost",
        (*_keys("output"), _RECORD),
        "it is the cost of a false negative",
    ),
    FormerName(
        "answer-milliseconds",
        "answer-interval-milliseconds",
        _keys("privacy"),
        "it is the interval at which answers are sent, and no timeout",
    ),
    FormerName(
        "row-per-day",
        "requests-per-row-per-day",
        _keys("serve"),
        "it limits the requests for one row in a day",
    ),
    FormerName(
        "request-rows",
        "max-rows-per-request",
        _keys("serve"),
        "it limits the rows of one request",
    ),
    FormerName(
        "most-waiting",
        "max-queued-requests",
        _keys("serve"),
        "it limits the length of the request queue",
    ),
    FormerName(
        "names",
        "share-names",
        (*_keys("woe"), (Kind.OPTION, "woe"), (Kind.KEYWORD, "woe")),
        "it says whether Alice shares the names of her columns and bins",
    ),
    FormerName(
        "serves",
        "listener",
        ((Kind.OPTION, "init"),),
        "it names the side that listens on a port",
    ),
    FormerName(
        "propose",
        None,
        ((Kind.COMMAND, ""),),
        _AGREEMENT,
        Hint("use taciturn agreement propose"),
    ),
    FormerName(
        "review",
        None,
        ((Kind.COMMAND, ""),),
        _AGREEMENT,
        Hint("use taciturn agreement review"),
    ),
    FormerName(
        "sign", None, ((Kind.COMMAND, ""),), _AGREEMENT, Hint("use taciturn agreement sign")
    ),
    # Removed.
    FormerName(
        "intercept",
        None,
        _keys("data"),
        "both sides agree on it, since both centre their columns where there is one",
        Hint("write {intercept} in [agreement] on both sides", intercept=True),
    ),
    FormerName(
        "dither",
        None,
        _simulated("agreement", "study"),
        "noise on training scores costs the optimum and does not hide Alice's columns",
        Hint("leave it out, or use {mechanism}, which opens no training score", mechanism="mutual"),
    ),
    FormerName(
        "monotone",
        None,
        _simulated("data", "study"),
        "it cut Bob's columns by his labels, which no ledger counts",
        Hint("leave it out, or give edges: {bins}", bins={"age": [25, 35, 50]}),
    ),
    FormerName(
        "bins",
        None,
        _keys("study"),
        _VARIED,
        Hint("prepare it with {bins}, and run a study for each number of bins", bins=8),
    ),
    FormerName(
        "columns",
        None,
        _keys("study"),
        _VARIED,
        Hint(
            "choose its columns with {keep} or {drop}, and run a study for each choice",
            keep=["age", "income"],
            drop=["note"],
        ),
    ),
    FormerName(
        "table",
        None,
        _keys("serve"),
        "a query names the table",
        Hint("write {query} and {connection}", query="select * from customers"),
    ),
    FormerName("flips", None, _keys("privacy"), _ONE_FILE, _CONSENT),
    FormerName("ledger", None, _keys("privacy"), _ONE_FILE, _CONSENT),
    FormerName("scores", None, _keys("privacy"), _ONE_FILE, _CONSENT),
    FormerName("book", None, _keys("woe"), _ONE_FILE, _CONSENT),
    FormerName("usage", None, _keys("serve"), _ONE_FILE, _CONSENT),
    FormerName("request", None, ((Kind.OPTION, "certs"),), _CERTIFICATES, _OPENSSL),
    FormerName("sign", None, ((Kind.OPTION, "certs"),), _CERTIFICATES, _OPENSSL),
    FormerName("renew", None, ((Kind.OPTION, "certs"),), _CERTIFICATES, _OPENSSL),
    FormerName(
        "epsilon",
        None,
        ((Kind.OPTION, "model use"),),
        "a randomised response often names another model than the wanted one",
        Hint("leave it out: the choice then has no finite price, and the ledger counts it"),
    ),
    FormerName("show", None, ((Kind.COMMAND, "runs"),), _RUNS, _RESULT_FOLDERS),
    FormerName("compare", None, ((Kind.COMMAND, "runs"),), _RUNS, _RESULT_FOLDERS),
    FormerName("report", None, ((Kind.COMMAND, "runs"),), _RUNS, _RESULT_FOLDERS),
)


def former_name(kind: Kind, within: str, name: str) -> FormerName | None:
    """The entry of an old name, spelled with hyphens or underscores; None for any other name."""
    old = hyphenated(name)
    return next(
        (entry for entry in FORMER_NAMES if entry.old == old and (kind, within) in entry.places),
        None,
    )


def refuse_former_key(key: str, section: str, syntax: SettingSyntax | None = None) -> None:
    """Raise ``ConfigError`` for an old key of a section; return for any other name.

    The section is empty for a settings file, and for keywords that are checked like its keys.
    """
    if (entry := former_name(Kind.KEY, section, key)) is not None:
        raise ConfigError(
            entry.message(key),
            where="" if syntax is None else syntax.source,
            setting=key.replace("-", "_"),
            hint=entry.hint,
        )


def refuse_former_keyword(keyword: str, function: str) -> None:
    """Raise ``ConfigError`` for an old keyword of a function; return for any other name."""
    entry = former_name(Kind.KEYWORD, function, keyword)
    if entry := entry or former_name(Kind.KEYWORD, "", keyword):
        raise ConfigError(entry.message(keyword), setting=keyword, hint=entry.hint)


def former_usage(arguments: Sequence[str], unknown: str = "") -> ConfigError | None:
    """The error of an old command, or of an old option: ``unknown``; None for any other."""
    words = [argument.partition("=")[0] for argument in arguments]
    option = unknown.removeprefix("--")
    for entry in FORMER_NAMES:
        for kind, within in entry.places:
            command = within.split()
            if words[: len(command)] != command:
                continue
            place = " ".join(["taciturn", *command])
            if kind is Kind.OPTION and entry.old in (option, option.removeprefix("no-")):
                usage = f"--{entry.old}"
            elif kind is Kind.COMMAND and words[len(command) :][:1] == [entry.old]:
                usage = f"{place} {entry.old}"
            else:
                continue
            where = place if within else usage
            return ConfigError(entry.message(usage), where=where, hint=entry.hint)
    return None


def removed_batches(mechanism: str, base: str | None = None) -> ConfigError:
    """The error of ``sgd`` with a mechanism that trains on whole tables only, or over one."""
    name = mechanism if base is None else f"{mechanism} over {base}"
    return ConfigError(
        f"{name} with sgd was removed: newton trains on all rows in each of a few passes, "
        "and reaches the optimum",
        setting="solver",
        value="sgd",
        hint=Hint(
            "use {solver}, or {mechanism} with sgd for the paper's baseline",
            solver="newton",
            mechanism="none",
        ),
    )
