"""What adding conversations would do, found out by reading only: nobody has to wait for it."""

from collections.abc import Collection, Sequence

from sqlalchemy.orm import Session

from db.commands.adding import AddedConversations, find_present
from db.commands.merging import Known, known_scores, plan_merge, score_key
from db.commands.preparing import Prepared


class Rehearsal:
    """Takes conversations list by list, as `add_in` would, and says what would become of them.

    Args:
        session: Where the database is read.
        repeated: Content hashes of what comes more than once: only of these the scores have to be
            remembered.
    """

    def __init__(self, session: Session, repeated: Collection[str]) -> None:
        """Begin with nothing added."""
        self._session = session
        self._repeated = repeated
        self._known: Known = {}
        self._came: set[str] = set()

    def add(self, prepared: Sequence[Prepared]) -> AddedConversations:
        """Return what `add_in` would."""
        present = find_present(self._session, [c.digest for c in prepared])
        there = tuple(c for c in prepared if c.digest in present)
        # Scores of conversations that come again were read, and grew, when they came first.
        unread = {c.digest: present[c.digest].id for c in there if c.scores}
        known = known_scores(
            self._session, {d: i for d, i in unread.items() if d not in self._came}
        )
        self._known.update(known)
        fresh: list[Prepared] = []
        repeated: list[Prepared] = []
        for conversation in prepared:
            if conversation.digest in present:
                continue
            if conversation.digest in self._came:
                repeated.append(conversation)
                continue
            fresh.append(conversation)
            if conversation.digest in self._repeated:
                self._came.add(conversation.digest)
                for score in conversation.scores:
                    self._known[score_key(conversation.digest, score)] = score.value
        merged = plan_merge((*there, *repeated), self._known)
        self._came.update(set(unread) & set(self._repeated))
        self._known = {k: value for k, value in self._known.items() if k[0] in self._repeated}
        return AddedConversations(
            fresh=tuple(fresh), ids=(), there=there, repeated=tuple(repeated), merged=merged
        )
