# pyright: basic
"""What labelling by several people needs."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_adjudications()
    _create_assignments()
    _count_scores()
    _extend_events()
    _create_pending_notes()
    _create_message_versions()


def _create_adjudications() -> None:
    op.create_table(
        "adjudications",
        sa.Column("message_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("value >= -1 AND value <= 1", name="ck_adjudications_value_in_range"),
        sa.ForeignKeyConstraint(
            ["message_id"], ["messages.id"], name="fk_adjudications_message_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_adjudications_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("message_id", name="pk_adjudications"),
    )
    op.create_index("ix_adjudications_user_id", "adjudications", ["user_id"])
    with op.batch_alter_table("events", table_kwargs={"sqlite_autoincrement": True}) as batch:
        batch.add_column(
            sa.Column("adjudicates", sa.Boolean(), server_default=sa.false(), nullable=False)
        )


def _create_assignments() -> None:
    op.create_table(
        "assignments",
        sa.Column("conversation_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("assigned_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["conversation_id"],
            ["conversations.id"],
            name="fk_assignments_conversation_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_assignments_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("conversation_id", "user_id", name="pk_assignments"),
    )
    op.create_index("ix_assignments_user_id", "assignments", ["user_id"])


def _count_scores() -> None:
    """Keep in each row what queues and tables would otherwise count again and again."""
    with op.batch_alter_table(
        "conversations", table_kwargs={"sqlite_autoincrement": True}
    ) as batch:
        for name in ("turns", "scored_turns", "score_count"):
            batch.add_column(sa.Column(name, sa.Integer(), server_default="0", nullable=False))
        batch.add_column(sa.Column("mean_score", sa.Double(), nullable=True))
        batch.add_column(sa.Column("uncertainty", sa.Double(), nullable=True))
    with op.batch_alter_table("reviews") as batch:
        batch.add_column(
            sa.Column("scored_turns", sa.Integer(), server_default="0", nullable=False)
        )
    scores = (
        " FROM scores JOIN messages ON messages.id = scores.message_id"
        " WHERE messages.conversation_id = conversations.id"
    )
    op.execute(
        "UPDATE conversations SET turns = (SELECT COUNT(*) FROM messages"
        " WHERE messages.conversation_id = conversations.id AND messages.role = 'assistant'),"
        f" scored_turns = (SELECT COUNT(DISTINCT scores.message_id){scores}),"
        f" score_count = (SELECT COUNT(*){scores}), mean_score = (SELECT AVG(scores.value){scores})"
    )
    op.execute(
        "INSERT INTO reviews (conversation_id, user_id, state, scored_turns, updated_at)"
        " SELECT messages.conversation_id, scores.user_id, 'open', 0, MAX(scores.updated_at)"
        " FROM scores JOIN messages ON messages.id = scores.message_id"
        " WHERE NOT EXISTS (SELECT 1 FROM reviews"
        "  WHERE reviews.conversation_id = messages.conversation_id"
        "  AND reviews.user_id = scores.user_id)"
        " GROUP BY messages.conversation_id, scores.user_id"
    )
    op.execute(
        "UPDATE reviews SET scored_turns = (SELECT COUNT(*)"
        " FROM scores JOIN messages ON messages.id = scores.message_id"
        " WHERE messages.conversation_id = reviews.conversation_id"
        " AND scores.user_id = reviews.user_id)"
    )
    _measure_uncertainty()


def _measure_uncertainty() -> None:
    """Take the mean surprise of the sampled replies from the log-probabilities they came with."""
    connection = op.get_bind()
    sums: dict[int, tuple[float, int]] = {}
    rows = connection.execute(
        sa.text(
            "SELECT conversation_id, logprobs FROM messages"
            " WHERE role = 'assistant' AND logprobs IS NOT NULL"
        )
    )
    for conversation_id, stored in rows:
        logprobs = json.loads(stored) if isinstance(stored, str) else stored
        total, count = sums.get(conversation_id, (0.0, 0))
        sums[conversation_id] = (total + sum(logprobs or ()), count + len(logprobs or ()))
    for conversation_id, (total, count) in sums.items():
        if count:
            connection.execute(
                sa.text("UPDATE conversations SET uncertainty = :value WHERE id = :id"),
                {"value": -total / count, "id": conversation_id},
            )


def _extend_events() -> None:
    with op.batch_alter_table("events", table_kwargs={"sqlite_autoincrement": True}) as batch:
        batch.add_column(
            sa.Column("is_undo", sa.Boolean(), server_default=sa.false(), nullable=False)
        )
        batch.add_column(sa.Column("old_state", sa.String(32), nullable=True))
        batch.add_column(sa.Column("new_state", sa.String(32), nullable=True))
        batch.add_column(sa.Column("batch", sa.String(32), nullable=True))
        batch.add_column(sa.Column("changed_by", sa.Integer(), nullable=True))
        batch.create_foreign_key(
            "fk_events_changed_by", "users", ["changed_by"], ["id"], ondelete="SET NULL"
        )
    op.execute("UPDATE events SET is_undo = true WHERE undoes_id IS NOT NULL")


def _create_pending_notes() -> None:
    op.create_table(
        "pending_notes",
        sa.Column("message_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["message_id"], ["messages.id"], name="fk_pending_notes_message_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_pending_notes_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("message_id", "user_id", name="pk_pending_notes"),
    )


def _create_message_versions() -> None:
    op.create_table(
        "message_versions",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("message_id", sa.Integer(), nullable=False),
        sa.Column("role", sa.String(32), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("tool_calls", sa.JSON(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("scores_kept", sa.Boolean(), nullable=False),
        sa.Column("replaced_by", sa.Integer(), nullable=True),
        sa.Column("replaced_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["message_id"],
            ["messages.id"],
            name="fk_message_versions_message_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["replaced_by"],
            ["users.id"],
            name="fk_message_versions_replaced_by",
            ondelete="SET NULL",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_message_versions"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_message_versions_message_id", "message_versions", ["message_id"])
