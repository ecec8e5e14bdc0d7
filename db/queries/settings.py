"""What people have set."""

from db.engine import Database
from db.models import ProjectSettingsTable, UserSettingsTable
from db.models.settings import PROJECT_ID
from db.records import ProjectSettings, UserSettings
from db.setting_values import project_from_json, user_from_json


def project_settings(db: Database) -> ProjectSettings:
    """Return the settings of the project."""
    with db.read_session() as session:
        row = session.get(ProjectSettingsTable, PROJECT_ID)
        return project_from_json({} if row is None else row.content)


def user_settings(db: Database, *, user_id: int) -> UserSettings:
    """Return one person's own settings."""
    with db.read_session() as session:
        row = session.get(UserSettingsTable, user_id)
        return user_from_json({} if row is None else row.content)
