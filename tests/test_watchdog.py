"""What a service manager hears of a process, and that one without memory ends."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from taciturn.cli.console import ALIVE, Watchdog
from tests.waiting import HANG


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[tuple[str, socket.socket]]:
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
        link.bind(address)
        link.settimeout(HANG)
        yield address, link


def heard(link: socket.socket) -> int:
    """How many messages wait."""
    count = 0
    link.setblocking(False)
    try:
        while True:
            assert link.recv(64) == ALIVE
            count += 1
    except BlockingIOError:
        link.settimeout(HANG)
        return count


def test_a_main_thread_that_has_used_no_processor_time_is_not_called_alive(manager):
    address, link = manager
    used = [1.0]
    watchdog = Watchdog(address, lambda: used[0])
    watchdog.look()
    watchdog.look()
    assert heard(link) == 1
    used[0] = 1.5
    watchdog.look()
    assert heard(link) == 1


def test_without_a_manager_nothing_is_said_or_wrong(tmp_path):
    Watchdog("").look()
    Watchdog(str(tmp_path / "gone")).look()


STANDING = """
import sys, threading
from taciturn.cli import console
console.BEAT_SECONDS = 0.05
with console.progress_bar("it"):
    for line in sys.stdin:
        sum(range(2_000_000))
        print(flush=True)
        if line == "stand\\n":
            threading.Event().wait()
"""


def test_a_process_that_works_is_heard_and_one_that_stands_is_not(manager):
    address, link = manager
    with subprocess.Popen(
        [sys.executable, "-c", STANDING],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NOTIFY_SOCKET": address},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            for line in ("work\n", "work\n", "stand\n"):
                process.stdin.write(line)
                process.stdin.flush()
                process.stdout.readline()
                assert link.recv(64) == ALIVE
            # The last thing that it did may be heard still; a line a beat says that it is there.
            for _ in range(5):
                process.stderr.readline()
            heard(link)
            for _ in range(10):
                process.stderr.readline()
            assert heard(link) == 0
        finally:
            process.kill()


OUT_OF_MEMORY = """
import sys, threading, types
from taciturn import __main__ as program
sys.modules["grpc"] = types.ModuleType("grpc")
def fail(*args, **kwargs):
    raise MemoryError
program.overview = program._complain = fail
threading.Thread(target=threading.Event().wait).start()
program.main()
"""


def test_a_process_without_memory_for_its_last_words_ends_all_the_same():
    """A thread of gRPC's keeps the interpreter; there is not even memory for the message."""
    done = subprocess.run(
        [sys.executable, "-c", OUT_OF_MEMORY], capture_output=True, timeout=HANG, check=False
    )
    assert done.returncode == 1
