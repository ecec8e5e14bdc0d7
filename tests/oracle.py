"""The seed recipe done the slow, obvious way: what the engine's figures are checked against.

Plain transformers and torch in fp32, one forward pass for each turn over its whole context, the
logits of every position, the loss written token by token. It shares no code with `trainer`.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM

CLIP_LOW, CLIP_HIGH = 0.8, 1.2
RECIPE_OLD_LOGPROB = -0.5


@dataclass(frozen=True)
class OracleTurn:
    """One assistant turn: what the model sees, what it should have said, and how good that was."""

    prompt_ids: tuple[int, ...]
    response_ids: tuple[int, ...]
    advantage: float
    old_logprobs: tuple[float, ...]

    @property
    def tokens(self) -> int:
        """Length of the model input: everything but the last token."""
        return len(self.prompt_ids) + len(self.response_ids) - 1


@dataclass(frozen=True)
class OracleFigures:
    """What the recipe would print for a turn; means are over its response tokens."""

    tokens: int
    response_tokens: int
    loss_mean: float
    loss_sum: float
    ratio_mean: float
    clipfrac: float
    clipfrac_binding: float
    kl_mean: float
    logprob_mean: float


def load(folder: Path) -> Any:
    """Return the base model in `folder`, fp32, in evaluation mode."""
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def load_adapted(folder: Path, adapter: Path) -> Any:
    """Return the base model with the PEFT adapter in `adapter`, its weights trainable."""
    return PeftModel.from_pretrained(load(folder), str(adapter), is_trainable=True).eval()


def recipe_turns(data: Path, tokenizer: Any) -> list[list[OracleTurn]]:
    """Return the turns of each conversation of a recipe file, as the seed's code builds them."""
    conversations = []
    for conversation in json.loads(data.read_text(encoding="utf-8")):
        turns = conversation["turns"]
        mean_reward = sum(turn["reward"] for turn in turns) / len(turns)
        said: list[str] = []
        built = []
        for turn in turns:
            said.append(turn["user"])
            response_ids = tokenizer.encode(turn["assistant"])
            built.append(
                OracleTurn(
                    prompt_ids=tuple(tokenizer.encode(" ".join(said))),
                    response_ids=tuple(response_ids),
                    advantage=turn["reward"] - mean_reward,
                    old_logprobs=(RECIPE_OLD_LOGPROB,) * len(response_ids),
                )
            )
            said.append(turn["assistant"])
        conversations.append(built)
    return conversations


def response_logprobs(model: Any, turn: OracleTurn) -> torch.Tensor:
    """Return the log-probability of each response token, shape (response tokens,)."""
    ids = torch.tensor([turn.prompt_ids + turn.response_ids])
    logits_TV = model(input_ids=ids[:, :-1], use_cache=False).logits[0].float()
    start = len(turn.prompt_ids) - 1
    logprobs_RV = torch.log_softmax(logits_TV[start:], dim=-1)
    return torch.stack([logprobs_RV[i, token] for i, token in enumerate(turn.response_ids)])


def ppo_loss(logprobs: torch.Tensor, turn: OracleTurn) -> torch.Tensor:
    """Return the clipped loss of each response token (Schulman et al. 2017, equation 7)."""
    losses = []
    for logprob, old in zip(logprobs, turn.old_logprobs, strict=True):
        ratio = torch.exp(logprob - old)
        clipped = torch.clamp(ratio, CLIP_LOW, CLIP_HIGH)
        losses.append(-torch.minimum(ratio * turn.advantage, clipped * turn.advantage))
    return torch.stack(losses)


def figures(model: Any, turn: OracleTurn) -> OracleFigures:
    """Return the figures of one turn under `model`."""
    with torch.no_grad():
        logprobs = response_logprobs(model, turn)
        losses = ppo_loss(logprobs, turn).tolist()
    n = len(losses)
    log_ratios = [new - old for new, old in zip(logprobs.tolist(), turn.old_logprobs, strict=True)]
    ratios = [math.exp(value) for value in log_ratios]
    outside = [ratio < CLIP_LOW or ratio > CLIP_HIGH for ratio in ratios]
    binding = [
        (ratio > CLIP_HIGH and turn.advantage > 0) or (ratio < CLIP_LOW and turn.advantage < 0)
        for ratio in ratios
    ]
    return OracleFigures(
        tokens=turn.tokens,
        response_tokens=n,
        loss_mean=sum(losses) / n,
        loss_sum=sum(losses),
        ratio_mean=sum(ratios) / n,
        clipfrac=sum(outside) / n,
        clipfrac_binding=sum(binding) / n,
        kl_mean=sum(r - 1 - d for r, d in zip(ratios, log_ratios, strict=True)) / n,
        logprob_mean=sum(logprobs.tolist()) / n,
    )


@dataclass(frozen=True)
class OraclePass:
    """Each turn's response logprobs, and the gradient of the sum of all token losses by name."""

    logprobs: list[torch.Tensor]
    gradient: dict[str, torch.Tensor]


def passes(model: Any, turns: Sequence[OracleTurn]) -> OraclePass:
    """Propagate each turn on its own and let the gradients accumulate, as the recipe does."""
    model.zero_grad()
    logprobs = []
    for turn in turns:
        scored = response_logprobs(model, turn)
        ppo_loss(scored, turn).sum().backward()
        logprobs.append(scored.detach())
    trainable = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    return OraclePass(logprobs, {n: p.grad.clone() for n, p in trainable if p.grad is not None})
