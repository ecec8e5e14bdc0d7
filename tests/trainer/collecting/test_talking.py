"""The conversations that grow from a prompt, with a model that only repeats what it is asked."""

from dataclasses import replace
from datetime import UTC, datetime

from db.enums import CollectionState, Partner, Role
from db.records import Collection, CollectionPlan, Conversation, Message
from trainer.collecting.prompts import UserTurns, from_conversations, from_file, from_lines
from trainer.collecting.talking import FIRST_LINE, Question, Reply, players_view, talk
from trainer.errors import BadDataError

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PROMPT = Conversation(messages=(Message(role=Role.USER, content="Hello"),), system="Be kind.")


def collection(**changes: object) -> Collection:
    plan = replace(CollectionPlan(name="c", base_model="tiny", run_id=7, replies=2), **changes)
    return Collection(
        id=3,
        state=CollectionState.COLLECTING,
        user="local",
        plan=plan,
        prompts=1,
        done=0,
        conversations=0,
        repeats=0,
        device="cpu",
        process="",
        progress=0.0,
        message="",
        error_text="",
        created_at=NOW,
        changed_at=NOW,
    )


class Model:
    """Says the number of messages it was shown; ends, or fills up, when it is told to."""

    def __init__(self, *, says: str = "reply", context: int = 99) -> None:
        self.questions: list[Question] = []
        self._says, self._context = says, context

    def ask(self, question: Question) -> list[Reply]:
        self.questions.append(question)
        if len(question.messages) > self._context:
            raise BadDataError("the prompt is too long")
        said = self._says if question.name == "base" else f"seen {len(question.messages)}"
        return [
            Reply(text=f"{said} {choice}", token_ids=(choice, 2), logprobs=(-0.5, -0.25))
            for choice in range(question.count)
        ]


def test_replies_to_one_prompt_are_one_group_with_their_tokens_and_settings() -> None:
    model, told = Model(), []
    found = talk(collection(temperature=0.5), 4, PROMPT, model.ask, told.append)
    assert [c.group for c in found] == ["collected:3/4"] * 2
    assert {c.source for c in found} == {"collected:3"}
    assert [c.title for c in found] == ["Hello · 1 of 2", "Hello · 2 of 2"]
    reply = found[1].assistant_messages[0]
    assert (reply.content, reply.token_ids, reply.logprobs) == ("seen 2 1", (1, 2), (-0.5, -0.25))
    assert (reply.model, reply.run_id) == ("tiny", 7)
    assert reply.sampling is not None
    assert (reply.sampling["temperature"], reply.sampling["choice"]) == (0.5, 1)
    assert (model.questions[0].name, model.questions[0].count) == ("run-7", 2)
    assert told == [2]


def test_a_script_is_spoken_in_order_by_the_user_of_every_conversation() -> None:
    plan = collection(partner=Partner.SCRIPT, script=("And then?", "Bye"))
    found = talk(plan, 0, PROMPT, Model().ask, lambda _: None)
    for conversation in found:
        users = [m.content for m in conversation.messages if m.role is Role.USER]
        assert users == ["Hello", "And then?", "Bye"]
        assert len(conversation.assistant_messages) == 3


def test_the_played_user_sees_the_roles_swapped_and_nothing_of_the_system_prompt() -> None:
    model = Model(says="What else")
    played = collection(partner=Partner.MODEL, persona="You are impatient.", turns=2, replies=1)
    (found,) = talk(played, 0, PROMPT, model.ask, lambda _: None)
    assert [m.content for m in found.messages] == ["Hello", "seen 2 0", "What else 0", "seen 4 0"]
    asked = next(q for q in model.questions if q.name == "base")
    assert asked.messages == [
        {"role": "system", "content": "You are impatient."},
        {"role": "user", "content": FIRST_LINE},
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "seen 2 0"},
    ]
    assert "Be kind." not in str(players_view("p", PROMPT.messages))


def test_the_played_user_ends_the_conversation_and_so_does_a_full_context() -> None:
    played = collection(partner=Partner.MODEL, persona="p", turns=9, replies=1)
    (ended,) = talk(played, 0, PROMPT, Model(says="Thanks. [END]").ask, lambda _: None)
    assert [m.role for m in ended.messages] == [Role.USER, Role.ASSISTANT]
    scripted = collection(partner=Partner.SCRIPT, script=("a", "b", "c"), replies=1)
    (full,) = talk(scripted, 0, PROMPT, Model(context=4).ask, lambda _: None)
    assert [m.content for m in full.messages] == ["Hello", "seen 2 0", "a", "seen 4 0"]


def test_every_question_has_dice_of_its_own_and_the_same_ones_again() -> None:
    plan = collection(partner=Partner.SCRIPT, script=("a",))
    seeds: list[list[int]] = []
    for _ in range(2):
        model = Model()
        for number in range(2):
            talk(plan, number, PROMPT, model.ask, lambda _: None)
        seeds.append(sorted(question.seed for question in model.questions))
    assert seeds[0] == seeds[1]
    assert len(set(seeds[0])) == 6


def test_prompts_come_from_lines_files_and_chosen_user_turns() -> None:
    lines = from_lines(" a \n\nb\na\n", system="s")
    assert [(p.messages[0].content, p.system) for p in lines] == [("a", "s"), ("b", "s")]
    assert from_file("x.txt", "\ufeffa\nb".encode()) == from_lines("a\nb")
    turns = b'{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "r"}, {"role": "user", "content": "b"}]}'
    assert from_file("x.jsonl", turns, system="s") == from_lines("a", system="s")
    talked = Conversation(
        messages=tuple(
            Message(role=role, content=text)
            for role, text in (
                (Role.USER, "a"),
                (Role.ASSISTANT, "r"),
                (Role.USER, "b"),
                (Role.ASSISTANT, "s"),
            )
        )
    )
    for turns, lengths in ((UserTurns.FIRST, [1]), (UserTurns.LAST, [3]), (UserTurns.EACH, [1, 3])):
        found = from_conversations([talked, talked], turns)
        assert [len(p.messages) for p in found] == lengths


def test_the_model_is_told_of_the_tools_and_what_is_collected_keeps_them() -> None:
    tool = {"type": "function", "function": {"name": "look"}}
    model = Model()
    plan = collection(partner=Partner.SCRIPT, script=("again",))
    found = talk(plan, 0, replace(PROMPT, tools=(tool,)), model.ask, lambda _: None)
    assert [question.tools for question in model.questions] == [(tool,)] * 3
    assert [c.tools for c in found] == [(tool,)] * 2
    assert from_conversations(found, UserTurns.FIRST)[0].tools == (tool,)
