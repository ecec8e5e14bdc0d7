"""The plainest way to a turn's log-probabilities: one pass a turn, all logits. For checks only."""

import torch
from transformers import PreTrainedModel

from trainer.engine.types import Datum, TensorData


@torch.no_grad()
def plain_logprobs(model: PreTrainedModel, datum: Datum) -> TensorData:
    """Return the log-probability of each target token of one datum, computed in fp32.

    Args:
        model: A causal language model; called once with the datum's tokens and nothing else.
        datum: Supplies input and target tokens.
    """
    tokens_1T = torch.tensor([datum.model_input.to_ints()], device=model.device)
    logits_TV = model(input_ids=tokens_1T, use_cache=False).logits[0].float()
    targets_T = datum.loss_fn_inputs["target_tokens"].to_torch().to(model.device)
    logprobs_TV = logits_TV.log_softmax(dim=-1)
    return TensorData.from_torch(logprobs_TV.gather(1, targets_T[:, None])[:, 0].cpu())
