"""Settings that a mechanism of another package declares (``Mechanism.settings``).

In options, in files and as keywords they stand beside the settings of the project, under their own
names. A model holds them in one field, ``mechanism_settings``, and the agreement of both sides has
all of them. Nothing of a package is imported before one of its settings or its name is used.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from taciturn import extensions
from taciturn.errors import ConfigError
from taciturn.setting_syntax import Hint
from taciturn.settings.checked import Checked, declared

FIELD = "mechanism_settings"


def declared_by(mechanism: object) -> type[Checked] | None:
    """Model of the settings that a mechanism declares; None for none, and for an unknown name."""
    for added in extensions.installed(extensions.MECHANISMS):
        if added.name == mechanism:
            model = getattr(added.load(), "settings", None)
            if model is None:
                return None
            if not (isinstance(model, type) and issubclass(model, Checked)):
                added.refuse("has settings that do not extend taciturn.settings.checked.Checked")
            described = {name for name, setting in declared(model).items() if setting.help}
            if others := sorted(model.model_fields.keys() - described):
                added.refuse(
                    "does not declare its settings by setting(), with a text below each: "
                    f"{', '.join(others)}"
                )
            return model
    return None


def collected(values: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Values in which those that the mechanism declares, and that are not ``known``, are one field.

    Keys may be spelled with hyphens or underscores.
    """
    unknown = {key: key.replace("-", "_") for key in values if key.replace("-", "_") not in known}
    model = declared_by(values.get("mechanism")) if unknown else None
    if model is None:
        return {**values}
    found = {key: name for key, name in unknown.items() if name in model.model_fields}
    rest = {key: value for key, value in values.items() if key not in found}
    if found:
        given = {name: values[key] for key, name in found.items()}
        rest[FIELD] = {**(rest.get(FIELD) or {}), **given}
    return rest


def completed(mechanism: str, given: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The settings that a mechanism declares, with their defaults; None where it declares none."""
    model = declared_by(mechanism)
    if model is not None:
        return model.from_mapping(given or {}).model_dump(mode="json")
    if given:
        name = sorted(given)[0]
        raise ConfigError(
            f"{mechanism} declares no settings, and {', '.join(sorted(given))} is given",
            setting=name,
            hint=Hint(f"leave {{{name}}} out, or use the mechanism that declares it"),
        )
    return None
