"""Files into the database: parse, leave out what is there, store the rest in one transaction."""

from dataclasses import replace

from db.commands.adding import AddedConversations, add_in
from db.commands.preparing import prepare
from db.engine import Database
from db.formats import AUTO, ParsedFile, parse
from db.records import Conversation, ImportReport


def import_bytes(
    db: Database, data: bytes, *, format: str = AUTO, source: str, dry_run: bool = False
) -> ImportReport:
    """Import a file's conversations: all rows that can be read, or (on an error) none.

    Conversations whose words are already in the database are left out as duplicates, so that
    importing a file twice adds nothing; scores that they bring by raters who have not scored
    the turn yet are merged. Raters become users by name.

    Args:
        db: The database.
        data: The file's bytes.
        format: One of `db.formats.READABLE`, or "auto".
        source: Where the conversations come from, for those that do not say so themselves.
        dry_run: Do everything and take it back again, so that the report is what a real import
            would say.

    Raises:
        DataError: if the file cannot be read at all (see `db.formats.parse`).
        StorageError: if the database cannot be written.
    """
    parsed = parse(data, format=format)
    prepared = [prepare(_localised(c, source)) for c in parsed.conversations]
    with db.session() as session:
        added = add_in(session, prepared)
        if dry_run:
            session.rollback()
    return ImportReport(
        format=parsed.format,
        conversations=len(added.ids),
        messages=added.messages,
        scores=added.scores + added.merged.added,
        duplicates=len(added.duplicates),
        skipped=parsed.skipped,
        warnings=_warnings(parsed, added),
    )


def _localised(conversation: Conversation, source: str) -> Conversation:
    """Set the source, and drop the run that sampled a reply: run ids are one database's own."""
    return replace(
        conversation,
        source=conversation.source or source,
        messages=tuple(replace(message, run_id=None) for message in conversation.messages),
    )


def _warnings(parsed: ParsedFile, added: AddedConversations) -> tuple[str, ...]:
    lines = list(parsed.warnings)
    if added.merged.added:
        lines.append(
            f"{_count(added.merged.added, 'score')} added to conversations that are already there"
        )
    if added.merged.kept:
        lines.append(
            f"{_count(added.merged.kept, 'score')} left out: the same rater has given that turn "
            "another score, which stays"
        )
    return tuple(lines)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
