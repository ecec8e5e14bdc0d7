"""Training services on other machines that a run can be sent to."""

from datetime import datetime

from sqlalchemy.orm import Mapped, mapped_column

from db.models.base import Base, now


class EndpointTable(Base):
    """One service; its key is never stored, only the name of the variable that holds it."""

    __tablename__ = "endpoints"

    name: Mapped[str] = mapped_column(primary_key=True)
    base_url: Mapped[str]
    key_variable: Mapped[str] = mapped_column(default="")
    created_at: Mapped[datetime] = mapped_column(default=now)
