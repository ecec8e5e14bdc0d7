"""What a model remembers of a token sequence: keys and values, copied where two sequences part."""

import copy
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from torch import Tensor
from transformers import DynamicCache

SMALLEST_CAPACITY = 256
"""Room, in tokens, that a fresh store has; it doubles when it is full."""


class Store(Protocol):
    """Keys and values of the tokens that went through the model so far."""

    @property
    def length(self) -> int:
        """How many tokens they are of."""
        ...

    @property
    def size_bytes(self) -> int:
        """How much memory they take."""
        ...

    def prefix(self, length: int) -> "Store | None":
        """Return a copy for the first `length` tokens, None if this kind cannot be cut."""
        ...


@dataclass(slots=True)
class RowStore:
    """Keys and values of one sequence, for passes over rows of several sequences.

    Attributes:
        length: Tokens that are complete in every layer.
        layers: For each layer keys and values, each of shape (1, G, capacity, D).
    """

    length: int = 0
    layers: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        """How much memory the keys and values take, spare room included."""
        return sum(part.nbytes for pair in self.layers.values() for part in pair)

    def append(self, layer: int, key_1GND: Tensor, value_1GND: Tensor) -> tuple[Tensor, Tensor]:
        """Put the newest tokens' keys and values of a layer behind the others; return them all.

        The tokens count once `length` is set to include them, after the last layer.
        """
        stop = self.length + key_1GND.shape[2]
        if layer not in self.layers or self.layers[layer][0].shape[2] < stop:
            self.layers[layer] = self._larger(layer, key_1GND, stop)
        keys, values = self.layers[layer]
        keys[:, :, self.length : stop] = key_1GND
        values[:, :, self.length : stop] = value_1GND
        return keys[:, :, :stop], values[:, :, :stop]

    def prefix(self, length: int) -> Self:
        """Return a copy for the first `length` tokens."""
        capacity = _capacity(length)
        layers = {
            layer: (_resized(keys, length, capacity), _resized(values, length, capacity))
            for layer, (keys, values) in self.layers.items()
        }
        return type(self)(length, layers)

    def _larger(self, layer: int, like_1GND: Tensor, tokens: int) -> tuple[Tensor, Tensor]:
        capacity = _capacity(tokens)
        if layer not in self.layers:
            shape = (*like_1GND.shape[:2], capacity, like_1GND.shape[3])
            return like_1GND.new_empty(shape), like_1GND.new_empty(shape)
        keys, values = self.layers[layer]
        return _resized(keys, self.length, capacity), _resized(values, self.length, capacity)


def _capacity(tokens: int) -> int:
    capacity = SMALLEST_CAPACITY
    while capacity < tokens:
        capacity *= 2
    return capacity


def _resized(tensor_1GCD: Tensor, length: int, capacity: int) -> Tensor:
    larger = tensor_1GCD.new_empty(*tensor_1GCD.shape[:2], capacity, tensor_1GCD.shape[3])
    larger[:, :, :length] = tensor_1GCD[:, :, :length]
    return larger


@dataclass(slots=True)
class CacheStore:
    """The cache of transformers, for models whose layers are not all full causal attention.

    Attributes:
        cache: What transformers keeps of the sequence.
        length: How many tokens went through the model.
    """

    cache: DynamicCache
    length: int = 0

    @property
    def size_bytes(self) -> int:
        """How much memory the cache's tensors take."""
        return sum(
            part.nbytes
            for layer in self.cache.layers
            for part in vars(layer).values()
            if isinstance(part, Tensor)
        )

    def prefix(self, length: int) -> Self | None:
        """Return a copy; None for less than the whole, since such layers forget what has passed."""
        return copy.deepcopy(self) if length == self.length else None


@dataclass(frozen=True, slots=True)
class Remembered:
    """A finished sequence that may be continued.

    Attributes:
        owner: What computed it: the adapter, or the base.
        tokens: Those whose keys and values are kept.
        store: The keys and values.
    """

    owner: Any
    tokens: tuple[int, ...]
    store: Store


class Memory:
    """Finished sequences, so that the next turn of a conversation computes only its new tokens."""

    def __init__(self, limit_bytes: float) -> None:
        """Keep as many of the latest as fit into `limit_bytes`."""
        self._limit_bytes = limit_bytes
        self._kept: list[Remembered] = []

    @property
    def size_bytes(self) -> int:
        """How much memory the kept sequences take."""
        return sum(kept.store.size_bytes for kept in self._kept)

    def recall(self, owner: Any, prompt: tuple[int, ...]) -> Store | None:
        """Return keys and values of as much of a prompt as is known, all but its last token at most.

        The last token is left to compute, since the prediction comes from it.
        """
        best: Remembered | None = None
        best_length = 0
        for kept in self._kept:
            if kept.owner is owner:
                length = min(_common(kept.tokens, prompt), len(prompt) - 1)
                if length > best_length:
                    best, best_length = kept, length
        if best is None:
            return None
        self._kept.remove(best)
        self._kept.append(best)  # the latest are last
        return best.store.prefix(best_length)

    def keep(self, owner: Any, tokens: tuple[int, ...], store: Store) -> None:
        """Remember a sequence in the place of those that it continues; the oldest have to go."""
        self._kept = [
            kept
            for kept in self._kept
            if kept.owner is not owner or tokens[: len(kept.tokens)] != kept.tokens
        ]
        self._kept.append(Remembered(owner, tokens, store))
        self.shrink()

    def shrink(self, beside_bytes: int = 0) -> None:
        """Forget the oldest until what is kept fits beside what else is in use."""
        while self._kept and self.size_bytes + beside_bytes > self._limit_bytes:
            del self._kept[0]

    def forget(self, owner: Any) -> None:
        """Forget what one adapter computed."""
        self._kept = [kept for kept in self._kept if kept.owner is not owner]


def _common(left: tuple[int, ...], right: tuple[int, ...]) -> int:
    """Return the length of the longest common prefix."""
    length = min(len(left), len(right))
    if left[:length] == right[:length]:
        return length
    return next(i for i in range(length) if left[i] != right[i])
