"""What can be wrong with a batch of datums, found before anything is computed with it.

Each message names the datum, by its place in the batch, and its field.
"""

import math
from collections.abc import Sequence

from trainer.engine.inputs import needed_inputs
from trainer.engine.losses import LossFunction
from trainer.engine.types import INPUT_DTYPES, Datum
from trainer.errors import BadDataError, NotFiniteError


def check_datums(data: Sequence[Datum], loss: LossFunction, vocabulary: int) -> None:
    """Check a batch.

    Args:
        data: The batch.
        loss: The loss that is to be computed.
        vocabulary: How many token ids the model knows, from 0.

    Raises:
        BadDataError: if a datum lacks a field, or has one that is unknown, of another length, of
            the wrong type, or with token ids that the model does not know.
        NotFiniteError: if a number that the loss would use is NaN or Inf.
    """
    for index, datum in enumerate(data):
        if not isinstance(datum, Datum):
            raise BadDataError(
                f"it is a {type(datum).__name__}",
                where=f"datum {index}",
                remedy="Build each example with `Datum(model_input=..., loss_fn_inputs=...)`.",
            )
        _check_fields(index, datum, loss)
        _check_ids(index, "model_input", datum.model_input.tokens, vocabulary)
        targets = datum.loss_fn_inputs["target_tokens"].data
        _check_ids(index, "target_tokens", [int(target) for target in targets], vocabulary)
        _check_finite(index, datum)


def _check_fields(index: int, datum: Datum, loss: LossFunction) -> None:
    inputs, length = datum.loss_fn_inputs, datum.model_input.length
    if not length:
        raise BadDataError(
            "it holds no token", where=_place(index, "model_input"), remedy="Leave it out."
        )
    for field in needed_inputs(loss):
        if field not in inputs:
            raise BadDataError(
                f"it is missing, and the loss {loss!r} needs it",
                where=_place(index, field),
                remedy=f"Give one number for each of the {length} tokens of the model input.",
            )
    for field, values in inputs.items():
        if field not in INPUT_DTYPES:
            raise BadDataError(
                "there is no such field",
                where=_place(index, field),
                remedy=f"Known are {', '.join(INPUT_DTYPES)}.",
            )
        if len(values) != length or (values.shape is not None and len(values.shape) != 1):
            shape = tuple(values.shape or (len(values),))
            raise BadDataError(
                f"its shape is {shape}, and the model input has {length} tokens",
                where=_place(index, field),
                remedy="Give one number for each token; input and targets are the same text, "
                "shifted by one.",
            )
    if inputs["target_tokens"].dtype != "int64":
        raise BadDataError(
            "token ids are whole numbers, and these are floats",
            where=_place(index, "target_tokens"),
            remedy="Give it as int64.",
        )


def _check_ids(index: int, field: str, ids: Sequence[int], vocabulary: int) -> None:
    lowest, highest = min(ids), max(ids)
    if lowest >= 0 and highest < vocabulary:
        return
    raise BadDataError(
        f"token id {highest if highest >= vocabulary else lowest} is outside the model's "
        f"vocabulary of {vocabulary}",
        where=_place(index, field),
        remedy="Encode the text with this model's own tokenizer.",
    )


def _check_finite(index: int, datum: Datum) -> None:
    inputs = datum.loss_fn_inputs
    weights = inputs["weights"].data if "weights" in inputs else None
    for field, values in inputs.items():
        # A sum is finite only if all its terms are, and costs a fraction of looking at each.
        if field == "target_tokens" or math.isfinite(sum(values.data)):
            continue
        for position, value in enumerate(values.data):
            is_used = field == "weights" or weights is None or weights[position] != 0
            if is_used and not math.isfinite(value):
                raise NotFiniteError(
                    f"{value} stands at position {position}",
                    where=_place(index, field),
                    remedy="Look at this turn's score and stored log-probabilities.",
                    datum=index,
                )


def _place(index: int, field: str) -> str:
    return f"datum {index}, field {field!r}"
