"""The example conversations that ship with EveryTurn: what is there, and how to load a set."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from db.errors import NotFoundError
from db.formats import parse
from db.records import Conversation


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleSet:
    """One set of example conversations.

    Attributes:
        name: What `load_example` takes.
        title: What people see.
        description: One or two sentences: what the set shows.
        file: Native JSONL file beside this module.
    """

    name: str
    title: str
    description: str
    file: str


EXAMPLE_SETS = (
    ExampleSet(
        name="seed",
        title="Two short conversations",
        description="The smallest set: two conversations of two turns, all scored. "
        "Trains within a minute or two; the published figures of the recipe were measured on it.",
        file="seed.jsonl",
    ),
    ExampleSet(
        name="dialogue",
        title="Open dialogue",
        description="Does a reply remember what was said, answer what was asked and keep the "
        "tone? Travel, feelings, cooking, language, science.",
        file="dialogue.jsonl",
    ),
    ExampleSet(
        name="negotiation",
        title="Negotiation",
        description="Prices, salaries, deadlines and a kitchen. Giving in early reads nicely "
        "and ends badly: the whole conversation's score says so.",
        file="negotiation.jsonl",
    ),
    ExampleSet(
        name="problem_solving",
        title="Problem solving by iteration",
        description="Code, maths and plans. The user reports what went wrong, and the next reply "
        "has to use it.",
        file="problem_solving.jsonl",
    ),
    ExampleSet(
        name="customer_service",
        title="Customer service",
        description="Cases over several turns. Asking for the order number costs a turn and "
        "solves the case; a quick promise does the opposite.",
        file="customer_service.jsonl",
    ),
)


def load_example(name: str) -> tuple[Conversation, ...]:
    """Return the conversations of one set, with the source "example:<name>".

    Raises:
        NotFoundError: if there is no set of that name.
    """
    chosen = next((example for example in EXAMPLE_SETS if example.name == name), None)
    if chosen is None:
        raise NotFoundError(
            f"there is no example set named {name!r}",
            where="example sets",
            remedy=f"The sets are: {', '.join(example.name for example in EXAMPLE_SETS)}.",
        )
    data = (Path(__file__).parent / chosen.file).read_bytes()
    parsed = parse(data, format="native")
    return tuple(dataclasses.replace(c, source=f"example:{name}") for c in parsed.conversations)
