"""A rendered turn and its advantage become a datum: what each position predicts and weighs."""

from collections.abc import Sequence

from trainer.data.rendering import RenderedTurn
from trainer.engine.types import Datum, ModelInput, TensorData


def build_datum(
    turn: RenderedTurn,
    *,
    advantage: float,
    old_logprobs: Sequence[float],
    off_policy: bool,
    weight: float = 1.0,
    reference_logprobs: Sequence[float] | None = None,
) -> Datum:
    """Return the datum of one turn.

    Input and target are the same ids shifted by one. The first `len(prompt) - 1` positions
    predict prompt tokens and carry weight 0; the remaining `len(response)` positions predict the
    reply and carry the advantage, the old log-probabilities and the weight.

    Args:
        turn: Prompt and response ids.
        advantage: The same for each response token.
        old_logprobs: One a response token, in nats.
        off_policy: Whether no known policy sampled the reply (switches the guard on).
        weight: Factor on each response token's loss.
        reference_logprobs: One a response token, in nats, under the policy that KL is measured to;
            None measures none.
    """
    for given in (old_logprobs, reference_logprobs):
        if given is not None and len(given) != len(turn.response_ids):
            raise ValueError(f"{len(given)} logprobs for {len(turn.response_ids)} response tokens")
    ids = [*turn.prompt_ids, *turn.response_ids]
    context = len(turn.prompt_ids) - 1
    response = len(turn.response_ids)

    def on_response(value: float) -> list[float]:
        return [0.0] * context + [value] * response

    def of_response(values: Sequence[float]) -> TensorData:
        return TensorData.from_list([*[0.0] * context, *values], "float32")

    inputs = {
        "target_tokens": TensorData.from_list(ids[1:], "int64"),
        "logprobs": of_response(old_logprobs),
        "advantages": TensorData.from_list(on_response(advantage), "float32"),
        "weights": TensorData.from_list(on_response(weight), "float32"),
    }
    if off_policy:
        inputs["off_policy"] = TensorData.from_list(on_response(1.0), "float32")
    if reference_logprobs is not None:
        inputs["reference_logprobs"] = of_response(reference_logprobs)
    return Datum(model_input=ModelInput.from_ints(ids[:-1]), loss_fn_inputs=inputs)
