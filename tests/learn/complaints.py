"""Two-turn complaints, each answered in two styles: with a step offered, or with sympathy alone.

The preferred style says that it has understood and offers one concrete step as a question ("Got
it. Shall I send a new one?"). The other is what such models say by themselves: it is sorry, and
talks on. Three goods share each trouble, so that whole troubles can be kept for the test.
"""

import random
from dataclasses import dataclass

from db.enums import Role
from db.records import Conversation, Message, Score

GOODS = 3
"""Goods that each trouble happens to."""

OFFER = "shall i "
"""What marks the preferred style in a reply, in lower case."""

UNDERSTOOD = ("Got it.", "I see.", "Understood.")
SORRY = (
    "I'm sorry to hear that.",
    "I understand how frustrating this must be.",
    "Thank you for bringing this to our attention.",
)


@dataclass(frozen=True, slots=True)
class Trouble:
    """What went wrong with three goods: what the customer says, and both replies, in two turns.

    Attributes:
        opening: What the customer says first, with a place for the good.
        offers: The step offered in each turn.
        talk: What is said instead in each turn.
        follow_up: What the customer says then.
    """

    goods: tuple[str, str, str]
    opening: str
    offers: tuple[str, str]
    talk: tuple[str, str]
    follow_up: str


TROUBLES = (
    Trouble(
        ("parcel", "bookcase", "birthday cake"),
        "My {good} has not arrived yet.",
        ("Shall I ask the driver where it is?", "Shall I have it brought to your neighbour?"),
        ("Deliveries can take longer than expected.", "Many customers are not at home by day."),
        "I won't be at home tomorrow.",
    ),
    Trouble(
        ("lamp", "mirror", "teapot"),
        "The {good} arrived broken.",
        ("Shall I send a new one today?", "Shall I book a van for the pieces?"),
        ("Fragile things can break on their way.", "Broken things are not nice to have around."),
        "And what do I do with the pieces?",
    ),
    Trouble(
        ("jacket", "ring", "pair of boots"),
        "The {good} is too small for me.",
        ("Shall I exchange it for the next size?", "Shall I keep one aside for you?"),
        ("Sizes can differ between makers.", "Popular sizes are often sold out."),
        "Is the next size still there?",
    ),
    Trouble(
        ("sofa", "scarf", "bicycle"),
        "The {good} came in the wrong colour.",
        ("Shall I swap it for the right one?", "Shall I lower the price by ten per cent?"),
        ("Colours can look different on a screen.", "Colour is a matter of taste for many people."),
        "I could also live with this colour.",
    ),
    Trouble(
        ("desk", "tent", "pram"),
        "A part of the {good} is missing.",
        ("Shall I post that part to you?", "Shall I look up its name in the manual?"),
        ("Many parts go into a box like this.", "Our manuals explain all the parts in detail."),
        "I don't know what the part is called.",
    ),
    Trouble(
        ("camera", "magazine", "hotel room"),
        "I was charged twice for the {good}.",
        ("Shall I pay one of them back?", "Shall I write to your bank as well?"),
        ("Payments can be complicated at times.", "Banks have rules of their own."),
        "My bank says it knows nothing.",
    ),
    Trouble(
        ("printer", "vacuum cleaner", "radio"),
        "The {good} does not switch on.",
        ("Shall I go through the first checks with you?", "Shall I send you a new cable?"),
        ("Devices have many reasons to fail.", "Cables are an important part of every device."),
        "The cable looks damaged to me.",
    ),
    Trouble(
        ("gym membership", "newspaper", "phone contract"),
        "I want to cancel my {good}.",
        ("Shall I end it this month?", "Shall I send you that in writing?"),
        ("We are always sad to see people go.", "Trust is very important to our company."),
        "How can I be sure that it has ended?",
    ),
    Trouble(
        ("concert", "museum", "ferry"),
        "I booked the {good} for the wrong day.",
        ("Shall I move it to another day?", "Shall I look for seats on Sunday?"),
        ("Dates are easily mixed up.", "Weekends are a popular time for everybody."),
        "Sunday would suit me best.",
    ),
    Trouble(
        ("coffee", "soup", "fish"),
        "The {good} I ordered was cold.",
        ("Shall I bring you a hot one?", "Shall I take it off the bill?"),
        ("Our kitchen is busy in the evening.", "Guests have different expectations."),
        "By now I am no longer hungry.",
    ),
    Trouble(
        ("account", "mailbox", "photo album"),
        "I cannot log in to my {good}.",
        ("Shall I reset the password for you?", "Shall I text the code to your phone?"),
        ("Passwords are an important part of safety.", "E-mail can be slow for many reasons."),
        "I no longer use that e-mail address.",
    ),
    Trouble(
        ("heating", "lift", "washing machine"),
        "The {good} in our house makes a loud noise.",
        ("Shall I send somebody to look at it?", "Shall I make it early in the morning?"),
        ("Machines do make sounds when they run.", "Our people have a lot to do these days."),
        "I have to leave for work at nine.",
    ),
)


@dataclass(frozen=True, slots=True)
class Case:
    """One complaint with its replies in both styles, one a turn."""

    asks: tuple[str, str]
    preferred: tuple[str, str]
    other: tuple[str, str]

    def conversation(self, *, preferred: bool) -> Conversation:
        """Return the complaint answered in one style, each reply scored: 1 or -1."""
        value = 1.0 if preferred else -1.0
        messages: list[Message] = []
        for ask, reply in zip(self.asks, self.preferred if preferred else self.other, strict=True):
            scores = (Score(rater="test", value=value),)
            messages.append(Message(role=Role.USER, content=ask))
            messages.append(Message(role=Role.ASSISTANT, content=reply, scores=scores))
        return Conversation(messages=tuple(messages))


def cases(trouble: Trouble) -> list[Case]:
    """Return the three complaints of a trouble."""
    found: list[Case] = []
    for place, good in enumerate(trouble.goods):
        known, sorry = UNDERSTOOD[place], SORRY[place]
        again, still = UNDERSTOOD[place - 1], SORRY[place - 1]
        found.append(
            Case(
                asks=(trouble.opening.format(good=good), trouble.follow_up),
                preferred=(f"{known} {trouble.offers[0]}", f"{again} {trouble.offers[1]}"),
                other=(f"{sorry} {trouble.talk[0]}", f"{still} {trouble.talk[1]}"),
            )
        )
    return found


def split(seed: int, held_out_troubles: int) -> tuple[list[Case], list[Case]]:
    """Return the cases to train on, and those of the troubles that are kept for the test."""
    troubles = list(TROUBLES)
    random.Random(seed).shuffle(troubles)
    held_out, trained = troubles[:held_out_troubles], troubles[held_out_troubles:]
    return [c for t in trained for c in cases(t)], [c for t in held_out for c in cases(t)]


def offers_a_step(reply: str) -> bool:
    """Return whether a reply offers a step as a question, in the preferred style's words."""
    _, found, rest = reply.lower().partition(OFFER)
    return bool(found) and "?" in rest
