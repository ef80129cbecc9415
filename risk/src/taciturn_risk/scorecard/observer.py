"""The observer ``model-page``: Bob's page of a model after its training (entry point)."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from taciturn.extras import EXTRAS, install_hint, is_installed
from taciturn.model.scores_file import scores_path
from taciturn.party.config import PartyConfig
from taciturn.party.telemetry import Standing


@dataclass(frozen=True, slots=True)
class ModelPage:
    """Observer of Bob's training: writes the model's page once it is done.

    A process of its own makes the page: this one loads a party's side of a training, and nothing
    that draws.
    """

    page: Path
    scores: Path

    @classmethod
    def from_config(cls, config: PartyConfig) -> ModelPage | None:
        """Observer of a training at Bob whose settings ask for the page; None of another run.

        Of a study one of its models is taken into use first.
        """
        if config.role != "bob" or config.output.report == "" or config.study is not None:
            return None
        model = config.path(config.output.model)
        return cls(config.path(config.output.report_file), scores_path(model))

    def begin(self) -> None:
        """Nothing: the page is made of the finished model."""

    def write(self, snapshot: Standing) -> None:
        """Nothing: the page is made of the finished model."""

    def finish(self, file: Path) -> str:
        """Write the page, where Bob has scores; a failure is only a remark."""
        problem = ""
        if not self.scores.exists():
            problem = "without held-out rows Bob has no scores of this model"
        elif not all(map(is_installed, EXTRAS["audit"])):
            problem = f"packages for reports are not installed; {install_hint('audit')}"
        else:
            # Not from the folder that it is run in, which may hold anything.
            command = [sys.executable, "-P", "-m", "taciturn", "model", "report", str(file)]
            ended = subprocess.run(  # noqa: S603 - this program, and paths that are its own
                [*command, "--out", str(self.page), "--json"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
            if ended.returncode:
                problem = ended.stderr.partition("\n")[0].removeprefix("error: ")
        if problem:
            return f"the model's page was not made: {problem}"
        return f"the model's page: {self.page}"
