"""From the settings that a person asked for to the terms that both parties share, with defaults."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from taciturn.crypto.base import Scheme
from taciturn.crypto.registry import scheme
from taciturn.errors import BudgetExceeded, ConfigError
from taciturn.privacy.base import EncryptedMechanism, Mechanism
from taciturn.privacy.prices import price
from taciturn.privacy.registry import (
    MECHANISMS,
    OURS,
    AcceptedSettings,
    accepted_settings,
    called,
    choice_of,
    mechanism,
    mechanism_class,
    require_family_support,
)
from taciturn.privacy.solvers import require_solver
from taciturn.protocol.terms import Terms
from taciturn.setting_syntax import Hint, hyphenated
from taciturn.settings.agreement import ALSO_SIMULATED, Agreement
from taciturn.settings.mechanism_settings import FIELD, completed
from taciturn.settings.schema import SOLVERS, Newton, Protection, Settings, Sgd, Solver

# Settings of the protection beside the mechanism; a mechanism takes some of them.
AGREED = tuple(name for name in Protection.model_fields if name not in ("mechanism", FIELD))
# L_RR is another way to say the size of the subset.
PROTECTION = (*AGREED, "l_rr")


def agree(
    settings: Settings,
    columns: int,
    rows: int,
    chosen: Scheme | None = None,
    parties: Mapping[str, str] | None = None,
    beside: Mapping[str, object] | None = None,
) -> Terms:
    """The terms of a training: the public part of resolved settings.

    ``chosen`` replaces the scheme that the settings name. ``parties`` has the fingerprint of each
    Alice's key, and ``beside`` what else two sides agree on. Raises ``ConfigError`` for settings
    that do not fit together, and ``BudgetExceeded`` where the budget does not pay for a single
    release.
    """
    if parties or settings.parties > 1:
        _require_several(settings, mechanism_class(settings.mechanism))
    require_family_support(settings.mechanism, settings.family)
    # Before the sizes of batches, which newton does not have.
    require_solver(settings)
    require_used(settings)
    settings = with_row_defaults(settings, rows)
    filled = _protection(settings, accepted_settings(settings), columns, rows)
    common = Agreement.model_fields.keys() & ALSO_SIMULATED
    shared = {name: getattr(settings, name) for name in common}
    shared["solver"] = _solver(settings)
    shared["intercept"] = bool(settings.intercept)
    shared["parties"] = None if parties is None else {**parties}
    # Made once without its encryption, to ask the mechanism whether it has any.
    shared |= {**filled, **(beside or {})}
    draft = Agreement.from_mapping({**shared, "scheme": "clear", "key_bits": 0})
    method = mechanism(draft)
    if settings.budget is not None:
        _require_budget(settings, settings.budget, price(method.event).label)
    if not isinstance(method, EncryptedMechanism):
        return Terms(draft, scheme("clear"))
    chosen = chosen or scheme(settings.scheme)
    final = {"scheme": settings.scheme, "key_bits": _key_bits(settings, chosen)}
    terms = Terms(draft.model_copy(update=final), chosen)
    # Once more with it: a mechanism may refuse a scheme.
    mechanism(terms.agreement)
    return terms


def with_row_defaults(settings: Settings, rows: int) -> Settings:
    """The settings with those defaults that follow from the number of training rows."""
    solver = SOLVERS[settings.solver or Sgd.name]
    defaults: dict[str, object] = {"l2": solver.default_l2(rows)}
    if solver is Newton:
        defaults |= mechanism_class(settings.mechanism).row_defaults(settings, rows)
    absent = {name: value for name, value in defaults.items() if getattr(settings, name) is None}
    return settings.model_copy(update=absent)


def require_used(settings: Settings) -> None:
    """Refuses a setting that was given and that the mechanism does not take."""
    takes = accepted_settings(settings).names
    for name in PROTECTION:
        if getattr(settings, name) is not None and name not in takes:
            users = ", ".join(known for known in OURS if name in MECHANISMS[known].takes)
            raise ConfigError(
                f"{settings.mechanism} does not use {hyphenated(name)}",
                setting=name,
                hint=Hint(f"leave {{{name}}} out, or use a mechanism that takes it: {users}"),
            )


def _protection(
    settings: Settings, used: AcceptedSettings, columns: int, rows: int
) -> dict[str, Any]:
    filled: dict[str, Any] = dict.fromkeys(AGREED)
    for name in AGREED:
        # What the mechanism does not take is agreed on as absent.
        if name in used.names:
            given = getattr(settings, name)
            filled[name] = used.defaults.get(name) if given is None else given
    filled[FIELD] = completed(settings.mechanism, settings.mechanism_settings)
    chosen = mechanism_class(settings.mechanism)
    return {**filled, **chosen.derived(settings, filled, columns, rows)}


def _solver(settings: Settings) -> Solver:
    if settings.solver == Newton.name:
        return Newton.from_mapping({"passes": settings.passes})
    return Sgd.from_mapping({name: getattr(settings, name) for name in Sgd.model_fields})


def _require_several(settings: Settings, method: type[Mechanism]) -> None:
    if method.most_alices == 1:
        raise ConfigError(
            f"{called(method.name)} supports one Alice only",
            setting="parties",
            hint=Hint(
                "leave {parties} out, or {0}",
                choice_of(settings.family, lambda other: other.most_alices > 1),
            ),
        )
    if (
        settings.reveal_epsilon is not None
        and "reveal_epsilon" in accepted_settings(settings).names
    ):
        raise ConfigError(
            "reveal-epsilon has one Alice: how far a label moves the weights is proven for a "
            "single table of hers",
            setting="reveal_epsilon",
            hint=Hint("leave {reveal_epsilon} out, or {parties}"),
        )


def _require_budget(settings: Settings, budget: float, cost: float) -> None:
    if cost <= budget:
        return
    if math.isinf(cost):
        variant = f" {settings.variant}" if settings.variant == "one-sided" else ""
        raise BudgetExceeded(
            f"one release of {settings.mechanism}{variant} has no finite price: no budget is "
            "possible with it",
            setting="budget",
            hint=Hint(
                "use add, or mult with {variant}; or leave {budget} out",
                variant=("printed", "mean-one"),
            ),
        )
    raise BudgetExceeded(
        f"one release of {settings.mechanism} costs a label epsilon of {cost:g}, "
        f"and the budget is {budget:g}",
        setting="budget",
        hint="use a mechanism or an epsilon that costs less, or raise the budget",
    )


def _key_bits(settings: Settings, chosen: Scheme) -> int:
    bits = chosen.key_bits[0] if settings.key_bits is None else settings.key_bits
    if bits not in chosen.key_bits:
        offered = " or ".join(str(size) for size in chosen.key_bits)
        raise ConfigError(
            f"{chosen.name} has no keys of {bits} bits", setting="key_bits", hint=f"use {offered}"
        )
    return bits
