"""``open_server``: a server at the address that was kept, or at a new one."""

from __future__ import annotations

import socket
from pathlib import Path

from taciturn.dashboard.address import Address, new_token
from taciturn.dashboard.board import Board
from taciturn.dashboard.server import Server, listening, listening_on
from taciturn.errors import OutputError
from taciturn.files import private_folder, reporting_write_errors


def open_server(board: Board, port: int | None, file: Path | None) -> tuple[Server, str]:
    """A server that is not yet serving, and a remark on its address; empty where there is none.

    Without a ``port``, the one kept in ``file`` is used, or any. A port that cannot be had is a
    ConfigError.
    """
    kept = None if file is None else Address.kept(file)
    remark = ""
    if port is not None:
        taken = listening_on(port)
    else:
        taken, remark = _usual(kept)
    # Whoever has taken the usual port may be asked for the page there, and learn its token.
    token = new_token() if kept is None or remark else kept.token
    server = Server(board, taken, token)
    # An address that serves this once only must not replace the usual one.
    if file is not None and not remark and server.address != kept:
        try:
            with reporting_write_errors(file, "address of the live page"):
                private_folder(file.parent)
            server.address.keep(file)
        except OutputError:
            taken.close()
            raise
    return server, remark


def _usual(kept: Address | None) -> tuple[socket.socket, str]:
    if kept is None:
        return listening(0), ""
    try:
        return listening(kept.port), ""
    except OSError:
        remark = f"port {kept.port}, where the live page was before, is in use: another one serves"
        return listening(0), remark
