"""Many token sequences laid out as one: each distinct prefix becomes one node, depth first.

In a conversation every turn's input begins with the turns before it. Run through a model one by
one, the shared beginnings are computed again and again; as a tree they are computed once. Nodes
are numbered depth first, so that the descendants of node j are exactly j+1 .. end[j]-1, and
"node i may see node j" (j is i or an ancestor of i) is j <= i < end[j]. The node's depth is its
position in every sequence that goes through it.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PrefixTree:
    """A forest of token sequences in depth-first order.

    Attributes:
        tokens: Token id of each node, shape (N,).
        depth: Position of each node in its sequences, from 0, shape (N,).
        end: One past the last descendant of each node, shape (N,).
        nodes: For each sequence, the node of each of its positions.
    """

    tokens: tuple[int, ...]
    depth: tuple[int, ...]
    end: tuple[int, ...]
    nodes: tuple[tuple[int, ...], ...]

    def __len__(self) -> int:
        """Return the number of nodes, the distinct prefixes of all sequences."""
        return len(self.tokens)

    @property
    def is_chain(self) -> bool:
        """Whether no node has two children and there is one root: plain causal attention."""
        return all(end == len(self.tokens) for end in self.end)


class GrowingTree:
    """A prefix tree while sequences are still being added; nodes are in order of arrival."""

    def __init__(self) -> None:
        """Start empty."""
        self._child: dict[tuple[int, int], int] = {}
        self._tokens: list[int] = []
        self._parent: list[int] = []
        self._paths: list[list[int]] = []

    def __len__(self) -> int:
        """Return the number of distinct nodes so far."""
        return len(self._tokens)

    def new_nodes(self, sequence: Sequence[int]) -> int:
        """Return how many nodes `add` would create for this sequence."""
        node = -1
        for position, token in enumerate(sequence):
            child = self._child.get((node, token))
            if child is None:
                return len(sequence) - position
            node = child
        return 0

    def add(self, sequence: Sequence[int]) -> None:
        """Add a sequence of token ids."""
        node = -1
        path: list[int] = []
        for token in sequence:
            key = (node, token)
            child = self._child.get(key)
            if child is None:
                child = len(self._tokens)
                self._child[key] = child
                self._tokens.append(token)
                self._parent.append(node)
            path.append(child)
            node = child
        self._paths.append(path)

    def lay_out(self) -> PrefixTree:
        """Number the nodes depth first, children in order of arrival."""
        count = len(self._tokens)
        # Parents arrive before their children: one backward sweep gives every subtree's size,
        # one forward sweep hands each child its place behind its elder siblings.
        size = [1] * count
        for node in range(count - 1, -1, -1):
            parent = self._parent[node]
            if parent >= 0:
                size[parent] += size[node]
        place = [0] * count
        depth = [0] * count
        next_free = [0] * count
        next_root = 0
        for node, parent in enumerate(self._parent):
            if parent < 0:
                place[node], next_root = next_root, next_root + size[node]
            else:
                place[node] = next_free[parent]
                next_free[parent] += size[node]
                depth[node] = depth[parent] + 1
            next_free[node] = place[node] + 1
        order = sorted(range(count), key=place.__getitem__)
        return PrefixTree(
            tokens=tuple(self._tokens[node] for node in order),
            depth=tuple(depth[node] for node in order),
            end=tuple(place[node] + size[node] for node in order),
            nodes=tuple(tuple(place[node] for node in path) for path in self._paths),
        )


def build_prefix_tree(sequences: Sequence[Sequence[int]]) -> PrefixTree:
    """Return the prefix tree of the sequences; time and memory grow with their total length."""
    tree = GrowingTree()
    for sequence in sequences:
        tree.add(sequence)
    return tree.lay_out()


def count_distinct(sequences: Sequence[Sequence[int]]) -> int:
    """Return how many tokens the model has to compute for all sequences in one tree."""
    tree = GrowingTree()
    for sequence in sequences:
        tree.add(sequence)
    return len(tree)


def pack(
    sequences: Sequence[Sequence[int]], token_budget: int, goes_on: Sequence[bool] = ()
) -> list[range]:
    """Split the sequences, in order, into runs whose trees have at most `token_budget` nodes.

    Args:
        sequences: The sequences.
        token_budget: Most nodes of a run; a sequence that is longer gets a run of its own.
        goes_on: For each sequence, whether it belongs into the run of the one before it, whatever
            the budget: cutting a conversation would compute its beginning twice. Empty for no.

    Returns:
        Consecutive ranges of indices that together cover all sequences.
    """
    packs: list[range] = []
    tree, start = GrowingTree(), 0
    for index, sequence in enumerate(sequences):
        may_cut = index > start and not (goes_on and goes_on[index])
        if may_cut and len(tree) + tree.new_nodes(sequence) > token_budget:
            packs.append(range(start, index))
            tree, start = GrowingTree(), index
        tree.add(sequence)
    if len(sequences) > start:
        packs.append(range(start, len(sequences)))
    return packs


def common_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    """Return how many tokens both sequences begin with."""
    for position, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return position
    return min(len(one), len(other))
