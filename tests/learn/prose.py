"""Ordinary text, and how surprised a model is by it."""

import math
from collections.abc import Sequence
from statistics import fmean

from db.enums import Role
from db.records import Conversation, Message
from trainer.config import Rendering
from trainer.data.datums import build_datum
from trainer.data.rendering import RenderedTurn, render_conversation
from trainer.engine.client import TrainingClient

PARAGRAPHS = (
    (
        "Tell me about a river.",
        "The river rises in the hills behind the town and reaches the sea after about forty "
        "miles. In winter it floods the lower meadows, and the farmers move their cattle to the "
        "slopes. Two stone bridges cross it. The older one was built by the monks, who charged a "
        "small toll, and the newer one by the railway company, which did not want to wait for a "
        "ferry.",
    ),
    (
        "How do I bake bread?",
        "Bread needs only flour, water, salt and time. Mix the dough in the evening, cover the "
        "bowl with a cloth and leave it in a cool place overnight. In the morning the dough should "
        "have doubled in size. Shape it gently, let it rest for another hour, and bake it in a "
        "very hot oven until the crust is dark and the loaf sounds hollow when you knock on it.",
    ),
    (
        "What makes a good map?",
        "A good map leaves things out. It shows the roads to somebody who drives, the depths to "
        "somebody who sails, and the slopes to somebody who walks, but never all of them at once. "
        "When everything is drawn, nothing can be found. The first question of a person who makes "
        "a map is therefore not what is there, but who is going to use it, and for what.",
    ),
    (
        "How do birds travel in autumn?",
        "Most birds that leave in autumn travel at night. The air is calmer then, hawks are "
        "asleep, and the stars help them to keep their direction. During the day they rest and "
        "feed. A small warbler may lose a third of its weight on one crossing of the sea, and it "
        "has to find food soon after it lands. This is why a single dry spring can empty a whole "
        "valley of song.",
    ),
)
"""Questions, and paragraphs that answer them. Written for this test."""


class Prose:
    """The paragraphs in a model's tokens: bare, and as replies to their questions."""

    def __init__(self, client: TrainingClient) -> None:
        """Ask this client, as it is at each time."""
        self._client = client
        self._tokenizer = client.get_tokenizer()

    def bare(self) -> float:
        """Return the perplexity of the paragraphs by themselves, but for their first tokens."""
        turns: list[RenderedTurn] = []
        for _, paragraph in PARAGRAPHS:
            first, *rest = self._tokenizer.encode(paragraph)
            turns.append(RenderedTurn(turn=0, prompt_ids=(first,), response_ids=tuple(rest)))
        return self._perplexity(turns)

    def as_replies(self) -> float:
        """Return the perplexity of the paragraphs as replies in a chat."""
        return self._perplexity(
            [
                turn
                for question, paragraph in PARAGRAPHS
                for turn in render_conversation(
                    Conversation(
                        messages=(
                            Message(role=Role.USER, content=question),
                            Message(role=Role.ASSISTANT, content=paragraph),
                        )
                    ),
                    self._tokenizer,
                    Rendering.TEMPLATE,
                )
            ]
        )

    def _perplexity(self, turns: Sequence[RenderedTurn]) -> float:
        datums = [
            build_datum(
                turn,
                advantage=0.0,
                old_logprobs=[0.0] * len(turn.response_ids),
                off_policy=False,
            )
            for turn in turns
        ]
        outputs = self._client.forward(datums, "cross_entropy").result().loss_fn_outputs
        return perplexity(
            [
                output["logprobs"].tolist()[-len(turn.response_ids) :]
                for turn, output in zip(turns, outputs, strict=True)
            ]
        )


def perplexity(logprobs: Sequence[Sequence[float]]) -> float:
    """Return the perplexity of texts given the logprobs of their tokens: one mean over all."""
    every = [logprob for text in logprobs for logprob in text]
    return math.exp(-fmean(every))
