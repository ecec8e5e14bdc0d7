"""The seed recipe's format: {"turns": [{"user", "assistant", "reward"}]}."""

from db.enums import Role
from db.formats.fields import (
    as_list,
    as_object,
    as_score,
    is_object_with,
    optional_text,
    remark_others,
    required,
    required_text,
)
from db.formats.messages import require_messages
from db.formats.result import Format, Notes
from db.records import IMPORTED_RATER, Conversation, Message, Score


def _recognises(row: object) -> bool:
    return is_object_with(row, "turns")


def _parse_row(row: object, notes: Notes) -> Conversation:
    data = as_object(row, "")
    remark_others(data, frozenset({"turns", "system", "title"}), "", notes)
    messages: list[Message] = []
    for index, value in enumerate(as_list(required(data, "turns", ""), "turns")):
        path = f"turns[{index}]"
        turn = as_object(value, path)
        remark_others(turn, frozenset({"user", "assistant", "reward"}), "turns[]", notes)
        messages.append(Message(role=Role.USER, content=required_text(turn, "user", path)))
        reward = turn.get("reward")
        scores = (
            ()
            if reward is None  # not scored, which is not the same as 0
            else (Score(rater=IMPORTED_RATER, value=as_score(reward, f"{path}.reward")),)
        )
        reply = required_text(turn, "assistant", path)
        messages.append(Message(role=Role.ASSISTANT, content=reply, scores=scores))
    return Conversation(
        title=optional_text(data, "title", ""),
        system=optional_text(data, "system", ""),
        messages=require_messages(tuple(messages), "turns"),
    )


RECIPE = Format(name="recipe", recognises=_recognises, parse_row=_parse_row)
