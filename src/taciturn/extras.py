"""What only some commands need: other distributions of this project, and packages of an extra.

A party that trains, aligns or predicts needs none of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec

from taciturn.errors import ConfigError

# Extra -> distribution -> the least version. As in pyproject.toml, which an installed program does
# not have beside it; a test compares them.
EXTRAS: Mapping[str, Mapping[str, str]] = {
    "audit": {
        "dp-accounting": "0.6",
        "jinja2": "3.1",
        "markupsafe": "3.0",
        "matplotlib": "3.10",
        "python-flint": "0.7",
        "scikit-learn": "1.6",
        "scipy": "1.14",
    },
    "onnx": {"onnx": "1.17"},
    "pandas": {"pandas": "2.2"},
    "notebook": {"ipykernel": "6.29"},
    "cluster": {"distributed": "2025.1"},
    "serve": {"httptools": "0.6", "starlette": "0.41", "uvicorn": "0.32"},
    "postgres": {"psycopg": "3.2"},
    "mlflow": {"mlflow-skinny": "3.7"},
}
# Where a module is not called like its distribution.
MODULES = {
    "scikit-learn": "sklearn",
    "grpcio": "grpc",
    "dp-accounting": "dp_accounting",
    "mlflow-skinny": "mlflow",
    "python-flint": "flint",
}


# Distribution -> its folder in a checkout. The names are not on any index.
AUDIT, OPS, RISK, PAPER = "taciturn-audit", "taciturn-ops", "taciturn-risk", "taciturn-paper"
DISTRIBUTIONS = {AUDIT: "audit", OPS: "ops", RISK: "risk", PAPER: "paper"}
# Where a job is that is not installed: its command, and its section of a party's file.
JOBS_ELSEWHERE: Mapping[str, str] = {"serve": OPS, "woe": RISK}
DATASETS_ELSEWHERE: Mapping[str, str] = {"census-income": PAPER, "give-me-some-credit": PAPER}


def install_hint(extra: str) -> str:
    """Command that installs an extra from a checkout: the name is not on any index."""
    distribution = " ./audit" if extra == "audit" else ""
    return f"in a checkout of taciturn: pip install '.[{extra}]'{distribution}"


def distribution_hint(distribution: str) -> str:
    """Command that installs a distribution of this project, from a checkout or from its wheel.

    >>> distribution_hint("taciturn-ops")
    'in a checkout of taciturn: pip install ./ops; from its wheel: pip install taciturn_ops-*.whl'
    """
    wheel = f"{distribution.replace('-', '_')}-*.whl"
    if distribution == AUDIT:
        return f"{install_hint('audit')}; from its wheel: pip install {wheel}"
    folder = DISTRIBUTIONS[distribution]
    return f"in a checkout of taciturn: pip install ./{folder}; from its wheel: pip install {wheel}"


def not_installed(name: str, distribution: str) -> ConfigError:
    """The error for a name that a distribution brings which is not installed."""
    return ConfigError(
        f"{name} is in the distribution {distribution}, which is not installed",
        hint=distribution_hint(distribution),
    )


def is_installed(package: str) -> bool:
    """Whether a package of an extra is installed; nothing of it is imported.

    >>> is_installed("no-such-package")
    False
    """
    try:
        return find_spec(MODULES.get(package, package)) is not None
    except ModuleNotFoundError:
        return False


def require_packages(*packages: str) -> None:
    """Raise ConfigError for the first package of an extra that is not installed.

    >>> require_packages()
    """
    for package in packages:
        if not is_installed(package):
            module = MODULES.get(package, package)
            if absent := missing_package(ModuleNotFoundError(name=module)):
                raise absent


def missing_package(problem: ModuleNotFoundError) -> ConfigError | None:
    """Error that names the extra of an absent module; None where it belongs to no extra.

    >>> missing_package(ModuleNotFoundError("no", name="sklearn.base")).message
    'the package scikit-learn is not installed'
    """
    absent = (problem.name or "").split(".")[0]
    if (distribution := absent.replace("_", "-")) in DISTRIBUTIONS:
        return not_installed(absent, distribution)
    for extra, packages in EXTRAS.items():
        for package in packages:
            if absent == MODULES.get(package, package):
                return ConfigError(
                    f"the package {package} is not installed", hint=install_hint(extra)
                )
    return None


@contextmanager
def explained() -> Iterator[None]:
    """Turn a ``ModuleNotFoundError`` into an error that names the extra."""
    try:
        yield
    except ModuleNotFoundError as problem:
        explanation = missing_package(problem)
        if explanation is None:
            raise
        raise explanation from None
