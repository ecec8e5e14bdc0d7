"""The published recipe's run, held against its figures and against a plain pass a turn."""

from dataclasses import asdict, dataclass
from typing import Any

from db.examples import load_example
from db.settings import Settings
from trainer.catalog import EMBEDDED_MODEL, find_model
from trainer.config import Preset, TrainConfig
from trainer.data.datums import build_datum
from trainer.data.turns import build_turns, trainable_turns
from trainer.engine.client import ServiceClient, choose_device
from trainer.engine.losses import LossConfig
from trainer.engine.metrics import TurnFigures, turn_figures
from trainer.engine.sharing import plain_logprobs
from trainer.engine.types import TensorData
from trainer.errors import ModelError
from trainer.models import load_base_model, pull
from trainer.presets import RECIPE_OLD_LOGPROB

RECIPE_MODEL = "Qwen/Qwen3-0.6B"

TOLERANCE = 1e-4
"""Largest difference allowed between the engine and a plain pass a turn (fp32)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One line of the published table, as printed there."""

    tokens: int
    response_tokens: int
    loss_mean: float
    ratio_mean: float
    clipfrac: float


PUBLISHED = (
    Published(tokens=13, response_tokens=7, loss_mean=-0.043, ratio_mean=1.04, clipfrac=0.86),
    Published(tokens=33, response_tokens=14, loss_mean=0.048, ratio_mean=0.59, clipfrac=0.93),
)
"""Turns 1 and 2 of the first conversation in epoch 0, on Qwen3-0.6B."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedTurn:
    """The figures of one turn, measured twice."""

    tokens: int
    response_tokens: int
    engine: TurnFigures
    plain: TurnFigures
    published: Published | None

    @property
    def difference(self) -> float:
        """Largest difference between the engine's figures and the plain pass's."""
        pairs = zip(asdict(self.engine).values(), asdict(self.plain).values(), strict=True)
        return max(abs(left - right) for left, right in pairs if left is not None)

    @property
    def agrees_with_recipe(self) -> bool:
        """Whether the figures equal the published ones to the printed digits.

        Loss and ratio may differ by one more unit of the last digit: another machine's rounding.
        """
        if self.published is None:
            return True
        counts = (self.tokens, self.response_tokens)
        told = self.published
        return (
            counts == (told.tokens, told.response_tokens)
            and abs(self.engine.loss_mean - told.loss_mean) <= 0.0015
            and abs(self.engine.ratio_mean - told.ratio_mean) <= 0.015
            and abs(self.engine.clipfrac - told.clipfrac) <= 0.005
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """What `verify` found."""

    model: str
    turns: tuple[VerifiedTurn, ...]
    notes: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether everything that could be verified holds."""
        return all(turn.difference <= TOLERANCE and turn.agrees_with_recipe for turn in self.turns)

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON data."""
        return {
            "model": self.model,
            "passed": self.passed,
            "largest_difference": max(turn.difference for turn in self.turns),
            "turns": [asdict(turn) for turn in self.turns],
            "notes": list(self.notes),
        }

    def to_text(self) -> str:
        """Return the published table and the measured one, side by side."""
        lines = [
            *self.notes,
            "",
            f"The recipe's first epoch: published on {RECIPE_MODEL}, measured on {self.model}",
            "",
            "turn  tokens  response     loss:mean         ratio:mean        clipfrac     "
            "clip binds  engine − plain",
            "                   published  measured   publ.  measured   publ.  measured",
        ]
        for number, turn in enumerate(self.turns):
            told = PUBLISHED[number] if number < len(PUBLISHED) else None
            lines.append(
                f"{number + 1:>4}  {turn.tokens:>6}  {turn.response_tokens:>8}  "
                f"{_told(told and told.loss_mean, 7, 3)}  {turn.engine.loss_mean:>+8.4f}  "
                f"{_told(told and told.ratio_mean, 6, 2)}  {turn.engine.ratio_mean:>8.4f}  "
                f"{_told(told and told.clipfrac, 6, 2)}  {turn.engine.clipfrac:>8.4f}  "
                f"{turn.engine.clipfrac_binding:>10.4f}  {turn.difference:>14.1e}"
            )
        largest = max(turn.difference for turn in self.turns)
        lines += [
            "",
            f"Engine against one plain pass a turn: largest difference {largest:.1e}, allowed "
            f"{TOLERANCE:.0e}.",
            *self._published_verdict(),
            "Verified." if self.passed else "NOT verified.",
        ]
        return "\n".join(lines).strip()

    def _published_verdict(self) -> list[str]:
        compared = [turn for turn in self.turns if turn.published is not None]
        if not compared:
            return []
        agrees = all(turn.agrees_with_recipe for turn in compared)
        return [f"Published figures: {'equal' if agrees else 'NOT equal'} to the printed digits."]


def verify(settings: Settings, model: str | None) -> VerifyReport:
    """Run the recipe's first epoch on the published conversations, twice, and compare.

    Args:
        settings: Where the models are.
        model: The base model; None takes the recipe's where it can be had, else the embedded one.

    Raises:
        ModelError: if `model` is given and cannot be had.
    """
    notes: list[str] = []
    if model is None:
        model = _recipe_model_or_embedded(settings, notes)
    config = TrainConfig.for_preset(Preset.RECIPE, base_model=model)
    client = ServiceClient(settings=settings).create_lora_training_client(
        model, rank=config.lora_rank, seed=config.seed, train_unembed=False, alpha=config.lora_alpha
    )
    table = build_turns(load_example("seed"), config, client.get_tokenizer())
    turns = trainable_turns(table, config)
    datums = [
        build_datum(
            turn.rendered,
            advantage=turn.advantage,
            old_logprobs=[RECIPE_OLD_LOGPROB] * len(turn.rendered.response_ids),
            off_policy=False,
        )
        for turn in turns
    ]
    output = client.forward_backward(datums, "ppo").result()
    base = load_base_model(settings, model, device=choose_device("cpu")).float()
    sequences = [turn.rendered.prompt_ids + turn.rendered.response_ids for turn in turns]
    is_recipe_model = find_model(settings, model).hub_id == RECIPE_MODEL
    verified = [
        VerifiedTurn(
            tokens=datum.model_input.length,
            response_tokens=len(turn.rendered.response_ids),
            engine=turn_figures("ppo", datum, fields["logprobs"], LossConfig()),
            plain=turn_figures("ppo", datum, TensorData.from_torch(plain_T), LossConfig()),
            published=PUBLISHED[i] if is_recipe_model and i < len(PUBLISHED) else None,
        )
        for i, (turn, datum, fields, plain_T) in enumerate(
            zip(
                turns,
                datums,
                output.loss_fn_outputs,
                plain_logprobs(base, sequences),
                strict=True,
            )
        )
    ]
    if not is_recipe_model:
        notes.append(
            f"{model} has figures of its own; what is verified on it is that the engine equals "
            "one plain pass a turn."
        )
    return VerifyReport(model=model, turns=tuple(verified), notes=tuple(notes))


def _recipe_model_or_embedded(settings: Settings, notes: list[str]) -> str:
    try:
        pull(settings, RECIPE_MODEL)
    except ModelError as error:
        notes.append(f"The published figures cannot be checked here. {error}")
        return EMBEDDED_MODEL
    return RECIPE_MODEL


def _told(value: float | None, width: int, digits: int) -> str:
    return "–".rjust(width) if value is None else f"{value:>{width}.{digits}f}"
