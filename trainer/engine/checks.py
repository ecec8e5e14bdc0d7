"""What can be wrong with a batch of datums, found before anything is computed with it.

Each message names the datum, by its place in the batch, and its field.
"""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import get_args

from trainer.engine.inputs import needed_inputs
from trainer.engine.losses import LossFunction
from trainer.engine.tensor_data import DType, TensorData
from trainer.engine.types import INPUT_DTYPES, Datum, ModelInput
from trainer.errors import BadDataError, NotFiniteError, shortened

LARGEST = 3.4e38
"""Beyond that a number is Inf in fp32."""


def check_datums(
    data: Sequence[Datum], loss: LossFunction, vocabulary: int, context_tokens: int | None
) -> None:
    """Check a batch.

    Args:
        data: The batch.
        loss: The loss that is to be computed.
        vocabulary: How many token ids the model knows, from 0.
        context_tokens: How many tokens the model sees at once; None if that is not known.

    Raises:
        BadDataError: if it is no batch; if a datum lacks a field, or has one that is unknown, of
            another length, of the wrong type, or with token ids that the model does not know; or
            if it is longer than what the model sees.
        NotFiniteError: if a number that the loss would use is NaN or Inf.
    """
    if not isinstance(data, Sequence):
        raise BadDataError(
            f"it is a {type(data).__name__}", where="data", remedy="Give a list of datums."
        )
    for index, datum in enumerate(data):
        if not isinstance(datum, Datum):
            raise BadDataError(
                f"it is a {type(datum).__name__}",
                where=f"datum {index}",
                remedy="Build each example with `Datum(model_input=..., loss_fn_inputs=...)`.",
            )
        _check_input(index, datum, context_tokens)
        _check_fields(index, datum, loss)
        _check_ids(index, "model_input", datum.model_input.tokens, vocabulary)
        targets = datum.loss_fn_inputs["target_tokens"].data
        _check_ids(index, "target_tokens", targets, vocabulary)
        _check_finite(index, datum)


def _check_input(index: int, datum: Datum, context_tokens: int | None) -> None:
    place = _place(index, "model_input")
    if not isinstance(datum.model_input, ModelInput):
        raise BadDataError(
            f"it is a {type(datum.model_input).__name__}",
            where=place,
            remedy="Build it with `ModelInput.from_ints(tokens)`.",
        )
    if not datum.model_input.length:
        raise BadDataError("it holds no token", where=place, remedy="Leave it out.")
    if context_tokens is not None and datum.model_input.length > context_tokens:
        raise BadDataError(
            f"it has {datum.model_input.length} tokens, and the model sees {context_tokens}",
            where=place,
            remedy="Leave it out, or shorten it from the front.",
        )


def _check_fields(index: int, datum: Datum, loss: LossFunction) -> None:
    inputs, length = datum.loss_fn_inputs, datum.model_input.length
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
        _check_values(index, field, values)
        shape = (len(values),) if values.shape is None else tuple(values.shape)
        if shape != (length,) or len(values) != length:
            raise BadDataError(
                f"its shape is {shape}, and the model input has {length} tokens",
                where=_place(index, field),
                remedy="Give one number for each token; input and targets are the same text, "
                "shifted by one.",
            )
    targets = inputs["target_tokens"]
    if targets.dtype != "int64" or not _are_all(targets, Integral):
        raise BadDataError(
            "token ids are whole numbers, and these are floats",
            where=_place(index, "target_tokens"),
            remedy="Give it as int64.",
        )


def _check_values(index: int, field: str, values: TensorData) -> None:
    if not isinstance(values, TensorData):
        problem = f"it is a {type(values).__name__}, not TensorData"
    elif values.dtype not in get_args(DType):
        problem = f"there is no dtype {shortened(repr(values.dtype))}"
    elif not _are_all(values, Real):
        problem = "it holds something that is no number"
    else:
        return
    raise BadDataError(
        problem,
        where=_place(index, field),
        remedy="Give a list, array or tensor of numbers to `Datum`.",
    )


def _are_all(values: TensorData, kind: type) -> bool:
    return all(issubclass(found, kind) for found in set(map(type, values.data)))


def _check_ids(
    index: int, field: str, ids: Sequence[int] | Sequence[float], vocabulary: int
) -> None:
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
        if field == "target_tokens":
            continue
        for position, value in enumerate(values.data):
            is_used = field == "weights" or weights is None or weights[position] != 0
            if is_used and not abs(value) < LARGEST:
                raise NotFiniteError(
                    f"{shortened(str(value))} stands at position {position}",
                    where=_place(index, field),
                    remedy="Look at this turn's score and stored log-probabilities.",
                    datum=index,
                )


def _place(index: int, field: str) -> str:
    return f"datum {index}, field {field!r}"
