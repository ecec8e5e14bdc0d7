"""The closed vocabularies of the database."""

from enum import StrEnum


class Role(StrEnum):
    """Who wrote a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class UserRole(StrEnum):
    """What a person may do."""

    ADMIN = "admin"
    ANNOTATOR = "annotator"


class ScoreScale(StrEnum):
    """How people give scores; what is stored is the same finite number in [-1, 1] for all."""

    UNIT = "unit"
    STARS = "stars"
    THUMBS = "thumbs"
    SIGNED = "signed"


class Aggregation(StrEnum):
    """How the scores of several people on one turn become the one number that training uses."""

    MEAN = "mean"
    MEDIAN = "median"
    ADJUDICATED = "adjudicated"
    ONE_RATER = "one_rater"


class LabelAction(StrEnum):
    """What a key can do on the label page, beside the keys that give scores."""

    PREVIOUS_TURN = "previous_turn"
    NEXT_TURN = "next_turn"
    PREVIOUS_CONVERSATION = "previous_conversation"
    NEXT_CONVERSATION = "next_conversation"
    DONE = "done"
    UNDO = "undo"
    REDO = "redo"
    SKIP = "skip"
    FLAG = "flag"
    NOTE = "note"
    HELP = "help"


class ReviewState(StrEnum):
    """Where a conversation stands in one person's labelling queue."""

    OPEN = "open"
    DONE = "done"
    SKIPPED = "skipped"
    FLAGGED = "flagged"


class RunStatus(StrEnum):
    """Where a run stands: queued -> starting -> running (-> stopping) -> one of the four ends.

    `interrupted` is the end of a run whose machine went down under it: nothing is wrong with it.
    """

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    FINISHED = "finished"
    FAILED = "failed"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"

    @property
    def has_process(self) -> bool:
        """Whether a process should exist for a run in this state."""
        return self in (RunStatus.STARTING, RunStatus.RUNNING, RunStatus.STOPPING)

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will happen by itself."""
        return self is RunStatus.FINISHED or self.can_resume

    @property
    def can_resume(self) -> bool:
        """Whether it ended before its time, so that it may go on from its last checkpoint."""
        return self in (RunStatus.FAILED, RunStatus.STOPPED, RunStatus.INTERRUPTED)


class StopStage(StrEnum):
    """How far a stop has gone: the run is asked, then its process told to end, then killed."""

    ASKED = "asked"
    TERMINATED = "terminated"
    KILLED = "killed"


class ImportState(StrEnum):
    """Where an import stands: checking -> checked -> importing -> done (-> undone)."""

    CHECKING = "checking"
    CHECKED = "checked"
    IMPORTING = "importing"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNDONE = "undone"

    @property
    def has_process(self) -> bool:
        """Whether a process should exist for an import in this state."""
        return self in (ImportState.CHECKING, ImportState.IMPORTING)


class CollectionState(StrEnum):
    """Where a collection stands; one that failed or was cancelled may go on where it ended."""

    COLLECTING = "collecting"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def can_go_on(self) -> bool:
        """Whether it ended before its time."""
        return self in (CollectionState.FAILED, CollectionState.CANCELLED)


class Partner(StrEnum):
    """Who speaks between the replies that a model is asked for."""

    NOBODY = "nobody"
    """The conversation ends with the first reply."""
    SCRIPT = "script"
    """What was written down beforehand."""
    MODEL = "model"
    """The base model, told to play the user."""


class ErrorKind(StrEnum):
    """The kinds of failure that a person can act on."""

    OUT_OF_MEMORY = "out_of_memory"
    MODEL = "model"
    CHAT_TEMPLATE = "chat_template"
    BAD_DATA = "bad_data"
    BAD_CONFIG = "bad_config"
    NOT_A_NUMBER = "not_a_number"
    DISK_FULL = "disk_full"
    KILLED = "killed"
    INTERRUPTED = "interrupted"
    FOLDER_GONE = "folder_gone"
    ENDPOINT = "endpoint"
    UNEXPECTED = "unexpected"


class ArtifactKind(StrEnum):
    """What a run leaves behind in its folder."""

    ADAPTER = "adapter"
    METRICS = "metrics"
    SAMPLES = "samples"
    SUMMARY = "summary"
