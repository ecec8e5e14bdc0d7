"""Conversations and runs that the database tests share."""

from db import commands
from db.commands.users import user_ids
from db.engine import Database
from db.enums import Role
from db.records import Conversation, Message, Run, Score, StepMetric, TurnMetric


def talk(
    *texts: str, title: str = "", system: str = "", tags: tuple[str, ...] = ()
) -> Conversation:
    """Return a conversation whose messages are the user's and the assistant's by turns."""
    roles = (Role.USER, Role.ASSISTANT)
    messages = tuple(Message(role=roles[i % 2], content=text) for i, text in enumerate(texts))
    return Conversation(title=title, system=system, tags=tags, messages=messages)


def scored_talk(*pairs: tuple[str, float | None], rater: str = "imported") -> Conversation:
    """Return a conversation of one question and reply for each (reply, score)."""
    messages: list[Message] = []
    for reply, value in pairs:
        scores = () if value is None else (Score(rater=rater, value=value),)
        messages.append(Message(role=Role.USER, content=f"ask for {reply}"))
        messages.append(Message(role=Role.ASSISTANT, content=reply, scores=scores))
    return Conversation(messages=tuple(messages))


def rated_talk(
    *turns: dict[str, float],
    replies: tuple[str, ...] = (),
    title: str = "",
    tags: tuple[str, ...] = (),
) -> Conversation:
    """Return a conversation with one reply for each dictionary of rater -> score."""
    messages: list[Message] = []
    for number, given in enumerate(turns, start=1):
        scores = tuple(Score(rater=rater, value=value) for rater, value in given.items())
        reply = replies[number - 1] if replies else f"reply {number}"
        messages.append(Message(role=Role.USER, content=f"{title} question {number}"))
        messages.append(Message(role=Role.ASSISTANT, content=reply, scores=scores))
    return Conversation(messages=tuple(messages), title=title, tags=tags)


def rater_id(database: Database, name: str) -> int:
    """Return the id of a person, who is made an annotator if there is nobody of that name."""
    with database.session() as session:
        return user_ids(session, [name])[name]


def queued_run(database: Database, name: str = "run", *, snapshot: str = "ab" * 32) -> Run:
    """Create a run that only waits for the device."""
    run = commands.create_run(
        database,
        name=name,
        config={"epochs": 2},
        base_model="tiny",
        conversations=1,
        turns=2,
        start_token=f"token-{name}",
    )
    commands.set_snapshot(database, run.id, snapshot)
    return run


def turn_metric(
    *, step: int, conversation: int = 0, turn: int = 0, loss_mean: float = -0.25
) -> TurnMetric:
    """Return a turn's figures."""
    return TurnMetric(
        epoch=0,
        step=step,
        conversation=conversation,
        turn=turn,
        tokens=13,
        response_tokens=7,
        reward=None,
        advantage=0.5,
        loss_mean=loss_mean,
        loss_sum=-1.75,
        ratio_mean=1.0,
        clipfrac=0.0,
        clipfrac_binding=0.0,
        kl_mean=0.0,
        logprob_mean=-2.0,
        kl_base=None,
    )


def step_metric(*, step: int, loss: float = 0.5) -> StepMetric:
    """Return a step's figures."""
    return StepMetric(
        step=step,
        epoch=0,
        loss=loss,
        grad_norm=1.0,
        lr=1e-4,
        kl=0.0,
        kl_base=0.25,
        tokens_per_s=100.0,
        memory_bytes=3 * 2**31,
        seconds=1.5,
    )
