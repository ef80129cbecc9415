"""Checks of a machine: platform, hardware, packages, extensions, schemes and datasets.

A scheme makes a fresh key of real size, and one product there and back. No dataset is fetched.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import socket
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import numpy as np

from taciturn import extensions
from taciturn.arrays import IntArray
from taciturn.crypto import group
from taciturn.crypto.base import Capacity, Scheme
from taciturn.crypto.calibration_run import KeyPair
from taciturn.crypto.registry import SCHEMES, scheme
from taciturn.data.datasets import added_dataset, dataset_names, load
from taciturn.errors import ConfigError, DataError, ExtensionError
from taciturn.extensions import Extension
from taciturn.extras import EXTRAS, MODULES, explained, install_hint, is_installed
from taciturn.parallel import usable_cores
from taciturn.privacy.registry import mechanism_class
from taciturn.results.cost_preview import Outlook, PastExposure
from taciturn.rng import Entropy, SystemEntropy
from taciturn_ops.doctor.result import Finding

_CPU, _MEMORY = Path("/proc/cpuinfo"), Path("/proc/meminfo")
# What an instruction is for, in the program's own use of it.
_INSTRUCTIONS = {"avx2": "linear algebra", "aes": "TLS"}
_LITTLE_MEMORY = 1 << 30
_OLDEST_YEAR, _COARSE = 2025, 1e-3


def check_machine() -> list[Finding]:
    """Findings about the machine that need no file of the user's."""
    return [
        check_platform(sys.platform, platform.machine()),
        check_processor(_text(_CPU), usable_cores()),
        check_memory(_text(_MEMORY)),
        check_clock(datetime.now(UTC), time.get_clock_info("perf_counter").resolution),
        check_loopback(),
    ]


def check_platform(system: str, machine: str) -> Finding:
    """Whether the platform is one that the tests run on."""
    name = f"{system} on {machine}"
    if (system, machine) == ("linux", "x86_64"):
        return Finding.ok("platform", f"{name}: a tested platform")
    if system == "win32":
        return Finding.problem(
            "platform",
            f"{name}: taciturn party needs file locks that Windows does not have (fcntl)",
            "use Linux, or a Linux container; simulations are not tested here",
        )
    return Finding.warning(
        "platform", f"{name}: not tested", "run the tests (make test), or use Linux on x86_64"
    )


def check_processor(cpuinfo: str, cores: int) -> Finding:
    """Number of cores, and instructions that make work faster."""
    several = f"{cores} {'core' if cores == 1 else 'cores'}"
    match = re.search(r"^(?:flags|Features)\s*:(.*)$", cpuinfo, re.MULTILINE)
    if match is None:
        return Finding.ok("processor", f"{several}; instruction set unknown")
    has = match[1].split()
    lacks = [f"{name} ({use})" for name, use in _INSTRUCTIONS.items() if name not in has]
    if lacks:
        return Finding.warning(
            "processor",
            f"{several}, without {', '.join(lacks)}",
            "everything works, slower; a virtual machine may be hiding them",
        )
    return Finding.ok("processor", f"{several}, with {', '.join(_INSTRUCTIONS)}")


def check_memory(meminfo: str) -> Finding:
    r"""Total and available memory."""
    sizes = dict(re.findall(r"^(MemTotal|MemAvailable):\s+(\d+) kB", meminfo, re.MULTILINE))
    if len(sizes) < 2:
        return Finding.ok("memory", "unknown")
    total, free = (int(sizes[name]) << 10 for name in ("MemTotal", "MemAvailable"))
    said = f"{free / 2**30:.1f} of {total / 2**30:.1f} GiB free"
    if free < _LITTLE_MEMORY:
        return Finding.warning("memory", said, "end other programs; small tables need less")
    return Finding.ok("memory", said)


def check_clock(now: datetime, resolution: float) -> Finding:
    """Whether the date can be right; no other clock is asked."""
    said = f"{now:%Y-%m-%d %H:%M} UTC"
    if now.year < _OLDEST_YEAR:
        return Finding.problem(
            "clock",
            f"{said}, which is before this program was written",
            "set the clock: certificates are checked against it",
        )
    if resolution > _COARSE:
        return Finding.warning(
            "clock", f"{said}; resolution {resolution:g} s", "do not rely on short timings"
        )
    return Finding.ok(
        "clock", f"{said}, not compared with another clock; resolution {resolution:g} s"
    )


def check_loopback() -> Finding:
    """Open a port of this machine and call it."""
    try:
        with (
            socket.create_server(("127.0.0.1", 0)) as server,
            socket.create_connection(server.getsockname(), timeout=5),
        ):
            return Finding.ok("ports", "a local port can be opened and connected to")
    except OSError as problem:
        return Finding.problem(
            "ports",
            f"no port can be opened on 127.0.0.1: {problem.strerror or problem}",
            "check the firewall and the limits of the container",
        )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


OLDEST_PYTHON = (3, 11)
TESTED_PYTHONS = ((3, 11), (3, 12), (3, 13))
# As in pyproject.toml, which an installed program does not have beside it; a test compares them.
NEEDED: Mapping[str, str] = {
    "cryptography": "44",
    "gmpy2": "2.2",
    "grpcio": "1.70",
    "numpy": "2.0",
    "polars": "1.20",
    "pydantic": "2.10",
    "rbcl": "1.1",
    "rich": "13.9",
    "tenseal": "0.3.16",
    "threadpoolctl": "3.5",
    "tomlkit": "0.13",
    "typer": "0.29",
    "zstandard": "0.23",
}
# As the program itself loads them: rbcl without a copy in the folder for temporary files.
_LOADERS: Mapping[str, Callable[[str], object]] = {
    "rbcl": lambda name: group.library(),
    # Loading it would report its use to others, before anything has turned that off.
    "mlflow-skinny": importlib.util.find_spec,
}

_SHOWN = ("tenseal", "gmpy2", "grpcio", "rbcl", "cryptography", "polars", "numpy")


def check_python(version: tuple[int, ...] = sys.version_info[:3]) -> Finding:
    """Whether Python is new enough."""
    name = ".".join(str(part) for part in version)
    if version < OLDEST_PYTHON:
        return Finding.problem("python", f"Python {name}", "use Python 3.11 or newer")
    if version[:2] not in TESTED_PYTHONS:
        newest = ".".join(str(part) for part in TESTED_PYTHONS[-1])
        return Finding.warning(
            "python",
            f"Python {name} is newer than the tested versions",
            f"if in doubt use {newest}",
        )
    return Finding.ok("python", f"Python {name}")


def check_packages(needed: Mapping[str, str] = NEEDED) -> list[Finding]:
    """One finding for all packages that are fit, and one for each that is not."""
    wrong = [finding for name, least in needed.items() if (finding := _check_package(name, least))]
    bad = {finding.summary.split()[0] for finding in wrong}
    fit = [name for name in needed if name not in bad]
    shown = ", ".join(f"{name} {metadata.version(name)}" for name in _SHOWN if name in fit)
    return [
        Finding.ok("packages", f"{len(fit)} of {len(needed)} can be imported, among them {shown}"),
        *wrong,
    ]


def check_extras(extras: Mapping[str, Mapping[str, str]] = EXTRAS) -> list[Finding]:
    """One finding for each extra: complete, or what is absent and how to get it."""
    return [_check_extra(extra, needed) for extra, needed in extras.items()]


def _check_extra(extra: str, needed: Mapping[str, str]) -> Finding:
    wrong = [finding for name, least in needed.items() if (finding := _check_package(name, least))]
    if not wrong:
        return Finding.ok("packages", f"extra {extra}: {', '.join(needed)}")
    reasons = "; ".join(finding.summary for finding in wrong)
    # A party needs no extra, so that the absence of one is no fault.
    return Finding.warning("packages", f"extra {extra}: {reasons}", install_hint(extra))


def _check_package(name: str, least: str) -> Finding | None:
    install = f"python -m pip install '{name}>={least}'"
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Finding.problem("packages", f"{name} is not installed", install)
    try:
        _LOADERS.get(name, importlib.import_module)(MODULES.get(name, name.replace("-", "_")))
    except Exception as problem:  # a broken wheel may raise anything while it loads
        return Finding.problem(
            "packages",
            f"{name} {version} does not load: {type(problem).__name__}",
            f"python -m pip install --force-reinstall '{name}>={least}'",
        )
    if numbers(version) < numbers(least):
        return Finding.problem("packages", f"{name} {version} is older than {least}", install)
    return None


def numbers(version: str) -> tuple[int, ...]:
    """Release part of a version, to compare by.

    >>> numbers("2.10.1rc2") > numbers("2.9"), numbers("44.0.0") >= numbers("44")
    (True, True)
    """
    match = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def check_extensions() -> list[Finding]:
    """One finding for each extension; none where no package adds any."""
    return [
        *_check_group(extensions.MECHANISMS, mechanism_class),
        # Without the audit there is no such function, which is no fault.
        *_check_group(extensions.ATTACKS, lambda name: extensions.function("added_attack")(name)),
    ]


def _check_group(group: str, load: Callable[[str], object]) -> list[Finding]:
    return [_extension_finding(added, load) for added in extensions.installed(group)]


def _extension_finding(added: Extension, load: Callable[[str], object]) -> Finding:
    words = f"the {added.kind} {added.name} of {added.distribution}"
    try:
        with explained():
            load(added.name)
    except ExtensionError as problem:
        return Finding.from_error("extensions", problem)
    except ConfigError as problem:
        return Finding.warning(
            "extensions", f"{words} cannot be loaded: {problem.message}", problem.hint
        )
    return Finding.ok("extensions", f"{words} loads")


# Half a batch of the paper's smallest set: enough to show that all parts work.
_COLUMNS, _ROWS = 6, 8
_CAPACITY = Capacity(vector_bits=20, matrix_bits=18, terms=_ROWS)


def check_schemes() -> list[Finding]:
    """One finding per scheme."""
    return [check_scheme(scheme(name)) for name in SCHEMES]


def check_scheme(scheme: Scheme) -> Finding:
    """Make a key, encrypt, multiply, decrypt, and compare with the product in clear."""
    bits, entropy = scheme.key_bits[0], SystemEntropy()
    matrix = _integers(_COLUMNS * _ROWS, _CAPACITY.matrix_bits, entropy).reshape(_COLUMNS, _ROWS)
    vector = _integers(_ROWS, _CAPACITY.vector_bits, entropy)
    start = time.perf_counter()
    try:
        pair = KeyPair.generate(scheme, bits, _CAPACITY, entropy)
        made = time.perf_counter()
        trial = pair.calibrate(matrix, vector, entropy)
    except Exception as problem:  # a library that is broken may raise anything
        return _broken(scheme, f"it raises {type(problem).__name__}")
    if trial.error:
        return _broken(scheme, "it decrypts to a wrong product")
    kind = f" {bits}" if scheme.protects else ", no encryption"
    product = trial.seconds + trial.ahead
    return Finding.ok(
        "schemes",
        f"{scheme.name}{kind}: key in {_time(made - start)}, product in {_time(product)}",
    )


def _integers(count: int, bits: int, entropy: Entropy) -> IntArray:
    drawn = entropy.integers(1 << (bits + 1), count).astype(np.int64)
    return drawn - (1 << bits) + 1 - (drawn > (1 << bits))


def _broken(scheme: Scheme, why: str) -> Finding:
    return Finding.problem(
        "schemes",
        f"{scheme.name} does not work here: {why}",
        "reinstall its package; do not train with this scheme until it works",
    )


def _time(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"


def check_datasets() -> list[Finding]:
    """One finding per dataset, and one where TACITURN_DATA names no folder. Nothing is fetched."""
    named = os.environ.get("TACITURN_DATA")
    nowhere = Finding.warning(
        "datasets", f"TACITURN_DATA is {named}, which is not a folder", "name a folder, or unset it"
    )
    findings = [] if not named or Path(named).is_dir() else [nowhere]
    return [*findings, *(_check_dataset(name) for name in dataset_names())]


def _check_dataset(name: str) -> Finding:
    added = added_dataset(name)
    if added is None:
        if not is_installed("scikit-learn"):
            return Finding.warning(
                "datasets",
                f"{name}: comes with scikit-learn, which is not installed",
                f"{install_hint('audit')}; own data does not need it",
            )
        return Finding.ok("datasets", f"{name}: comes with scikit-learn")
    file = added.locate()
    if file is None:
        wanted = added.files[0]
        return Finding.warning(
            "datasets",
            f"{name}: not found; a training with it would download it from OpenML",
            f"put {wanted} into {added.cache}, or set TACITURN_DATA to its folder; "
            "own data does not need it",
        )
    try:
        rows = load(name).rows
    except DataError as problem:
        return Finding.from_error("datasets", problem)
    return Finding.ok("datasets", f"{name}: {file}, {rows:,} rows, digest as known")


def run_checks(
    config: Path | None,
    announce: Callable[[str], None],
    report: Callable[[Outlook | PastExposure], None] = lambda part: None,
) -> list[Finding]:
    """All findings, in the order in which they are shown; without a file, the machine's alone.

    With a file, only what a party needs is checked: no extra, no dataset. ``report`` receives the
    cost of its training, and past sessions that exposed Alice's columns, where they can be known.
    """
    announce("packages")
    findings = [check_python(), *check_packages()]
    findings += [*check_extensions(), *([] if config else check_extras())]
    announce("machine")
    findings += check_machine()
    if config is not None:
        announce(str(config))
        return [*findings, *_party(config, report)]
    announce("schemes")
    findings += check_schemes()
    announce("datasets")
    return [*findings, *check_datasets()]


def _party(config: Path, report: Callable[[Outlook | PastExposure], None]) -> list[Finding]:
    try:
        # Imported here: where gRPC or file locks are missing, the rest is still told.
        from taciturn_ops.doctor.party import check_party
    except ImportError as problem:
        return [
            Finding.problem(
                "config",
                f"a party cannot run here: {type(problem).__name__} of {problem.name}",
                "see the findings on packages and the platform",
            )
        ]
    return check_party(config, report)
