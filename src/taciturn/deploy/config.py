"""A party's settings: one TOML file, of one shape for both sides.

``[agreement]`` must be the same on both sides, and is compared when they meet; everything else is
one side's own business and never leaves it. Paths are relative to the file's folder.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import Field, model_validator

from taciturn.errors import ConfigError, nearest
from taciturn.protocol.messages import Role
from taciturn.settings.agreement import Agreement
from taciturn.settings.checked import Checked, Positive, PositiveInt
from taciturn.settings.schema import DEFAULT_MECHANISM, Settings

SECTIONS = ("agreement", "data", "link", "state", "output", "privacy")
_LOCAL_ONLY = {
    "seed": "is refused in a real training: who knows it knows all masks and noise",
    "seeds": "is refused in a real training: who knows them knows all masks and noise",
    "permute_labels": "is refused in a real training: canary runs are for simulations",
    "budget": "is not agreed on: it stands in [privacy], in Bob's file",
    "delta": "is not agreed on: it stands in [privacy], in Bob's file",
}
# What [agreement] may hold beside the agreement itself: from these both derive a part of it.
_DERIVED = ("l_rr", "alice_columns")
_DEFAULTS = {
    "mechanism": DEFAULT_MECHANISM,
    "epochs": 10,
    "batch_size": 64,
    "minimum_batch": 8,
    "learning_rate": 0.05,
    "held_out": 0.2,
    "split_salt": "",
    "scheme": "bfv",
}

S = TypeVar("S", bound=Checked)
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class DataSection(Checked):
    """The party's own table."""

    file: str
    id: str
    aligned: str | None = None
    label: str | None = None
    intercept: bool = True
    impute: Literal["median", "mean", "none"] | None = None
    scale: Literal["standard", "none"] | None = None
    clip: Positive | None = None
    max_levels: PositiveInt | None = None


class LinkSection(Checked):
    """How the peer is reached, and how it is known."""

    listen: str | None = None
    connect: str | None = None
    peer: str
    ca: str
    certificate: str
    key: str
    connect_seconds: Seconds = 600.0
    answer_seconds: Seconds = 600.0
    dead_seconds: Seconds = 20.0

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.listen is None) == (self.connect is None):
            raise ValueError("give either listen or connect: this side opens a port, or it dials")
        return self


class StateSection(Checked):
    """Where the party keeps what it needs to go on after a stop."""

    folder: str
    key: str | None = None
    every_iterations: PositiveInt = 100
    every_seconds: Seconds = 30.0
    sync: bool = True


class OutputSection(Checked):
    """What the party writes."""

    model: str
    log: str | None = None
    metrics: str | None = None


class PrivacySection(Checked):
    """Bob's own limits."""

    budget: Positive | None = None
    delta: Annotated[float, Field(ge=0, lt=1)] = 1e-6
    flips: str = "bob.flips.json"


class PartyConfig:
    """One side of a training, as its file describes it.

    Args:
        role: Who this side is.
        folder: Where its file lies: paths are relative to it.
        sections: The file's sections, to be checked.
        where: The file, for messages.
    """

    def __init__(self, role: Role, folder: Path, sections: dict[str, Any], where: str) -> None:
        self.role: Role = role
        self.folder = folder
        self.where = where
        self.data = _section(DataSection, sections, "data", where)
        self.link = _section(LinkSection, sections, "link", where)
        self.state = _section(StateSection, sections, "state", where)
        self.output = _section(OutputSection, sections, "output", where)
        self.privacy = _section(PrivacySection, sections, "privacy", where)
        self.agreed = _agreed(sections.get("agreement", {}), f"{where}, [agreement]")
        self._check_role(where)

    @classmethod
    def read(cls, path: Path) -> PartyConfig:
        """Reads a party's file.

        Raises:
            ConfigError: The file is absent or not TOML; a section or a key is unknown, missing or
                has a value that is not possible.
        """
        values = _toml(path)
        role = values.pop("role", None)
        if role not in ("alice", "bob"):
            raise ConfigError(
                "the file does not say whose it is",
                where=f"{path}, role",
                hint='write role = "alice" (features only) or role = "bob" (the labels)',
            )
        for name, section in values.items():
            if name not in SECTIONS or not isinstance(section, dict):
                raise ConfigError(
                    f"unknown section or setting {name}",
                    where=str(path),
                    hint=nearest(name, SECTIONS),
                )
        return cls(role, path.parent, values, str(path))

    def path(self, name: str) -> Path:
        """A path of the file, relative to its folder."""
        return self.folder / name

    def settings(self) -> Settings:
        """The agreement's part as settings, with their defaults."""
        common = {
            name: value for name, value in self.agreed.items() if name in Settings.model_fields
        }
        limits = self.privacy.model_dump(include={"budget", "delta"})
        where = f"{self.where}, [agreement]"
        return Settings.of({**common, **limits}, where=where).resolved()

    def beside(self) -> dict[str, Any]:
        """What is agreed and is no setting of a simulation."""
        return {
            name: value for name, value in self.agreed.items() if name not in Settings.model_fields
        }

    def _check_role(self, where: str) -> None:
        if self.role == "bob" and self.data.label is None:
            raise ConfigError(
                "Bob's table needs the name of its label column",
                where=f"{where}, [data] label",
                hint='write label = "default", say; or is this Alice\'s file?',
            )
        if self.role == "alice" and self.data.label is not None:
            raise ConfigError(
                "Alice has no labels",
                where=f"{where}, [data] label",
                hint="leave it out, or is this Bob's file?",
            )
        if self.role == "alice" and self.privacy.budget is not None:
            raise ConfigError(
                "the budget is Bob's: it is he who stops",
                where=f"{where}, [privacy] budget",
                hint="leave it out here; Bob writes it in his file",
            )


def _toml(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as stream:
            return tomllib.load(stream)
    except OSError as problem:
        raise ConfigError(
            f"the party's file cannot be read: {problem.strerror}",
            where=str(path),
            hint="taciturn init writes one for each side",
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise ConfigError(f"this is not TOML: {problem}", where=str(path)) from None


def _either(names: Iterable[str]) -> str:
    """Texts of which one is to be chosen.

    >>> _either(["a", "b"])
    '"a" or "b"'
    """
    return " or ".join(f'"{name}"' for name in names)


def _section(kind: type[S], sections: dict[str, Any], name: str, where: str) -> S:
    return kind.of(sections.get(name, {}), where=f"{where}, [{name}]")


def _agreed(section: dict[str, Any], where: str) -> dict[str, Any]:
    known = [name for name in (*Agreement.model_fields, *_DERIVED)]
    spelled = {name.replace("_", "-"): name for name in known}
    found: dict[str, Any] = {}
    for key, value in section.items():
        plain = key.replace("_", "-")
        if (reason := _LOCAL_ONLY.get(plain.replace("-", "_"))) is not None:
            raise ConfigError(f"{plain} {reason}", where=where)
        if plain not in spelled:
            raise ConfigError(f"unknown setting {key}", where=where, hint=nearest(plain, spelled))
        found[spelled[plain]] = value
    _refuse_for_simulations(found, where)
    agreed = {**_DEFAULTS, **found}
    if agreed["held_out"] == 0 and not isinstance(agreed["held_out"], bool):
        agreed["held_out"] = None  # TOML has no word for none
    _check_values(agreed, where)
    return agreed


# What an agreement has beside the section: later it is the scheme's, or a setting's default.
_LATER: dict[str, Any] = {
    "key_bits": 0,
    "schedule": "constant",
    "decay": 0.0,
    "l1": 0.0,
    "l2": 0.0,
    "feature_bits": 16,
    "residue_bits": 20,
}


def _check_values(agreed: dict[str, Any], where: str) -> None:
    """Refuses wrong types and ranges now, before a table is read by them."""
    columns = agreed.get("alice_columns", 1)
    if isinstance(columns, bool) or not isinstance(columns, int) or columns < 1:
        raise ConfigError(
            f"setting alice-columns: it is the number of her prepared columns, not {columns!r}",
            where=where,
        )
    known = {name: value for name, value in agreed.items() if name in Agreement.model_fields}
    checked = Agreement.of({**_LATER, **known}, where=where)
    if checked.patience is not None and checked.evaluate != "epoch":
        raise ConfigError(
            "patience needs a look at the held-out rows after every epoch",
            where=f"{where} patience",
            hint='write evaluate = "epoch", or leave patience out',
        )
    if checked.evaluate == "epoch" and checked.held_out is None:
        raise ConfigError(
            "held-out rows are to be looked at after each epoch, and there are none",
            where=f"{where} evaluate",
            hint='raise held-out, or write evaluate = "end"',
        )


def _refuse_for_simulations(found: dict[str, Any], where: str) -> None:
    if found.get("scheme") == "clear":
        raise ConfigError(
            "clear hides nothing and is for simulations",
            where=f"{where} scheme",
            hint="use bfv or paillier",
        )
    if found.get("noise") == "continuous":
        raise ConfigError(
            "continuous noise leaks through its last bits and is for simulations",
            where=f"{where} noise",
            hint="use discrete, or leave it out",
        )
    if found.get("mechanism") == "hybrid" and "alice_columns" not in found:
        raise ConfigError(
            "hybrid's sizes depend on how many columns Alice has, which both sides must know",
            where=f"{where} alice-columns",
            hint="write alice-columns = 30, say: the number of her prepared columns",
        )
