"""The address stays as it is from one start to the next, and is said where it cannot."""

from __future__ import annotations

import socket
import stat
from pathlib import Path

import pytest
from ops.tests.dashboard.clients import served

from taciturn.errors import ConfigError
from taciturn_ops.dashboard.dashboard_state import DashboardState
from taciturn_ops.dashboard.server import Address, open_server
from tests.expected import refused
from tests.test_two_machines import free_port


def opened(port: int | None, file: Path) -> tuple[Address, str]:
    """The address at which a server would be, and the remark; the port is free again."""
    server, remark = open_server(DashboardState("train"), port, file)
    server._socket.close()
    return server.address, remark


def test_the_same_command_serves_the_same_address(tmp_path):
    file = tmp_path / "state" / "watch.json"
    first, remark = opened(None, file)
    assert opened(None, file) == (first, remark) == (first, "")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert first.url in file.read_text()
    # A port that is asked for is kept from then on, under the same token.
    other, _ = opened(free_port(), file)
    assert other.token == first.token
    assert opened(None, file)[0] == other


def test_where_the_usual_port_is_taken_another_one_serves_this_once(tmp_path):
    file = tmp_path / "watch.json"
    first, _ = opened(None, file)
    with socket.create_server(("127.0.0.1", first.port)):
        second, remark = opened(None, file)
    assert second.port != first.port
    assert f"port {first.port}" in remark
    assert Address.kept(file) == first


def test_a_port_in_use_that_was_asked_for_is_an_error():
    with served(DashboardState("train")) as server:
        port = server.address.port
        with refused(ConfigError, setting="watch_port", names=port):
            open_server(DashboardState("train"), port, None)


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"address": 7}', '{"address": "http://a/"}'])
def test_a_file_that_holds_no_address_is_replaced(tmp_path, content):
    file = tmp_path / "watch.json"
    file.write_text(content)
    file.chmod(0o600)
    assert Address.kept(file) is None
    address, _ = opened(None, file)
    assert Address.kept(file) == address


def test_an_address_that_others_could_read_is_not_used_again(tmp_path):
    file = tmp_path / "watch.json"
    first, _ = opened(None, file)
    file.chmod(0o644)
    second, _ = opened(None, file)
    assert second.token != first.token
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
