"""``ServeJob``: scores on demand, at either side."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from taciturn.jobs.base import Job, RunContext
from taciturn.party.agreement_check import require_begun_in_time
from taciturn.party.applied_model import AppliedModel
from taciturn.party.config import PartyConfig
from taciturn_ops.serve.declaration import SERVING
from taciturn_ops.serve.side import ServeSide

if TYPE_CHECKING:
    from taciturn_ops.serve.http.app import ScoringApp


def serve(side: ServeSide[Any], context: RunContext) -> None:
    """Run a side of a service."""
    side.run_session(context)


@dataclass(frozen=True, slots=True)
class ServeJob(Job[None]):
    """Score rows of a model on demand until the process is stopped.

    ``host`` serves Bob's ASGI application and returns when the service is to end; None for an HTTP
    server at the address in his file.
    """

    model: Path
    host: Callable[[ScoringApp], None] | None = None
    purpose = SERVING
    tells_refusal = False
    run: ClassVar = staticmethod(serve)

    def prepare(self, config: PartyConfig) -> ServeSide[Any]:
        """Read the model, and open the rows and the budget."""
        require_begun_in_time(config)
        used = AppliedModel.read(config, self.model)
        with ExitStack() as opened:
            side = self._side(config, used, opened)
            side.resources = opened.pop_all()
        return side

    def _side(self, config: PartyConfig, used: AppliedModel, opened: ExitStack) -> ServeSide[Any]:
        # Each side loads its own programs only.
        if used.role == "alice":
            from taciturn_ops.serve.alice import FeatureSide

            return FeatureSide(config, used, opened)
        from taciturn_ops.serve.bob import LabelSide

        return LabelSide(config, used, opened, self.model, self.host)
