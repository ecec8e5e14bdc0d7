"""Changing what people have set."""

from collections.abc import Mapping
from typing import Any

from db.engine import Database
from db.enums import LabelAction
from db.models import ProjectSettingsTable, UserSettingsTable, now
from db.models.settings import PROJECT_ID
from db.records import ProjectSettings, UserSettings
from db.setting_values import (
    changed_project,
    keys_to_json,
    project_from_json,
    project_to_json,
    user_from_json,
)


def change_project_settings(db: Database, changes: Mapping[str, Any]) -> ProjectSettings:
    """Change some settings of the project, and leave what others have changed meanwhile.

    Args:
        db: The database.
        changes: New values by the names of `ProjectSettings`.

    Raises:
        DataError: if a name or a value is none.
    """
    with db.session() as session:
        row = session.get(ProjectSettingsTable, PROJECT_ID)
        settings = changed_project(project_from_json({} if row is None else row.content), changes)
        content = project_to_json(settings)
        session.merge(ProjectSettingsTable(id=PROJECT_ID, content=content, updated_at=now()))
        return settings


def set_keys(db: Database, *, user_id: int, keys: Mapping[LabelAction, str]) -> UserSettings:
    """Set one person's keys; actions that are left out get their default back.

    Raises:
        DataError: if two actions share a key, or one has none.
    """
    content = keys_to_json(keys)
    with db.session() as session:
        session.merge(UserSettingsTable(user_id=user_id, content=content, updated_at=now()))
    return user_from_json(content)
