"""The insurer and the phone company: the page's commands, on fewer rows."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "insurer-and-telco"
PAGE = (EXAMPLE / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow  # ten seconds; tests/party/test_families.py trains the same models
def test_the_pages_commands_run(tmp_path):
    commands = "".join(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)).splitlines()
    assert len(commands) == 4
    for command in commands:
        program, *words = shlex.split(command)
        if program == "python":
            whole = [sys.executable, str(EXAMPLE / words[0]), "--rows", "3000"]
        else:
            whole = [sys.executable, "-m", "taciturn", *words, "--scheme", "clear"]
        ended = subprocess.run(whole, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, (command, ended.stderr)
    assert (tmp_path / "frequency.html").read_text().startswith("<!")
