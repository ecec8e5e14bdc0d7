"""What the engine is compared with: the same gradient by transformers and peft, written plainly.

Every way calls the model on whole sequences and lets `backward` accumulate into `.grad`; none uses
anything of `trainer.engine` but the datum's type. The padded batch needs no attention mask: under
causal attention no token sees the padding to its right, and without a mask SDPA is at its fastest.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModelForCausalLM

from trainer.engine.types import Datum

CLIP_LOW, CLIP_HIGH = 0.8, 1.2


@dataclass(frozen=True, slots=True)
class PlainPass:
    """One forward and backward pass.

    Attributes:
        data: What goes through the model together.
        stands_for: Its time is counted this often, in place of its neighbours'.
    """

    data: Sequence[Datum]
    stands_for: int = 1


@dataclass(frozen=True, slots=True)
class Baseline:
    """A way to train, as passes and what is done in each."""

    title: str
    split: Callable[[Sequence[Datum], int], list[PlainPass]]
    run: Callable[[PeftModel, Sequence[Datum]], None]


def load_plain(base: Path, adapter: Path, **options: Any) -> PeftModel:
    """Return the base model under the adapter, its weights trainable, in evaluation mode."""
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32, **options)
    return PeftModel.from_pretrained(model, str(adapter), is_trainable=True).eval()


def one_by_one(data: Sequence[Datum], token_budget: int) -> list[PlainPass]:
    """Give each turn a pass of its own."""
    return [PlainPass([datum]) for datum in data]


def micro_batches(data: Sequence[Datum], token_budget: int) -> list[PlainPass]:
    """Put turns of similar length together, up to `token_budget` tokens with their padding."""
    batches: list[list[Datum]] = []
    for datum in sorted(data, key=lambda datum: datum.model_input.length):
        if batches and datum.model_input.length * (len(batches[-1]) + 1) <= token_budget:
            batches[-1].append(datum)
        else:
            batches.append([datum])
    return [PlainPass(batch) for batch in batches]


def thinned(passes: Sequence[PlainPass], group: int) -> list[PlainPass]:
    """Let the middle one of each `group` passes over single turns of similar length stand for all.

    A pass costs a + bT + cT² with c > 0, so that the middle one of evenly spaced lengths costs no
    more than their mean: what is lost in precision is lost in favour of the way that is thinned.

    Args:
        passes: Passes over single turns, thinned, and over several, all kept.
        group: Odd, or a divisor of how many turns have the same length; 1 keeps every pass.
    """
    singles = [plain_pass for plain_pass in passes if len(plain_pass.data) == 1]
    singles.sort(key=lambda plain_pass: plain_pass.data[0].model_input.length)
    whole = len(singles) - len(singles) % group
    middles = singles[group // 2 : whole : group]
    return [
        *(plain_pass for plain_pass in passes if len(plain_pass.data) > 1),
        *(PlainPass(plain_pass.data, stands_for=group) for plain_pass in middles),
        *singles[whole:],
    ]


def full_logits(model: PeftModel, data: Sequence[Datum]) -> None:
    """Do as the published recipe: logits and log-softmax of every position, then a mask."""
    for datum in data:
        logits_TV = model(input_ids=_ids(datum)[None], use_cache=False).logits[0]
        logprobs_TV = torch.log_softmax(logits_TV, dim=-1)
        targets_T = datum.loss_fn_inputs["target_tokens"].to_torch()
        logprobs_T = logprobs_TV.gather(1, targets_T[:, None])[:, 0]
        _loss(logprobs_T, [datum], slice(None)).backward()


def selective_logits(model: PeftModel, data: Sequence[Datum]) -> None:
    """Ask for the logits of the last positions alone, from which the reply is predicted."""
    for datum in data:
        keep = int((datum.loss_fn_inputs["weights"].to_torch() != 0).sum())
        output = model(input_ids=_ids(datum)[None], use_cache=False, logits_to_keep=keep)
        targets_R = datum.loss_fn_inputs["target_tokens"].to_torch()[-keep:]
        logprobs_RV = torch.log_softmax(output.logits[0], dim=-1)
        logprobs_R = logprobs_RV.gather(1, targets_R[:, None])[:, 0]
        _loss(logprobs_R, [datum], slice(-keep, None)).backward()


def padded_batch(model: PeftModel, data: Sequence[Datum]) -> None:
    """Pad the turns to the right, and project the hidden states that predict a reply."""
    ids_BT = pad_sequence([_ids(datum) for datum in data], batch_first=True)
    is_trained_BT = pad_sequence(
        [datum.loss_fn_inputs["weights"].to_torch() != 0 for datum in data], batch_first=True
    )
    causal_model: Any = model.get_base_model()
    hidden_BTH = causal_model.base_model(input_ids=ids_BT, use_cache=False).last_hidden_state
    logits_PV = causal_model.get_output_embeddings()(hidden_BTH[is_trained_BT])
    is_trained = torch.cat([datum.loss_fn_inputs["weights"].to_torch() != 0 for datum in data])
    targets_P = _gathered(data, "target_tokens")[is_trained]
    logprobs_P = torch.log_softmax(logits_PV, dim=-1).gather(1, targets_P[:, None])[:, 0]
    _loss(logprobs_P, data, is_trained).backward()


BASELINES = {
    "full": Baseline("a turn, full logits", one_by_one, full_logits),
    "selective": Baseline("a turn, selective logits", one_by_one, selective_logits),
    "padded": Baseline("padded batch", micro_batches, padded_batch),
}


def _ids(datum: Datum) -> Tensor:
    return torch.tensor(datum.model_input.to_ints())


def _gathered(data: Sequence[Datum], key: str) -> Tensor:
    """Return one loss input of all datums, end to end."""
    return torch.cat([datum.loss_fn_inputs[key].to_torch() for datum in data])


def _loss(logprobs_P: Tensor, data: Sequence[Datum], chosen: slice | Tensor) -> Tensor:
    """Return the weighted sum of -min(ρA, clip(ρ)A) over the chosen positions of the datums."""
    advantages_P = _gathered(data, "advantages")[chosen]
    ratios_P = torch.exp(logprobs_P - _gathered(data, "logprobs")[chosen])
    clipped_P = ratios_P.clamp(CLIP_LOW, CLIP_HIGH)
    losses_P = -torch.minimum(ratios_P * advantages_P, clipped_P * advantages_P)
    return (losses_P * _gathered(data, "weights")[chosen]).sum()
