"""A party's settings: one TOML file, of one shape for both sides.

``[agreement]`` must be the same on both sides, and is compared when they meet; everything else is
one side's own business and never leaves it. Paths are relative to the file's folder. In place of
the settings ``[agreement]`` may name a file that both sides hold, and sign (``agreement_file``).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from taciturn.data.addresses import is_address, is_select
from taciturn.data.csv_files import Dialect
from taciturn.data.database import Connection
from taciturn.data.ids import NONE, Normalisation
from taciturn.data.source import TableSource
from taciturn.errors import ConfigError, ExtensionError, nearest, rendering_errors_as
from taciturn.extras import JOBS_ELSEWHERE, not_installed
from taciturn.files import read_toml
from taciturn.job_registry import installed_sections, registry
from taciturn.model.archive import study_folder
from taciturn.output_paths import PathUse, UsedPath, require_no_overwrite
from taciturn.party.agreement_file import AgreementFile
from taciturn.party.roles import ROLES
from taciturn.party.used_paths import used_paths
from taciturn.privacy.base import PaidModel, SizedByColumns
from taciturn.privacy.registry import MECHANISMS, mechanism_class
from taciturn.privacy.solvers import resolved, supported_solvers
from taciturn.protocol.agree import require_used
from taciturn.protocol.messages import Role
from taciturn.setting_syntax import TomlFile, hyphenated
from taciturn.settings.agreement import (
    ACCEPTED_EXPOSURE,
    ACCEPTED_LEAK,
    AGREEMENT_KEYS,
    ALSO_SIMULATED,
    Agreement,
)
from taciturn.settings.checked import (
    Checked,
    Positive,
    PositiveInt,
    Setting,
    declared,
    named,
    require,
    setting,
)
from taciturn.settings.mechanism_settings import FIELD, collected, declared_by
from taciturn.settings.schema import (
    DEFAULT_MECHANISM,
    OWN_DATA_DEFAULTS,
    SGD_ONLY,
    Engine,
    Newton,
    Settings,
    require_engine,
    require_shared_work,
)
from taciturn.settings.study import Point, Study
from taciturn.settings.study import named as of_model
from taciturn.settings.table import TableSettings

# What [agreement] may hold beside the agreement itself: from these both derive a part of it, or
# check their tables.
DERIVED = ("l_rr", "alice_columns", "rows")

S = TypeVar("S", bound=Checked)
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
of_bob, of_alice = partial(setting, owner="bob"), partial(setting, owner="alice")


class DataSection(TableSettings):
    """The party's own table. What a simulation takes too is declared in ``Settings``."""

    section: ClassVar = "data"

    file: str | None = setting(example="{role}.csv", path=PathUse.READ)
    """This side's table: a CSV or Parquet file; rows in any order.

    `.csv`, `.tsv`, both also with `.gz`, or `.parquet`; a folder of Parquet files, or a pattern
    such as `2026/*.parquet` ([large tables](data.md#large-tables)). Required unless `query` gives
    the table.
    """
    query: str | None = setting(example="select * from customers")
    """SELECT statement that returns the table from a database, id column included.

    In place of `file`. Run once, as one read-only statement; at most 50 million rows
    ([databases](data.md#databases)).
    """
    connection: str | None = setting(example="env:CRM_DATABASE", path=PathUse.READ)
    """Database of `query`: `env:NAME`, `file:PATH`, `sqlite:FILE` or `postgresql://…`.

    An environment variable or a file of mode 600 that holds the address, with its password; or the
    address itself, without one ([databases](data.md#databases)).
    """
    id: str
    aligned: str | None = setting(example="{role}.aligned.csv", path=PathUse.READ)
    """List of rows to use, as written by `taciturn align`.

    `.csv` or `.parquet`; rows take their common ids ([align](how-to/align.md)). Without it all rows
    are used.
    """
    normalise_ids: str = setting(NONE, example="trim,case")
    """Normalisation of ids before they are compared; the same on both sides.

    `none`, or any of `trim` (surrounding spaces), `case`, `nfkc` (Unicode) and `zeros` (leading
    zeros of numbers), separated by commas ([align](how-to/align.md)). Used by `taciturn align` and
    `taciturn predict`, whose option takes precedence.
    """
    min_overlap: Annotated[float, Field(ge=0, le=1)] = setting(0.5)
    """Minimum overlap of the id lists: the fraction of the shorter list that both sides have.

    Between 0 and 1; an alignment below it is refused ([align](how-to/align.md)). Not used for
    predictions.
    """
    label: str | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        require_no_address("file", self.file)
        require(
            (self.file is None) != (self.query is None),
            "the table is a file or a query, and one of them is needed",
            "file" if self.file is None else "query",
            "write {file}; or {query} and {connection}, for a database",
        )
        require_connection(self.query, self.connection)
        return self


def require_no_address(setting: str, file: str | None) -> None:
    """Refuse the address of a database where a file is named."""
    # The line goes into reports and messages; an address there may hold a password.
    require(
        file is None or not is_address(file),
        f"{setting} is the address of a database, where a file is named",
        setting,
        "write {connection} and {query}, and leave it out",
    )


def require_connection(query: str | None, connection: str | None) -> None:
    """Check a connection, and that a query has one."""
    if connection is not None:
        Connection(connection).require_usable()
    require(
        query is None or connection is not None,
        "a query needs the database that it is for",
        "connection",
        "write {connection}, say",
        connection="env:CRM_DATABASE",
    )


class LinkSection(Checked):
    """Address of the peer, and its authentication."""

    section: ClassVar = "link"

    listen: str | None = setting()
    """Address (host:port) on which this side listens.

    Exactly one side listens; with several Alices it is Bob.
    """
    connect: str | None = setting()
    """Address (host:port) of the other side.

    Each file has `listen` or `connect`.
    """
    peer: str | None = setting(example="{peer}")
    """Name in the other side's certificate.

    Required, except for Bob with several Alices, whom `[agreement.parties]` names.
    """
    ca: str = setting(..., example="certs/ca.pem", path=PathUse.READ)
    """CA certificate that signed both certificates (PEM)."""
    certificate: str = setting(..., example="certs/{role}.pem", path=PathUse.READ)
    """This side's certificate (PEM)."""
    key: str = setting(..., example="certs/{role}.key", path=PathUse.READ)
    """This side's private key (PEM), without a passphrase; mode 600."""
    connect_seconds: Seconds = setting(600.0)
    """Timeout for a connection, at the start and after every break."""
    answer_seconds: Seconds = setting(600.0)
    """Timeout for the peer's next message.

    While Bob waits for another Alice he sends signs of life, each of which restarts the timeout
    ([several Alices](how-to/two-machines.md#several-alices)).
    """
    keepalive_seconds: Seconds = setting(20.0)
    """Close and reopen a connection that has been silent for this long."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        require(
            (self.listen is None) != (self.connect is None),
            "give either listen or connect: a side listens on a port, or connects to one",
            "connect" if self.listen is None else "listen",
        )
        return self


class StateSection(Checked):
    """Storage of the state from which a party resumes."""

    section: ClassVar = "state"

    folder: str = setting(..., example="{role}-state", path=PathUse.READ)
    """Folder of the encrypted journal and checkpoints, from which this side resumes.

    One session and one process at a time. The prepared rows of [large tables](data.md#large-tables)
    lie beside it and are not encrypted.
    """
    key: str | None = setting(example="/elsewhere/{role}.state.key", path=PathUse.KEPT)
    """Key that encrypts the state folder, created if absent; preferably on another disk.

    By default one file per state folder in `~/.config/taciturn` (`$XDG_CONFIG_HOME`); a file
    `alice.state.key` or `bob.state.key` beside this file, the former default, is still used, with a
    warning.
    """
    checkpoint_iterations: PositiveInt = setting(100)
    """Maximum number of iterations between checkpoints."""
    checkpoint_seconds: Seconds = setting(30.0)
    """Maximum number of seconds between checkpoints."""
    sync: bool = setting(True)
    """Flush to disk (fsync) before anything is sent.

    Without it a power cut may lose frames that were sent; a peer that lies about what it received
    could then get other frames under the same randomness, so a session cannot be resumed after the
    machine was restarted.
    """


class OutputSection(Checked):
    """Files that the party writes."""

    section: ClassVar = "output"

    model: str = setting(..., example="{role}.model.json", path=PathUse.RESULT)
    """This side's share of the model (JSON, mode 600)."""
    models: str | None = setting(example="{role}.models", path=PathUse.RESULT)
    """Folder of a study's models (default: `NAME.models`, beside the model).

    One file per combination, and the table ([study.md](study.md)).
    """
    log: str | None = setting(example="{role}.log", path=PathUse.WRITTEN)
    """Log file: one JSON object per line, appended; no secrets."""
    metrics: Annotated[str, Field(min_length=1)] | None = setting(
        example="{role}.metrics.json", path=PathUse.WRITTEN
    )
    """Progress and speed (JSON), rewritten every two seconds during training; no secrets.

    The same for Prometheus is written beside it, with the ending `.prom`
    ([monitor](../ops/docs/monitor.md)).
    """
    held_out_scores: str | None = of_bob(example="{role}.held-out.csv", path=PathUse.RESULT)
    """Bob: held-out rows with their scores and labels (CSV, mode 600).

    Columns `id`, `score`, `probability`, `label`, written at the end of the training
    ([score](how-to/score.md)).
    """
    threshold: Annotated[float | None, Field(gt=0, lt=1)] = of_bob(example=0.2)
    """Bob: decision threshold of predictions; class 1 is above this probability.

    By default it is chosen on the held-out rows, by Youden's index or `false-negative-cost`
    ([score](how-to/score.md)).
    """
    false_negative_cost: Positive | None = of_bob(example=10.0)
    """Bob: cost of a false negative, in false positives; determines the decision threshold.

    The threshold that costs least on the held-out rows.
    """

    report: str | None = of_bob(example="{role}.model.html", path=PathUse.RESULT)
    """Bob: model report, written at the end of a training (HTML, mode 600; default:
    `NAME.model.html`).

    Beside the model; an empty text for none ([model
    report](../risk/docs/model-reports.md#model-report)).
    """

    @property
    def report_file(self) -> str:
        """Path of the model's page, whether or not the training writes it."""
        return self.report or f"{self.model.removesuffix('.json')}.html"

    @property
    def models_folder(self) -> str:
        """Folder of a study's models."""
        if self.models is not None:
            return self.models
        return study_folder(self.model)

    @property
    def files(self) -> tuple[str, ...]:
        """Files that a training writes."""
        named = (self.model, self.log, self.metrics, self.prometheus, self.held_out_scores)
        # The model's page is no reason to refuse a training.
        return tuple(name for name in named if name is not None)

    @property
    def prometheus(self) -> str | None:
        """The file for Prometheus, next to the metrics file."""
        return None if self.metrics is None else str(Path(self.metrics).with_suffix(".prom"))


class PrivacySection(Checked):
    """A side's own limits: what of Bob's labels, and of Alice's columns, the other may learn."""

    section: ClassVar = "privacy"

    budget: Positive | None = None
    delta: Annotated[float, Field(ge=0, lt=1)] = 1e-6
    consent: str | None = setting(example="{role}.consent.sqlite", path=PathUse.KEPT)
    """File that records what the peer has received. Keep it: what it does not record is not
    counted.

    By default `bob.consent.sqlite`, `alice.consent.sqlite`; one file for all peers, and another one
    starts from zero ([more](how-to/agreements.md#the-consent-store)).
    """
    flip_set: str = setting("first")
    """`label-rr`: name of the set of flipped labels; another set costs epsilon again."""
    accept_flips_key: str | None = setting(example="1f0c9d3a5b7e2468")
    """`label-rr`: name of the state key that replaced the key of the flipped labels.

    Without it such labels are refused: only the former key can compare the labels with those that
    were flipped. The refusal prints the name.
    """
    answer_interval_milliseconds: Positive | None = of_bob(example=50.0)
    """Send Bob's answers at fixed times: at multiples of this interval after his last one.

    Against a peer that measures response times ([sealed.md](sealed.md)); choose more than an answer
    takes. An iteration takes up to twice as long.
    """
    budget_total: Positive | None = of_bob(example=4.0)
    """Bob: maximum total epsilon of a label over all trainings with this peer.

    A training that would exceed it is refused; `budget` limits one training
    ([agreements](how-to/agreements.md#what-a-training-costs)).
    """
    accept_leak: str | None = of_bob(example=ACCEPTED_LEAK)
    """Bob: required, in these words, if Alice can compute labels from what she receives.

    Without it Bob's side refuses such a training: `none`, `hybrid`, `mult` with `one-sided`,
    `reveal` without `reveal-epsilon`, true updates, `patience`, `share-metrics` without
    `metrics-epsilon`, and anything else with an infinite epsilon
    ([threat_model.md](threat_model.md)).
    """
    accept_column_exposure: str | None = of_alice(example=ACCEPTED_EXPOSURE)
    """Alice: required, in these words, if Bob can reconstruct her columns from the training scores
    that he receives.

    Every mechanism but `mutual` needs it, in a training and in a study; each of several Alices
    writes her own ([agreements](how-to/agreements.md#columns-that-can-be-reconstructed)).
    """
    scores_per_row: PositiveInt | None = of_alice(example=20)
    """Alice: maximum number of models that ever score one of her rows for this peer.

    Counted over all trainings, held-out rows, studies and predictions, new sessions too; a model of
    one pass, whose scores are opened, counts as a model. Beyond it a training opens no score of
    held-out rows, and anything else is refused. Without it the limit is a quarter of her columns,
    at least 2, with `mutual`, and there is no limit with other mechanisms ([threat
    model](threat_model.md#a-party-that-deviates)).
    """
    repetitions_per_row: PositiveInt | None = of_alice(example=100)
    """Alice: maximum number of scores of a row by models that have scored it before.

    Counted over all predictions and services. Without it there is no limit.
    """
    trainings_per_row: PositiveInt | None = of_alice(example=12)
    """Alice: maximum number of trainings with this peer that use one of her rows.

    Every training of a study counts. Without it there is no limit.
    """


class ComputeSection(Checked):
    """Compute resources of this side; ``Settings`` declares those of simulations too."""

    section: ClassVar = "compute"

    table_memory: PositiveInt = 1024
    engine: Engine = "local"
    cores: PositiveInt | None = None
    scheduler: str | None = setting(example="tls://scheduler.internal:8786")
    """`dask`: address of the scheduler of this side's own cluster.

    `tls://host:port`; `tcp://` on this machine only, because anyone who reaches a scheduler without
    TLS can run code on the workers.
    """
    ca: str | None = setting(example="cluster/ca.pem", path=PathUse.READ)
    """CA certificate of the cluster (PEM).

    The cluster's own CA, never that of the link: anyone with a certificate of it controls the
    workers.
    """
    certificate: str | None = setting(example="cluster/party.pem", path=PathUse.READ)
    """This side's certificate in the cluster (PEM)."""
    key: str | None = setting(example="cluster/party.key", path=PathUse.READ)
    """This side's private key in the cluster (PEM); mode 600."""
    worker_seconds: Seconds = setting(60.0)
    """`dask`: timeout while no worker is available."""

    @model_validator(mode="after")
    def _one_engine(self) -> Self:
        names = ("cores", "scheduler", "ca", "certificate", "key")
        require_engine(self.engine, {name: getattr(self, name) for name in names})
        if self.engine == "dask":
            self._require_cluster()
        return self

    def _require_cluster(self) -> None:
        way, host, port = address_parts(self.scheduler or "")
        require(
            way in ("tls", "tcp") and host and port,
            "the engine dask needs the address of a scheduler"
            if self.scheduler is None
            else f"{self.scheduler!r} is not the address of a scheduler",
            "scheduler",
            "write {scheduler}, say",
            scheduler="tls://scheduler.internal:8786",
        )
        require(
            way == "tls" or is_loopback(host),
            "a scheduler on another machine is reached by TLS only: its workers would run what "
            "anybody on the way sends them",
            "scheduler",
            "use {scheduler}, with {ca}, {certificate} and {key}",
            scheduler=f"tls://{host}:{port}",
        )
        for name in ("ca", "certificate", "key"):
            require(
                way == "tcp" or getattr(self, name) is not None,
                f"a scheduler that is reached by TLS needs {name}",
                name,
                "name the PEM file that the cluster's authority gave this side",
            )


def address_parts(address: str) -> tuple[str, str, int]:
    """The way, the host and the port of a scheduler's address; empty, or 0, where one is absent.

    >>> address_parts("tls://[fe80::1]:8786"), address_parts("8786")
    (('tls', 'fe80::1', 8786), ('', '', 0))
    """
    try:
        parts = urlsplit(address)
        return parts.scheme, parts.hostname or "", parts.port or 0
    except ValueError:
        return "", "", 0


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a host of that name.

    >>> [is_loopback(host) for host in ("localhost", "127.0.0.1", "::1", "10.0.0.1", "scheduler")]
    [True, True, True, False, False]
    """
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


class Pins(Checked):
    """Facts about the tables in [agreement]; a simulation may name Alice's columns instead."""

    section: ClassVar = "agreement"

    alice_columns: PositiveInt | None = None
    rows: PositiveInt | None = setting(example=455)
    """Number of training rows; a table with another number is refused.

    A dry run prints the line.
    """


class NamedAgreement(Checked):
    """Content of [agreement] where a separate file holds the settings."""

    section: ClassVar = "agreement"

    file: str | None = setting(example="agreement.toml", path=PathUse.READ)
    """File that holds the agreement, in place of all other settings of this section.

    `taciturn agreement propose` writes it, and both sides hold the same
    ([agreements](../ops/docs/sign-an-agreement.md)).
    """
    signed: bool = setting(False)
    """With `file`: start only if every side has signed its current text.

    Without it signatures are optional; an invalid one is refused all the same.
    """


# What [agreement] holds where it names a file; no setting of an agreement.
NAMING = tuple(NamedAgreement.model_fields)
# What an agreement has and no section: it follows from the file that holds it, or from the study.
UNWRITTEN = ("file_digest", "penalties", FIELD)

STUDY = "study"
"""The section of several models; a file without it trains one."""
SECTIONS: Mapping[str, type[Checked]] = MappingProxyType(
    {
        "agreement": Agreement,
        "data": DataSection,
        "link": LinkSection,
        "state": StateSection,
        "output": OutputSection,
        "privacy": PrivacySection,
        "compute": ComputeSection,
    }
)
"""The sections of every party's file, without those of jobs."""


def job_sections() -> dict[str, type[Checked]]:
    """The sections that installed jobs declare, by name; loads them."""
    return {section.name: _job_section(section.name) for section, _ in installed_sections()}


def section_model(name: str) -> type[Checked]:
    """The model of a section, which is loaded if it is a job's."""
    return SECTIONS[name] if name in SECTIONS else _job_section(name)


def _job_section(name: str) -> type[Checked]:
    job, section = registry().sections[name]
    model: type[Checked] = job.load(section.model)
    if name in (*SECTIONS, STUDY) or model.section != name:
        job.extension.refuse(f"declares [{name}], which is not its own")
    return model


def section_settings(section: str) -> dict[str, Setting]:
    """The settings that a section may hold, by name, in the section's order."""
    model = section_model(section)
    known = declared(model, Agreement, Settings, Pins, NamedAgreement)
    # A section's own before those that a simulation takes too.
    defined = [name for name in model.model_fields if name in model.__annotations__]
    inherited = [name for name in model.model_fields if name not in defined]
    names = [*defined, *inherited] if model is DataSection else [*model.model_fields]
    names = [*AGREEMENT_KEYS] if model is Agreement else names
    names += (*DERIVED, *NAMING) if model is Agreement else ()
    return {name: known[name] for name in names if name not in UNWRITTEN}


def file_default(section: str, name: str) -> object:
    """Default of a setting in a party's file; None if it is decided elsewhere."""
    declaration = section_settings(section)[name]
    if declaration.file_default is not None:
        return declaration.file_default
    # In [agreement] it is a number of columns; a simulation's default is a word.
    if name in ("alice_columns", "rows"):
        return None
    model = section_model(section)
    if section == "agreement" and name in NAMING:
        model = NamedAgreement
    if model is Agreement and name in ALSO_SIMULATED:
        default = getattr(OWN_DATA_DEFAULTS, name, None)
        return Settings.model_fields[name].default if default is None else default
    field = model.model_fields[name]
    return None if field.is_required() else field.default


def party_file(path: str) -> TomlFile:
    """Syntax of settings in a party's file: each in its section."""
    return TomlFile(path, _section_of_settings())


def _section_of_settings(mechanism: object = None) -> dict[str, str]:
    sections = {name: section for section in SECTIONS for name in section_settings(section)}
    # What is wrong with a package is said where its mechanism is used.
    with suppress(ExtensionError):
        if model := declared_by(mechanism):
            sections |= dict.fromkeys(model.model_fields, Agreement.section)
    return sections


@dataclass(frozen=True, slots=True)
class _TwoFiles(TomlFile):
    agreement: str = ""

    def place(self, setting: str, value: object = None) -> str:
        if self.sections.get(setting) != "agreement" or setting in NAMING:
            return TomlFile.place(self, setting, value)
        return TomlFile(self.agreement, self.sections).place(setting, value)


class PartyConfig:
    """One side of a training, as its file describes it.

    Paths are relative to ``folder``. ``agreement`` takes the place of the one in the sections, or
    named there. ``agreement_file`` is the file that holds the agreement, None where this side's own
    file does; ``signed`` says whether every side must have signed it.
    """

    def __init__(
        self,
        role: Role,
        folder: Path,
        sections: dict[str, Any],
        where: str,
        agreement: AgreementFile | None = None,
    ) -> None:
        self.role: Role = role
        self.side = ROLES[role]
        self.folder, self.where = folder, where
        section = sections.get("agreement", {})
        self._known_settings = _section_of_settings(section.get("mechanism"))
        self.syntax = held_by = TomlFile(where, self._known_settings)
        # Whether this side's own file says anything of what is agreed on.
        self.says_agreement = bool(section) or STUDY in sections
        self.agreement_file, self.signed = self._named_agreement(section, agreement)
        if self.agreement_file is not None:
            if agreement is None and STUDY in sections:
                raise ConfigError(
                    "study belongs in the file of the agreement",
                    where=f"{where}, [{STUDY}]",
                    hint="leave the section out here",
                )
            sections = self._with_agreement(sections, self.agreement_file)
            held_by = party_file(self.agreement_file.path)
        self._sections = sections
        # As it stands, for an agreement that is proposed with it.
        self.study_values: dict[str, Any] | None = sections.get(STUDY)
        self.data = self._section(DataSection)
        self.link = self._section(LinkSection)
        self.state = self._section(StateSection)
        self.output = self._section(OutputSection)
        self.privacy = self._section(PrivacySection)
        self.compute = self._section(ComputeSection)
        # Those of jobs that the file has; others are loaded when a job reads them.
        self.job_sections: dict[str, Checked] = {}
        for name in sections:
            if name not in (*SECTIONS, STUDY):
                self.section(_job_section(name))
        with rendering_errors_as(self.syntax):
            self.agreed = _agreed(sections.get("agreement", {}), held_by)
            self._check_role()
            self.side.require_link(self)
            self.study = self._read_study()
            self.normalisation = Normalisation.parse(self.data.normalise_ids)
            self._settings = self._resolved()

    @classmethod
    def read(cls, path: Path, agreement: AgreementFile | None = None) -> PartyConfig:
        """Reads a party's file; ``agreement`` takes the place of the one in it, or named there."""
        values = read_toml(path, "party's file", "taciturn init writes one for each side")
        return cls.from_values(values, path, agreement)

    @classmethod
    def from_values(
        cls, values: Mapping[str, Any], path: Path, agreement: AgreementFile | None = None
    ) -> PartyConfig:
        """The settings of a file whose values are read."""
        values = {**values}
        role = values.pop("role", None)
        outside = {key.replace("-", "_") for key, v in values.items() if not isinstance(v, dict)}
        if role is None and outside & Settings.model_fields.keys():
            raise ConfigError(
                "this is a file of settings, and not a party's file",
                where=str(path),
                hint=f"run taciturn train --config {path}; taciturn init writes a file for each "
                "party",
            )
        if role not in ("alice", "bob"):
            raise ConfigError(
                "the file has no role",
                where=f"{path}, role",
                hint='write role = "alice" (features only) or role = "bob" (the labels)',
            )
        known = (*SECTIONS, STUDY, *registry().sections)
        for name, section in values.items():
            if name not in known and name in JOBS_ELSEWHERE:
                absent = not_installed(f"the section [{name}]", JOBS_ELSEWHERE[name])
                raise absent.at(f"{path}, [{name}]")
            if name not in known or not isinstance(section, dict):
                raise ConfigError(
                    f"unknown section or setting {name}",
                    setting=name,
                    where=str(path),
                    hint=nearest(name, known),
                )
        config = cls(role, path.parent, values, str(path), agreement)
        require_no_overwrite(used_paths(config))
        return config

    def at(self, point: Point) -> PartyConfig:
        """The settings of one model of the study: with its values, and without the study."""
        written = self._sections.get("agreement", {})
        agreed = {hyphenated(key): value for key, value in written.items() if key not in NAMING}
        # How many rows a fold has is not agreed on.
        agreed.pop("rows", None)
        agreed |= {hyphenated(name): value for name, value in point.values.items()}
        sections = {**self._sections, "agreement": agreed}
        del sections[STUDY]
        with of_model(point):
            settings = PartyConfig(self.role, self.folder, sections, self.where)
        # By whatever file it was agreed on.
        settings.agreement_file, settings.signed = self.agreement_file, self.signed
        settings.syntax = self.syntax
        return settings

    @property
    def first(self) -> PartyConfig:
        """The settings of one model: these, or those of a study's first combination."""
        return self if self.study is None else self.at(self.study.points[0])

    def path(self, name: str) -> Path:
        """A path of the file, relative to its folder."""
        return self.folder / name

    def require_unused(self, option: str, path: Path | None, replaces: str = "") -> None:
        """Raise ``ConfigError`` if an output that an option names by default would overwrite.

        ``replaces`` is the setting whose file it is.
        """
        if path is not None:
            paths = (each for each in used_paths(self) if not each.setting == replaces != "")
            own = UsedPath(f"--{option}", path, PathUse.WRITTEN, option)
            require_no_overwrite((own, *paths))

    def table(self, rows: Path | str | None = None) -> TableSource:
        """This side's table; or other ``rows``: a file, or a SELECT statement for its database."""
        data = self.data
        if isinstance(rows, str) and is_select(rows):
            return self.source(None, rows, data.connection)
        if rows is not None:
            return self.source(Path(rows), None, None)
        return self.source(data.file and self.path(data.file), data.query, data.connection)

    def source(
        self, file: Path | str | None, query: str | None, connection: str | None
    ) -> TableSource:
        """A table of this side: a file, or a query of a database."""
        dialect = Dialect.from_settings(self.data)
        if query is None:
            return TableSource.at(Path(file or ""), dialect)
        with rendering_errors_as(self.syntax, "data"):
            require_connection(query, connection)
        return TableSource.from_query(query, Connection(connection or "", self.folder), dialect)

    @property
    def consent_file(self) -> Path:
        """The file that counts what the peers were given."""
        return self.path(self.privacy.consent or f"{self.role}.consent.sqlite")

    def settings(self) -> Settings:
        """The agreement's part as settings, with their defaults."""
        return self._settings

    @property
    def agreement_file_name(self) -> str:
        """Path of the agreement; empty if this side's file holds it."""
        return "" if self.agreement_file is None else self.agreement_file.path

    @property
    def alice_columns(self) -> int | None:
        """Number of Alice's prepared columns, if agreed."""
        columns: int | None = self.agreed.get("alice_columns")
        return columns

    @property
    def parties(self) -> dict[str, str]:
        """Each Alice's name with the fingerprint of her key; empty with one Alice."""
        return self.agreed.get("parties") or {}

    @property
    def peers(self) -> tuple[str, ...]:
        """The names of whom this side talks to: one, or at Bob all of several Alices."""
        return tuple(self.parties) if self.link.peer is None else (self.link.peer,)

    @property
    def peer(self) -> str:
        """The same in words."""
        return ", ".join(self.peers)

    def has_section(self, name: str) -> bool:
        """Whether this side's file has a section of that name."""
        return name in self._sections

    def beside(self) -> dict[str, Any]:
        """Agreed values that are no settings of a simulation."""
        return {name: value for name, value in self.agreed.items() if name not in ALSO_SIMULATED}

    def section(self, kind: type[S]) -> S:
        """The section of a job, as this side's file has it, or with its defaults.

        From then on the file's ``syntax`` knows the section's settings.
        """
        name = kind.section
        if name not in self.job_sections:
            self._known_settings.update(dict.fromkeys(section_settings(name), name))
            self.job_sections[name] = self._section(kind)
        section: Any = self.job_sections[name]
        return section  # type: ignore[no-any-return]  # of the kind that is asked for

    def _section(self, kind: type[S]) -> S:
        return kind.from_mapping(self._sections.get(kind.section, {}), syntax=self.syntax)

    def _resolved(self) -> Settings:
        common = {name: value for name, value in self.agreed.items() if name in ALSO_SIMULATED}
        limits = self.privacy.model_dump(include={"budget", "delta"})
        alices = {"parties": max(1, len(self.parties))}
        settings = Settings.from_mapping({**common, **limits, **alices})
        patient = self.agreed.get("patience") is not None
        if patient and settings.solver is None and "sgd" in supported_solvers(settings):
            # Only sgd stops early; who asks for that without naming a solver has it in mind.
            settings = settings.model_copy(update={"solver": "sgd"})
        settings = resolved(settings)
        # What one solver has and the other has not is said now, before a table is read.
        if settings.solver == "sgd":
            require_shared_work(self.compute.engine)
        # Whether there is such a mechanism here is said where the peer can be told.
        if settings.mechanism in MECHANISMS:
            require_used(settings)
        return settings

    def _read_study(self) -> Study | None:
        if self.study_values is None:
            return None
        study = Study.from_mapping(self.study_values, syntax=self.syntax)
        self._require_studied(study)
        return study

    def _require_studied(self, study: Study) -> None:
        """Refuse what would disclose a model to Alice, and what no study can judge or vary."""
        with rendering_errors_as(self.syntax, STUDY):
            study.require_mechanism(self.agreed["mechanism"])
        for name, words in (
            ("patience", "when a model of a study stops would tell Alice of labels"),
            ("share_metrics", "a study tells Alice of no model how good it is"),
            ("evaluate", "a study looks at no score before the last word has been said"),
        ):
            usual = self.agreed.get(name) in (None, "nothing", "end")
            require(usual, words, name, f"leave {{{name}}} out")
        require(
            study.folds or self.agreed["held_out"] is not None,
            "a study without folds judges its models by held-out rows, and there are none",
            "held_out",
            "raise {held_out}, or write folds = 3, say, in [study]",
        )
        require(
            study.epsilon is None or self.agreed["mechanism"] != "label-rr",
            "labels are flipped once, at one epsilon: flipping them for each model would pay for "
            "every one",
            "epsilon",
            "write {epsilon} once, in [agreement]",
            epsilon=1.0,
        )

    def _named_agreement(
        self, section: dict[str, Any], instead: AgreementFile | None
    ) -> tuple[AgreementFile | None, bool]:
        """The file that [agreement] names, if any, and whether it must be signed."""
        naming = {key: value for key, value in section.items() if key in NAMING}
        names = NamedAgreement.from_mapping(naming, syntax=self.syntax)
        with rendering_errors_as(self.syntax, "agreement"):
            require(
                names.file is not None or not names.signed,
                "only an agreement in a separate file can be signed",
                "signed",
                'name it: file = "agreement.toml"; taciturn agreement propose writes one',
            )
        beside = [hyphenated(key) for key in section if key not in NAMING] if names.file else []
        if beside:
            raise ConfigError(
                f"{beside[0]} stands in the file of the agreement, and not beside its name",
                where=f"{self.where}, [agreement] {beside[0]}",
                hint="leave only file and signed in this section",
            )
        if instead is not None or names.file is None:
            return instead, names.signed
        return AgreementFile.read(self.path(names.file)), names.signed

    def _with_agreement(self, sections: dict[str, Any], agreement: AgreementFile) -> dict[str, Any]:
        """The sections as if the agreement had stood in this side's file."""
        self._known_settings.update(_section_of_settings(agreement.agreement.get("mechanism")))
        self.syntax = _TwoFiles(self.where, self._known_settings, agreement=agreement.path)
        own = {name: section for name, section in sections.items() if name != STUDY}
        study = {} if agreement.study is None else {STUDY: dict(agreement.study)}
        return {**own, "agreement": dict(agreement.agreement), **study}

    def _check_role(self) -> None:
        self.side.require_file(self)
        for section in (self.data, self.output, self.privacy, *self.job_sections.values()):
            for name, declaration in declared(type(section), Settings).items():
                field, owner = type(section).model_fields.get(name), declaration.owner
                foreign = owner not in ("", self.role)
                if foreign and field is not None and getattr(section, name) != field.default:
                    raise ConfigError(
                        f"{hyphenated(name)} is for {owner.title()} alone to set",
                        setting=name,
                        hint=f"leave it out here; it belongs in {owner.title()}'s file",
                    )
        privacy, output, held_out = self.privacy, self.output, self.agreed["held_out"]
        require(
            privacy.accept_leak in (None, ACCEPTED_LEAK),
            "accept-leak is accepted in these words only",
            "accept_leak",
            "write {accept_leak}, or leave it out",
            accept_leak=ACCEPTED_LEAK,
        )
        require(
            privacy.accept_column_exposure in (None, ACCEPTED_EXPOSURE),
            "accept-column-exposure is accepted in these words only",
            "accept_column_exposure",
            "write {accept_column_exposure}, or leave it out",
            accept_column_exposure=ACCEPTED_EXPOSURE,
        )
        metrics = output.metrics or ""
        require(
            not metrics or metrics != output.prometheus,
            "the metrics file is JSON; the one for Prometheus is next to it, under the same name "
            "with the ending .prom",
            "metrics",
            "write {metrics}",
            metrics=f"{metrics.removesuffix('.prom')}.json",
        )
        for name in ("held_out_scores", "false_negative_cost"):
            require(
                held_out is not None or getattr(output, name) is None,
                "there are no held-out rows",
                name,
                "leave it out, or raise {held_out} on both sides",
            )
        require(
            output.threshold is None or output.false_negative_cost is None,
            "the threshold is given, so that no cost decides it",
            "false_negative_cost",
            "leave {threshold} or {false_negative_cost} out",
        )


def _agreed(section: dict[str, Any], syntax: TomlFile) -> dict[str, Any]:
    """What both sides agree on, with the defaults of a file, from the section that holds it."""
    names = [name for name in section_settings("agreement") if name not in NAMING]
    section = {key: value for key, value in section.items() if key not in NAMING}
    _refuse_what_is_not_agreed(section, syntax)
    given = named(collected(section, names), [*names, FIELD], syntax, "agreement")
    _refuse_for_simulations(given)
    # What belongs to one solver has a value once it is known which.
    defaults = {name: file_default("agreement", name) for name in names if name not in SGD_ONLY}
    agreed = {**{name: value for name, value in defaults.items() if value is not None}, **given}
    if agreed["held_out"] == 0 and not isinstance(agreed["held_out"], bool):
        agreed["held_out"] = None  # TOML has no word for none
    _check_values(agreed)
    _require_columns(given)
    return agreed


def _refuse_what_is_not_agreed(section: dict[str, Any], syntax: TomlFile) -> None:
    """Says of a setting that there is, and that no agreement holds, where it belongs."""
    elsewhere = declared(Settings)
    for key in section:
        name = key.replace("-", "_")
        declaration = elsewhere.get(name)
        if declaration is None or name in ALSO_SIMULATED or name in Agreement.model_fields:
            continue
        scope = declaration.scope
        place = f"it belongs in [{scope}]" if scope else "it is for simulations"
        reason = declaration.refused or f"is not part of the agreement: {place}"
        where = syntax.within("agreement").source
        raise ConfigError(f"{hyphenated(key)} {reason}", setting=name, where=where)


def _refuse_for_simulations(given: dict[str, Any]) -> None:
    require(
        given.get("scheme") != "clear",
        "clear hides nothing and is for simulations",
        "scheme",
        "use bfv or paillier",
    )
    require(
        given.get("noise") != "continuous",
        "continuous noise leaks through its last bits and is for simulations",
        "noise",
        "use discrete, or leave it out",
    )


def _check_values(agreed: dict[str, Any]) -> None:
    """Refuses wrong types and ranges now, before a table is read by them."""
    Pins.from_mapping({name: agreed[name] for name in Pins.model_fields if name in agreed})
    known = {name: value for name, value in agreed.items() if name in Agreement.model_fields}
    # What the scheme fills in, where the file does not say; the solver has its own check.
    checked = Agreement.from_mapping(
        {"key_bits": 0, "l2": 0.0, **known, "solver": Newton(passes=1)}
    )
    require(
        checked.patience is None or agreed.get("solver") != "newton",
        "newton does not stop early: its passes are few, and their number is fixed",
        "patience",
        "leave {patience} out",
    )
    require(
        checked.patience is None or checked.evaluate == "epoch",
        "patience needs an evaluation of the held-out rows after every epoch",
        "patience",
        "write {evaluate}, or leave {patience} out",
        evaluate="epoch",
    )
    require(
        checked.evaluate != "epoch" or checked.held_out is not None,
        "evaluation after each epoch needs held-out rows, and there are none",
        "evaluate",
        "raise {held_out}, or write {evaluate}",
        evaluate="end",
    )
    require(
        checked.share_metrics == "nothing" or checked.held_out is not None,
        "the metrics that Alice receives are those of held-out rows, and there are none",
        "share_metrics",
        "raise {held_out}, or leave {share_metrics} out",
    )
    require(
        checked.metrics_epsilon is None or checked.share_metrics == "quality",
        "metrics-epsilon is the price of metrics that Alice receives, and she receives none",
        "metrics_epsilon",
        "write {share_metrics}, or leave {metrics_epsilon} out",
        share_metrics="quality",
    )
    require(
        checked.metrics_epsilon is None or _is_a(checked.mechanism, PaidModel, unknown=True),
        f"metrics-epsilon protects held-out labels, and the model of {checked.mechanism} depends "
        "on every training label without noise: one label can change any number of rows",
        "metrics_epsilon",
        "use {mechanism}, add or mult; or leave {metrics_epsilon} out, at an infinite price",
        mechanism="label-rr",
    )


def _require_columns(given: dict[str, Any]) -> None:
    """Refuses a mechanism that is sized by Alice's columns where their number is not given."""
    name = given.get("mechanism", DEFAULT_MECHANISM)
    require(
        "alice_columns" in given or not _is_a(name, SizedByColumns, unknown=False),
        f"{name}'s sizes depend on how many columns Alice has, which both sides must know",
        "alice_columns",
        "write {alice_columns}, say: the number of her prepared columns",
        alice_columns=30,
    )


def _is_a(mechanism: str, kind: type, *, unknown: bool) -> bool:
    # Whether there is such a mechanism here is checked where the peer can be notified.
    with suppress(ConfigError):
        return issubclass(mechanism_class(mechanism), kind)
    return unknown
