"""Solver of a training: its default, what each mechanism can train with, and what it refuses."""

from __future__ import annotations

from taciturn.errors import ConfigError
from taciturn.families.registry import FAMILIES
from taciturn.privacy.registry import mechanism_class
from taciturn.setting_syntax import Hint, hyphenated
from taciturn.settings.schema import (
    SGD_ONLY,
    Newton,
    Settings,
    Sgd,
    SolverName,
    dataset_defaults,
    require_shared_work,
)


def supported_solvers(settings: Settings) -> tuple[SolverName, ...]:
    """Solvers of a mechanism; where it runs over another one, those that both have."""
    chosen = mechanism_class(settings.mechanism)
    underlying = chosen.underlying(settings.base_mechanism)
    offered = chosen.solvers if underlying is None else underlying.solvers
    return tuple(name for name in chosen.solvers if name in offered)


def resolved(settings: Settings) -> Settings:
    """The settings with the solver's and the dataset's defaults filled in."""
    if settings.solver == Sgd.name:
        require_solver(settings)
    fallback = dataset_defaults(settings.dataset)
    intercept = fallback.intercept if settings.intercept is None else settings.intercept
    filled: dict[str, object] = {
        "solver": settings.solver or _default_solver(settings),
        "intercept": intercept,
    }
    if filled["solver"] == Newton.name:
        _refuse_steps(settings)
        # Its passes follow from the mechanism and from the number of rows.
        return settings.model_copy(update=filled)
    require_shared_work(settings.engine)
    if settings.passes is not None:
        raise ConfigError(
            "sgd takes epochs; only newton takes passes",
            setting="passes",
            hint=Hint("use {epochs}, or {solver}", solver=Newton.name),
        )
    for name in SGD_ONLY:
        filled[name] = getattr(settings, name) or getattr(fallback, name)
    return settings.model_copy(update=filled)


def require_solver(settings: Settings) -> None:
    """Refuse a solver, or its scheme, that the mechanism does not have."""
    method, solvers = mechanism_class(settings.mechanism), supported_solvers(settings)
    underlying = method.underlying(settings.base_mechanism)
    if settings.solver != Newton.name:
        if Sgd.name not in solvers:
            name = method.name if underlying is None else f"{method.name} over {underlying.name}"
            raise ConfigError(
                f"{name} has no sgd: newton trains on all rows in each of a few passes, and "
                "reaches the optimum",
                setting="solver",
                value=Sgd.name,
                hint=Hint(
                    "use {solver}, or {mechanism} with sgd for the paper's baseline",
                    solver=Newton.name,
                    mechanism="none",
                ),
            )
        return
    if Newton.name not in solvers:
        raise ConfigError(
            f"{method.name} has no newton: what it releases, and its price, are those of batches",
            setting="solver",
            hint=Hint("use {solver}, or sealed, mutual, label-rr or none", solver=Sgd.name),
        )
    if settings.scheme == "paillier":
        batches = Sgd.name in solvers
        raise ConfigError(
            f"{'newton' if batches else method.name} has no paillier: a number of a row takes a "
            "ciphertext of its own there, so that a pass over a table would take hours",
            setting="scheme",
            hint=Hint("use {scheme}, or {solver}", scheme="bfv", solver=Sgd.name)
            if batches
            else Hint("use {scheme}", scheme="bfv"),
        )


def _default_solver(settings: Settings) -> SolverName:
    """Newton, unless what is asked for has sgd alone, is the paper's, or names steps of sgd."""
    solvers = supported_solvers(settings)
    if Sgd.name not in solvers or not FAMILIES[settings.family].has_classes:
        return Newton.name
    steps = any(getattr(settings, name) is not None for name in SGD_ONLY)
    sgd = (
        settings.dataset is not None
        or steps
        or Newton.name not in solvers
        or settings.scheme == "paillier"
        or settings.l1 > 0
        or settings.l2 == 0
        or settings.schedule != "constant"
    )
    return Sgd.name if sgd else Newton.name


def _refuse_steps(settings: Settings) -> None:
    for name in SGD_ONLY:
        if getattr(settings, name) is not None:
            raise ConfigError(
                f"newton has no {hyphenated(name)}: every pass uses all rows, and its step "
                "follows from the data",
                setting=name,
                hint=_or_sgd(settings, f"leave {{{name}}} out"),
            )
    if settings.schedule != "constant" or settings.decay:
        raise ConfigError(
            "newton has no learning rate that could fall",
            setting="schedule" if settings.schedule != "constant" else "decay",
            hint=_or_sgd(settings, "leave it out"),
        )
    if settings.l1 > 0:
        raise ConfigError(
            "newton has no L1 penalty", setting="l1", hint=_or_sgd(settings, "use {l2}")
        )
    if settings.l2 == 0:
        raise ConfigError(
            "newton needs an L2 penalty above 0: without one there may be no optimum",
            setting="l2",
            hint=_or_sgd(settings, "leave {l2} out for scikit-learn's"),
        )


def _or_sgd(settings: Settings, remedy: str) -> Hint:
    if not FAMILIES[settings.family].has_classes:
        return Hint(remedy)
    if Sgd.name not in supported_solvers(settings):
        return Hint(f"{remedy}, or use {{mechanism}} with sgd", mechanism="none")
    return Hint(f"{remedy}, or use {{solver}}", solver=Sgd.name)
