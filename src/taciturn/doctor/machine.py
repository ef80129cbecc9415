"""The machine: platform, processor, memory, clock, and whether it opens a port to itself."""

from __future__ import annotations

import platform
import re
import socket
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from taciturn.parallel import usable_cores
from taciturn.results.doctor import Finding

_CPU, _MEMORY = Path("/proc/cpuinfo"), Path("/proc/meminfo")
# What an instruction is for, in the program's own use of it.
_INSTRUCTIONS = {"avx2": "linear algebra", "aes": "TLS"}
_LITTLE_MEMORY = 1 << 30
_OLDEST_YEAR, _COARSE = 2025, 1e-3


def look_at_machine() -> list[Finding]:
    """Everything about the machine that needs no file of the user's."""
    return [
        look_at_platform(sys.platform, platform.machine()),
        look_at_processor(_text(_CPU), usable_cores()),
        look_at_memory(_text(_MEMORY)),
        look_at_clock(datetime.now(UTC), time.get_clock_info("perf_counter").resolution),
        look_at_loopback(),
    ]


def look_at_platform(system: str, machine: str) -> Finding:
    """Whether the tests are run on such a platform.

    >>> look_at_platform("linux", "x86_64").level.value
    'ok'
    """
    name = f"{system} on {machine}"
    if (system, machine) == ("linux", "x86_64"):
        return Finding.ok("platform", f"{name}: where the tests run")
    if system == "win32":
        return Finding.problem(
            "platform",
            f"{name}: taciturn party needs file locks that Windows does not have (fcntl)",
            "use Linux, or a Linux container; simulations are not tested here",
        )
    return Finding.warning(
        "platform", f"{name}: not tested", "run the tests (make test), or use Linux on x86_64"
    )


def look_at_processor(cpuinfo: str, cores: int) -> Finding:
    """Cores, and instructions that make work quicker.

    >>> look_at_processor("flags : sse aes avx2", 4).summary
    '4 cores, with avx2, aes'
    """
    several = f"{cores} {'core' if cores == 1 else 'cores'}"
    match = re.search(r"^(?:flags|Features)\s*:(.*)$", cpuinfo, re.MULTILINE)
    if match is None:
        return Finding.ok("processor", f"{several}; its instructions are not known here")
    has = match[1].split()
    lacks = [f"{name} ({use})" for name, use in _INSTRUCTIONS.items() if name not in has]
    if lacks:
        return Finding.warning(
            "processor",
            f"{several}, without {', '.join(lacks)}",
            "everything works, slower; a virtual machine may be hiding them",
        )
    return Finding.ok("processor", f"{several}, with {', '.join(_INSTRUCTIONS)}")


def look_at_memory(meminfo: str) -> Finding:
    r"""How much there is, and is free.

    >>> look_at_memory("MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n").summary
    '4.0 of 8.0 GiB free'
    """
    sizes = dict(re.findall(r"^(MemTotal|MemAvailable):\s+(\d+) kB", meminfo, re.MULTILINE))
    if len(sizes) < 2:
        return Finding.ok("memory", "not known here")
    total, free = (int(sizes[name]) << 10 for name in ("MemTotal", "MemAvailable"))
    said = f"{free / 2**30:.1f} of {total / 2**30:.1f} GiB free"
    if free < _LITTLE_MEMORY:
        return Finding.warning("memory", said, "end other programs; small tables need less")
    return Finding.ok("memory", said)


def look_at_clock(now: datetime, resolution: float) -> Finding:
    """Whether the date can be right; no other clock is asked.

    >>> look_at_clock(datetime(1970, 1, 2, tzinfo=UTC), 1e-9).level.value
    'problem'
    """
    said = f"{now:%Y-%m-%d %H:%M} UTC"
    if now.year < _OLDEST_YEAR:
        return Finding.problem(
            "clock",
            f"{said}, which is before this program was written",
            "set the clock: certificates are checked against it",
        )
    if resolution > _COARSE:
        return Finding.warning(
            "clock", f"{said}; it ticks every {resolution:g} s", "do not rely on short timings"
        )
    return Finding.ok("clock", f"{said}, compared with no other; it ticks every {resolution:g} s")


def look_at_loopback() -> Finding:
    """Opens a port of this machine and calls it."""
    try:
        with (
            socket.create_server(("127.0.0.1", 0)) as server,
            socket.create_connection(server.getsockname(), timeout=5),
        ):
            return Finding.ok("ports", "a port can be opened and called on this machine")
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
