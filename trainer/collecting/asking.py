"""A loaded model, asked from several threads at once; what they ask together is computed together."""

import queue
from dataclasses import dataclass, field

from db.records import CollectionPlan
from trainer.collecting.talking import Question, Reply
from trainer.data.sampled import prompt_mark
from trainer.engine.types import SamplingParams
from trainer.serving.jobs import Event, Failed, Finished, Job, Token
from trainer.serving.model import ServedModel


@dataclass(slots=True)
class _Told:
    """What has come of one choice so far."""

    text: str = ""
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    is_complete: bool = False


class Asker:
    """Asks a served model."""

    def __init__(self, model: ServedModel, plan: CollectionPlan) -> None:
        """Ask `model`, sampling as the plan says."""
        self._model = model
        self._plan = plan

    def ask(self, question: Question) -> list[Reply]:
        """Return the replies to a question, as many as it wants.

        Raises:
            ContextError, ChatTemplateError: if the model cannot be asked this.
            EveryTurnError: whatever else keeps the model from answering.
        """
        prompt = self._model.prompt(question.messages, question.tools)
        room = self._model.context_tokens - len(prompt)
        events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._model.scheduler.submit(
            Job(
                name=question.name,
                prompt=prompt,
                params=SamplingParams(
                    max_tokens=min(self._plan.max_tokens, room),
                    temperature=self._plan.temperature,
                    top_p=self._plan.top_p,
                    seed=question.seed,
                ),
                choices=question.count,
                likeliest=0,
                send=events.put,
            )
        )
        told = [_Told() for _ in range(question.count)]
        while not all(one.is_complete for one in told):
            event = events.get()
            if isinstance(event, Failed):
                raise event.error
            if isinstance(event, Token):
                one = told[event.choice]
                one.text += event.text
                one.token_ids.append(event.sampled.token)
                one.logprobs.append(event.sampled.logprob)
            elif isinstance(event, Finished):
                told[event.choice].text += event.text
                told[event.choice].is_complete = True
        return [
            Reply(
                text=one.text.strip(),
                token_ids=tuple(one.token_ids),
                logprobs=tuple(one.logprobs),
                prompt_mark=prompt_mark(prompt),
            )
            for one in told
        ]
