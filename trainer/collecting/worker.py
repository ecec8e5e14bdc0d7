"""What the process of a collection does: ask prompt by prompt, store, and give way to others."""

import os
import sys
import threading
import traceback
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from db import commands, queries
from db.engine import Database
from db.enums import CollectionState
from db.records import Collection, Conversation
from trainer.collecting.asking import Asker
from trainer.collecting.holding import WATCH_EVERY_S, Report
from trainer.collecting.life import goes_first
from trainer.collecting.talking import talk
from trainer.errors import BadDataError, ChatTemplateError
from trainer.runs.failure import explain
from trainer.serving.model import ServedModel

STREAMS = 16
"""About so many replies are generated at once."""


def carry_out(database: Database, collection: Collection, report: Report) -> None:
    """Do what is left of a collection; how it ends is told by its row, failures included.

    When a run or a chat wants the device, this process starts anew from the beginning: that frees
    everything, and then it waits.
    """
    try:
        _carry_out(database, collection, report)
    except Exception as error:  # noqa: BLE001 - the process edge: the failure is stored on the row
        traceback.print_exc(file=sys.stderr)
        commands.end_collection(
            database, collection.id, CollectionState.FAILED, error_text=explain(error).text
        )


def _carry_out(database: Database, collection: Collection, report: Report) -> None:
    prompts = queries.prompts_left(database, collection.id)
    notes: list[str] = []
    if prompts:
        message = f"Loading {collection.plan.base_model}"
        commands.report_collection(database, collection.id, collection.progress, message)
        model = ServedModel.load(
            database.settings, collection.plan.base_model, device=collection.device
        )
        model.scheduler.start()
        try:
            notes = _Collecting(database, collection, model, report).run(prompts)
        finally:
            model.scheduler.leave("the collection has ended")
    found = queries.collection(database, collection.id)
    if found.done < found.prompts:
        return  # it was cancelled
    ending = CollectionState.DONE if found.conversations else CollectionState.FAILED
    commands.end_collection(database, found.id, ending, error_text=" ".join(notes))


class _Collecting:
    """The work on the prompts that are left."""

    def __init__(
        self, database: Database, collection: Collection, model: ServedModel, report: Report
    ) -> None:
        self._database = database
        self._collection = collection
        self._asker = Asker(model, collection.plan)
        self._report = report
        self._replies = 0
        self._count = threading.Lock()
        self._is_wanted = True

    def run(self, prompts: dict[int, Conversation]) -> list[str]:
        """Ask about every prompt and store the replies; return why some could not be asked."""
        notes: list[str] = []
        at_once = max(1, STREAMS // self._collection.plan.replies)
        left = list(prompts.items())
        with ThreadPoolExecutor(at_once) as pool:
            pending: set[Future[str]] = set()
            while pending or (left and self._is_wanted):
                while left and self._is_wanted and len(pending) < at_once:
                    pending.add(pool.submit(self._one, *left.pop(0)))
                done, pending = wait(pending, WATCH_EVERY_S, return_when=FIRST_COMPLETED)
                notes += [note for future in done if (note := future.result())]
                self._watch()
        return notes

    def _one(self, number: int, prompt: Conversation) -> str:
        """Do one prompt; return why it cannot be asked, empty if it can."""
        note = ""
        try:
            found = talk(self._collection, number, prompt, self._asker.ask, self._told)
        except (ChatTemplateError, BadDataError) as error:
            found, note = [], f"Prompt {number + 1}: {error}"
        commands.store_collected(self._database, self._collection.id, number, found)
        return note

    def _told(self, replies: int) -> None:
        with self._count:
            self._replies += replies

    def _watch(self) -> None:
        """Say how far the work is; give way to what goes first."""
        first = goes_first(self._database, self._collection)
        if first:
            self._report(f"Giving way: {first}")
            _start_anew(self._collection.id)
        plan = self._collection.plan
        each = plan.replies * plan.replies_each
        total = self._collection.prompts * each
        replies = min(self._collection.done * each + self._replies, total)
        message = f"{replies:,} of {total:,} replies"
        self._is_wanted = commands.report_collection(
            self._database, self._collection.id, replies / total, message
        )


def _start_anew(collection_id: int) -> None:
    """Become a fresh process, the same for all who watch it, that holds nothing."""
    sys.stdout.flush()
    sys.stderr.flush()
    command = [sys.executable, "-m", "trainer", "collect", str(collection_id)]
    os.execv(command[0], command)
