"""From what a person asked for to what both parties share: defaults, and what is not used."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from taciturn.crypto.base import Scheme
from taciturn.crypto.registry import scheme
from taciturn.errors import BudgetExceeded, ConfigError
from taciturn.privacy.base import Mechanism
from taciturn.privacy.prices import price
from taciturn.privacy.registry import (
    AcceptedSettings,
    accepted_settings,
    mechanism,
    mechanism_class,
)
from taciturn.protocol.terms import Terms
from taciturn.setting_syntax import Hint
from taciturn.settings.agreement import ALSO_SIMULATED, Agreement
from taciturn.settings.removed import removed_batches
from taciturn.settings.schema import Protection, Settings
from taciturn.settings.solver import Newton, Sgd, Solver

# Settings of the protection beside the mechanism; a mechanism takes some of them.
AGREED = tuple(name for name in Protection.model_fields if name != "mechanism")
# L_RR is another way to say the size of the subset.
PROTECTION = (*AGREED, "l_rr")
# The conversations that have no batches.
_WHOLE_TABLE_ONLY = frozenset({"sealed", "mutual"})


def agree(
    settings: Settings,
    columns: int,
    rows: int,
    chosen: Scheme | None = None,
    parties: Mapping[str, str] | None = None,
) -> Terms:
    """The terms of a training: the public part of resolved settings.

    ``chosen`` replaces the scheme that the settings name. ``parties`` has the fingerprint of each
    Alice's key. Raises ``ConfigError`` for settings that do not fit together, and
    ``BudgetExceeded`` where the budget does not pay for a single release.
    """
    if parties or settings.parties > 1:
        _require_several(settings, mechanism_class(settings.mechanism))
    # Before the sizes of batches, which newton does not have.
    _require_solver(settings, mechanism_class(settings.mechanism))
    filled = _protection(settings, accepted_settings(settings), columns, rows)
    common = Agreement.model_fields.keys() & ALSO_SIMULATED
    shared = {name: getattr(settings, name) for name in common}
    shared["solver"] = solver = _solver(settings)
    shared["l2"] = solver.default_l2(rows) if settings.l2 is None else settings.l2
    shared["intercept"] = bool(settings.intercept)
    shared["parties"] = None if parties is None else {**parties}
    # Made once without its encryption, to ask the mechanism whether it has any.
    draft = Agreement.from_mapping({**shared, **filled, "scheme": "clear", "key_bits": 0})
    method = mechanism(draft)
    _require_budget(settings, price(method.event).label)
    if not method.encrypts:
        return Terms(draft, scheme("clear"))
    chosen = chosen or scheme(settings.scheme)
    final = {"scheme": settings.scheme, "key_bits": _key_bits(settings, chosen)}
    terms = Terms(draft.model_copy(update=final), chosen)
    # Once more with it: a mechanism may refuse a scheme.
    mechanism(terms.agreement)
    return terms


def unused(settings: Settings) -> tuple[str, ...]:
    """A note for each setting that was given and that the mechanism does not take.

    >>> unused(Settings(mechanism="none", epsilon=1.0))
    ('none does not use epsilon',)
    """
    takes = accepted_settings(settings).names
    given = [
        name for name in PROTECTION if getattr(settings, name) is not None and name not in takes
    ]
    return tuple(f"{settings.mechanism} does not use {name.replace('_', '-')}" for name in given)


def _protection(
    settings: Settings, used: AcceptedSettings, columns: int, rows: int
) -> dict[str, Any]:
    filled: dict[str, Any] = dict.fromkeys(AGREED)
    for name in AGREED:
        # A setting that the mechanism does not take is noted elsewhere, and agreed on as absent.
        if name in used.names:
            given = getattr(settings, name)
            filled[name] = used.defaults.get(name) if given is None else given
    chosen = mechanism_class(settings.mechanism)
    return {**filled, **chosen.derived(settings, filled, columns, rows)}


def _solver(settings: Settings) -> Solver:
    if settings.solver == Newton.name:
        return Newton.from_mapping({"passes": settings.passes or settings.default_passes})
    return Sgd.from_mapping({name: getattr(settings, name) for name in Sgd.model_fields})


def _require_solver(settings: Settings, method: type[Mechanism]) -> None:
    underlying = method.underlying(settings.base_mechanism)
    conversation = (underlying or method).conversation
    if settings.solver != "newton":
        if conversation in _WHOLE_TABLE_ONLY:
            raise removed_batches(method.name, None if underlying is None else underlying.name)
        return
    if not method.whole_table:
        raise ConfigError(
            f"{method.name} has no newton: what it releases, and its price, are those of batches",
            setting="solver",
            hint=Hint("use {solver}, or sealed, mutual, label-rr or none", solver="sgd"),
        )
    if settings.scheme == "paillier":
        batches = conversation not in _WHOLE_TABLE_ONLY
        raise ConfigError(
            f"{'newton' if batches else method.name} has no paillier: a number of a row takes a "
            "ciphertext of its own there, so that a pass over a table would take hours",
            setting="scheme",
            hint=Hint("use {scheme}, or {solver}", scheme="bfv", solver="sgd")
            if batches
            else Hint("use {scheme}", scheme="bfv"),
        )


def _require_several(settings: Settings, method: type[Mechanism]) -> None:
    if not method.several_alices:
        raise ConfigError(
            f"{method.name} has one Alice: its conversation is hers and Bob's alone",
            setting="parties",
            hint=Hint(
                "leave {parties} out, or use {mechanism}, label-rr, add, mult or none",
                mechanism="sealed",
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


def _require_budget(settings: Settings, cost: float) -> None:
    if settings.budget is None or cost <= settings.budget:
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
        f"and the budget is {settings.budget:g}",
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
