"""Addresses of databases and SELECT statements, told apart from names of files."""

from __future__ import annotations

import re

SQLITE, POSTGRES = "sqlite:", ("postgresql:", "postgres:")
ADDRESSES = (SQLITE, *POSTGRES)
# Where an address is kept that may hold a password.
VARIABLE, FILE = "env:", "file:"
_SELECT = re.compile(r"\s*(select|with)\s", re.IGNORECASE)


def is_select(text: str) -> bool:
    """Whether a text is a SELECT statement rather than the name of a file.

    >>> is_select("select * from customers"), is_select("selected.csv")
    (True, False)
    """
    return _SELECT.match(text) is not None


def is_address(text: str) -> bool:
    """Whether a text is the address of a database, which is no name of a file.

    >>> is_address("postgresql+psycopg://me@db/crm"), is_address("sqlite:crm.db")
    (True, True)
    >>> is_address("crm.csv"), is_address("env:CRM")
    (False, True)
    """
    return text.startswith((*ADDRESSES, VARIABLE, FILE)) or "://" in text
