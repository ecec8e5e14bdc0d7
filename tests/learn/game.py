"""The three-turn decision problem as a chat: what the host says, and what each answer pays.

In spring, to *eat* the grain pays 0.6 and leaves the field bare; to *plant* it pays nothing and
the field turns green. In summer and in autumn, to *pick* pays 0.7 from a green field and 0.1 from
a bare one; to *rest* pays nothing. Planting is worth 1.4 in all, eating 0.8; discounted, planting
is better where γ + γ² > 1, that is from γ = 0.618 on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from db.enums import Role
from db.records import Conversation, Message

SYSTEM = "Answer with one word."
SPRING = "Spring. You have a sack of grain: eat or plant?"
LATER = (
    "Summer. Your field is {field}: pick or rest?",
    "Autumn. Your field is {field}: pick or rest?",
)
GREEDY, INVEST = "eat", "plant"
PICK, REST = "pick", "rest"
TURNS = 3

EAT_PAY, GREEN_PAY, BARE_PAY = 0.6, 0.7, 0.1
NO_ANSWER_PAY = -0.5
"""What any other answer than the two words costs; it also ends the game."""

BEST_RETURN, GREEDY_RETURN = 2 * GREEN_PAY, EAT_PAY + 2 * BARE_PAY


@dataclass(frozen=True, slots=True)
class Situation:
    """A point of the game at which the model is asked, known by the answers so far."""

    answers: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, str]:
        """The two answers that count here."""
        return (PICK, REST) if self.answers else (GREEDY, INVEST)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation up to the question, without the system prompt."""
        said: list[Message] = []
        for turn, answer in enumerate(self.answers):
            said.append(Message(role=Role.USER, content=self._question(turn)))
            said.append(Message(role=Role.ASSISTANT, content=answer))
        return (*said, Message(role=Role.USER, content=self._question(len(self.answers))))

    def pay(self, answer: str) -> float:
        """Return the reward of an answer given here."""
        if answer not in self.words:
            return NO_ANSWER_PAY
        if not self.answers:
            return EAT_PAY if answer == GREEDY else 0.0
        if answer == REST:
            return 0.0
        return GREEN_PAY if self.answers[0] == INVEST else BARE_PAY

    def after(self, answer: str) -> "Situation | None":
        """Return the next situation, None if the game is over."""
        if answer not in self.words or len(self.answers) == TURNS - 1:
            return None
        return Situation((*self.answers, answer))

    def _question(self, turn: int) -> str:
        if turn == 0:
            return SPRING
        return LATER[turn - 1].format(field="green" if self.answers[0] == INVEST else "bare")


def all_situations() -> list[Situation]:
    """Return the seven situations that a game of counting answers can reach."""
    first, later = (GREEDY, INVEST), (PICK, REST)
    return [
        Situation(answers)
        for turn in range(TURNS)
        for answers in product(*(first, later, later)[:turn])
    ]


def conversation_of(replies: Sequence[Message]) -> Conversation:
    """Return the game in which these replies were given, as a conversation."""
    answers = tuple(reply.content for reply in replies)
    questions = Situation(answers[:-1]).messages[::2]
    messages = [message for pair in zip(questions, replies, strict=True) for message in pair]
    return Conversation(messages=tuple(messages), system=SYSTEM)
