"""The `key=value` arguments of `--set` become typed settings."""

from typing import Any, get_type_hints

from trainer.config import TrainConfig
from trainer.errors import ConfigError
from trainer.fields import known_settings, parse_value, shown


def parse_assignments(assignments: list[str]) -> dict[str, Any]:
    """Parse the `key=value` arguments of `--set` into typed settings.

    Raises:
        ConfigError: if an argument has no `=`, or names no setting, or its value does not parse.
    """
    types = get_type_hints(TrainConfig)
    parsed: dict[str, Any] = {}
    for assignment in assignments:
        key, separator, text = assignment.partition("=")
        if not separator:
            raise ConfigError(
                f"{shown(assignment)} is not of the form key=value",
                where="--set",
                remedy="For example: --set learning_rate=5e-5",
            )
        known_settings(TrainConfig, {key: text})
        if key == "preset":
            raise ConfigError("the preset is no setting", where="--set", remedy="Use --preset.")
        parsed[key] = parse_value(key, text, types[key])
    return parsed
