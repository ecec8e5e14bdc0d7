"""A language model at the decision problem: it is asked in words, and answers with one token."""

from collections.abc import Sequence

import torch
from torch import Tensor

from db.enums import Role
from db.records import Conversation, Message, Score
from db.settings import Settings
from tests.learn.game import SYSTEM, Situation, all_situations, conversation_of
from trainer.config import TrainConfig
from trainer.data.datums import build_datum
from trainer.data.rendering import RenderedTurn, chat_messages, render_prompt
from trainer.data.turns import build_turns, trainable_turns
from trainer.engine.adapter import AdapterShape
from trainer.engine.client import TrainingClient, choose_device
from trainer.engine.policy import Policy
from trainer.engine.types import Datum
from trainer.stepping import adam_params


class Player:
    """A base model with an adapter that learns to play.

    The policy is asked for whole distributions, which the clients do not give out; everything
    that learns goes through the training client.
    """

    def __init__(self, settings: Settings, config: TrainConfig) -> None:
        """Load the configuration's base model with a fresh adapter."""
        shape = AdapterShape(
            base_name=config.base_model,
            rank=config.lora_rank,
            alpha=config.lora_alpha,
            attention=True,
            other=True,
        )
        self._policy = Policy.load(
            settings,
            config.base_model,
            device=choose_device(config.device),
            shape=shape,
            seed=config.seed,
        )
        self.client = TrainingClient(
            self._policy, config.base_model, settings, token_budget=config.token_budget
        )
        self._config = config
        self._tokenizer = self.client.get_tokenizer()
        self._prompts = {situation: self._prompt(situation) for situation in all_situations()}

    def answers(self, situation: Situation) -> Tensor:
        """Return the logprob of each token of the vocabulary as the answer, shape (V,)."""
        ids_1T = torch.tensor([self._prompts[situation]], device=self._policy.device)
        with torch.no_grad():
            output = self._policy.model(input_ids=ids_1T, use_cache=False, logits_to_keep=1)
        return output.logits[0, -1].float().log_softmax(-1).cpu()

    def probability(self, situation: Situation, word: str) -> float:
        """Return the probability of a word as the answer."""
        return float(self.answers(situation)[self._token(word)].exp())

    def play(self, games: int, generator: torch.Generator) -> list[Conversation]:
        """Play games with the present adapter; each turn carries its pay as its score.

        Answers are drawn from the model's whole distribution, at temperature 1. Games that stand
        at the same situation share one pass.
        """
        distributions: dict[Situation, Tensor] = {}
        played: list[Conversation] = []
        for _ in range(games):
            situation: Situation | None = Situation()
            replies: list[Message] = []
            while situation is not None:
                if situation not in distributions:
                    distributions[situation] = self.answers(situation)
                logprobs_V = distributions[situation]
                token = int(torch.multinomial(logprobs_V.exp(), 1, generator=generator))
                replies.append(self._reply(situation, token, float(logprobs_V[token])))
                situation = situation.after(replies[-1].content)
            played.append(conversation_of(replies))
        return played

    def learn_words(self, rate: float) -> None:
        """Imitate both words of each situation equally, one optimiser step."""
        situations = all_situations()
        datums = [
            self._imitation(situation, word, weight=1 / (2 * len(situations)))
            for situation in situations
            for word in situation.words
        ]
        self.client.forward_backward(datums, "cross_entropy").result()
        self._step(rate)

    def learn_from(self, games: Sequence[Conversation], config: TrainConfig) -> float:
        """Take one policy gradient step on games just played.

        Returns:
            The mean probability ratio, which is 1 because the games are on-policy.
        """
        turns = trainable_turns(build_turns(games, config, self._tokenizer), config)
        datums: list[Datum] = []
        for turn in turns:
            sampled = turn.rendered.sampled_logprobs
            assert sampled is not None  # every reply was sampled here
            datums.append(
                build_datum(
                    turn.rendered,
                    advantage=turn.advantage,
                    old_logprobs=sampled,
                    off_policy=False,
                    weight=1 / len(turns),
                )
            )
        output = self.client.forward_backward(datums, config.loss).result()
        self._step(config.learning_rate)
        return output.metrics["ratio:mean"]

    def _step(self, rate: float) -> None:
        self.client.optim_step(adam_params(self._config, rate)).result()

    def _prompt(self, situation: Situation) -> tuple[int, ...]:
        conversation = Conversation(messages=situation.messages, system=SYSTEM)
        messages = chat_messages(conversation)
        return tuple(render_prompt(messages, self._tokenizer, self._config.rendering))

    def _token(self, word: str) -> int:
        ids = self._tokenizer.encode(word, add_special_tokens=False)
        assert len(ids) == 1, f"{word!r} is more than one token"
        return ids[0]

    def _reply(self, situation: Situation, token: int, logprob: float) -> Message:
        said = str(self._tokenizer.decode([token], skip_special_tokens=True))
        return Message(
            role=Role.ASSISTANT,
            content=said,
            token_ids=(token,),
            logprobs=(logprob,),
            scores=(Score(rater="host", value=situation.pay(said)),),
        )

    def _imitation(self, situation: Situation, word: str, *, weight: float) -> Datum:
        turn = RenderedTurn(
            turn=len(situation.answers),
            prompt_ids=self._prompts[situation],
            response_ids=(self._token(word),),
        )
        return build_datum(turn, advantage=0.0, old_logprobs=[0.0], off_policy=False, weight=weight)
