# pyright: basic
"""The first schema: users, conversations and their scores, runs and their figures."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_users()
    _create_conversations()
    _create_conversation_tags()
    _create_runs()
    _create_messages()
    _create_scores()
    _create_outcomes()
    _create_reviews()
    _create_events()
    _create_turn_metrics()
    _create_step_metrics()
    _create_artifacts()


def _create_users() -> None:
    op.create_table(
        "users",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("role", sa.String(length=32), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_users"),
        sa.UniqueConstraint("name", name="uq_users_name"),
        sqlite_autoincrement=True,
    )


def _create_conversations() -> None:
    op.create_table(
        "conversations",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("system", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("content_hash", sa.String(length=64), nullable=False),
        sa.Column("archived", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_conversations"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_conversations_archived_id", "conversations", ["archived", "id"])
    op.create_index("ix_conversations_content_hash", "conversations", ["content_hash"])


def _create_conversation_tags() -> None:
    op.create_table(
        "conversation_tags",
        sa.Column("conversation_id", sa.Integer(), nullable=False),
        sa.Column("tag", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["conversation_id"],
            ["conversations.id"],
            name="fk_conversation_tags_conversation_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("conversation_id", "tag", name="pk_conversation_tags"),
    )
    op.create_index("ix_conversation_tags_tag", "conversation_tags", ["tag"])


def _create_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("status", sa.String(length=32), nullable=False),
        sa.Column("config", sa.JSON(), nullable=False),
        sa.Column("base_model", sa.Text(), nullable=False),
        sa.Column("conversations", sa.Integer(), nullable=False),
        sa.Column("turns", sa.Integer(), nullable=False),
        sa.Column("start_token", sa.Text(), nullable=False),
        sa.Column("snapshot_sha256", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=True),
        sa.Column("process_started_at", sa.Double(), nullable=True),
        sa.Column("heartbeat_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("stop_requested_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("progress", sa.Double(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("error_kind", sa.String(length=32), nullable=True),
        sa.Column("error_text", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("queued_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
        sa.UniqueConstraint("start_token", name="uq_runs_start_token"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_runs_status_queued_at", "runs", ["status", "queued_at"])


def _create_messages() -> None:
    op.create_table(
        "messages",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("conversation_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("role", sa.String(length=32), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("tool_calls", sa.JSON(), nullable=True),
        sa.Column("tool_call_id", sa.Text(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("run_id", sa.Integer(), nullable=True),
        sa.Column("token_ids", sa.JSON(), nullable=True),
        sa.Column("logprobs", sa.JSON(), nullable=True),
        sa.ForeignKeyConstraint(
            ["conversation_id"],
            ["conversations.id"],
            name="fk_messages_conversation_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name="fk_messages_run_id", ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_messages"),
        sa.UniqueConstraint(
            "conversation_id", "position", name="uq_messages_conversation_id_position"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_messages_run_id", "messages", ["run_id"])


def _create_scores() -> None:
    op.create_table(
        "scores",
        sa.Column("message_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("value >= -1 AND value <= 1", name="ck_scores_value_in_range"),
        sa.ForeignKeyConstraint(
            ["message_id"], ["messages.id"], name="fk_scores_message_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_scores_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("message_id", "user_id", name="pk_scores"),
    )
    op.create_index("ix_scores_user_id", "scores", ["user_id"])


def _create_outcomes() -> None:
    op.create_table(
        "outcomes",
        sa.Column("conversation_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("value >= -1 AND value <= 1", name="ck_outcomes_value_in_range"),
        sa.ForeignKeyConstraint(
            ["conversation_id"],
            ["conversations.id"],
            name="fk_outcomes_conversation_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_outcomes_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("conversation_id", "user_id", name="pk_outcomes"),
    )
    op.create_index("ix_outcomes_user_id", "outcomes", ["user_id"])


def _create_reviews() -> None:
    op.create_table(
        "reviews",
        sa.Column("conversation_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=32), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["conversation_id"],
            ["conversations.id"],
            name="fk_reviews_conversation_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_reviews_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("conversation_id", "user_id", name="pk_reviews"),
    )
    op.create_index("ix_reviews_user_id_state", "reviews", ["user_id", "state"])


def _create_events() -> None:
    op.create_table(
        "events",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("conversation_id", sa.Integer(), nullable=False),
        sa.Column("message_id", sa.Integer(), nullable=True),
        sa.Column("old_value", sa.Double(), nullable=True),
        sa.Column("new_value", sa.Double(), nullable=True),
        sa.Column("old_note", sa.Text(), nullable=False),
        sa.Column("new_note", sa.Text(), nullable=False),
        sa.Column("undoable", sa.Boolean(), nullable=False),
        sa.Column("undoes_id", sa.Integer(), nullable=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["conversation_id"],
            ["conversations.id"],
            name="fk_events_conversation_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["message_id"], ["messages.id"], name="fk_events_message_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["undoes_id"], ["events.id"], name="fk_events_undoes_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_events_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
        sa.UniqueConstraint("undoes_id", name="uq_events_undoes_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_conversation_id_id", "events", ["conversation_id", "id"])
    op.create_index("ix_events_message_id", "events", ["message_id"])
    op.create_index("ix_events_user_id_id", "events", ["user_id", "id"])


def _create_turn_metrics() -> None:
    op.create_table(
        "turn_metrics",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("conversation", sa.Integer(), nullable=False),
        sa.Column("turn", sa.Integer(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("response_tokens", sa.Integer(), nullable=False),
        sa.Column("reward", sa.Double(), nullable=True),
        sa.Column("advantage", sa.Double(), nullable=False),
        sa.Column("loss_mean", sa.Double(), nullable=False),
        sa.Column("loss_sum", sa.Double(), nullable=False),
        sa.Column("ratio_mean", sa.Double(), nullable=False),
        sa.Column("clipfrac", sa.Double(), nullable=False),
        sa.Column("clipfrac_binding", sa.Double(), nullable=False),
        sa.Column("kl_mean", sa.Double(), nullable=False),
        sa.Column("logprob_mean", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name="fk_turn_metrics_run_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", "step", "conversation", "turn", name="pk_turn_metrics"),
    )


def _create_step_metrics() -> None:
    op.create_table(
        "step_metrics",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("loss", sa.Double(), nullable=False),
        sa.Column("grad_norm", sa.Double(), nullable=False),
        sa.Column("lr", sa.Double(), nullable=False),
        sa.Column("kl", sa.Double(), nullable=False),
        sa.Column("tokens_per_s", sa.Double(), nullable=False),
        sa.Column("memory_bytes", sa.BigInteger(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name="fk_step_metrics_run_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", "step", name="pk_step_metrics"),
    )


def _create_artifacts() -> None:
    op.create_table(
        "artifacts",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name="fk_artifacts_run_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_artifacts"),
        sa.UniqueConstraint("run_id", "kind", "path", name="uq_artifacts_run_id_kind_path"),
        sqlite_autoincrement=True,
    )
