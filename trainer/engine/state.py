"""A training client's state on disk: adapter, optimiser, random numbers, and what they belong to.

The folder is a plain PEFT adapter with two files beside it.
"""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from trainer.engine.adapter import AdapterShape, read_finite_adapter
from trainer.engine.folders import STATE_FILE
from trainer.engine.optimizer import Optimizer
from trainer.engine.policy import Policy
from trainer.errors import CheckpointError

OPTIMIZER_FILE = "optimizer.safetensors"
RANDOM_FILE = "random.safetensors"
VERSION = 1


def write_state(folder: Path, policy: Policy, optimizer: Optimizer, facts: dict[str, Any]) -> None:
    """Write the state; gradients that no optimiser step has used yet are not part of it.

    Args:
        folder: Where to; an empty folder.
        policy: Its adapter is written.
        optimizer: Its moments are written.
        facts: JSON data that say what the state belongs to; `read_state` compares them.
    """
    policy.write(folder)
    optimizer.write(folder / OPTIMIZER_FILE)
    random: dict[str, Tensor] = {"cpu": torch.get_rng_state()}
    if policy.device.type == "cuda":
        random["cuda"] = torch.cuda.get_rng_state(policy.device)
    save_file(random, folder / RANDOM_FILE)
    text = json.dumps({"version": VERSION, **facts}, indent=2)
    (folder / STATE_FILE).write_text(text + "\n", encoding="utf-8")


def read_state(
    folder: Path, policy: Policy, optimizer: Optimizer | None, facts: dict[str, Any]
) -> None:
    """Load the adapter and, if an optimiser is given, its moments and the random state.

    Raises:
        CheckpointError: if the folder is incomplete or belongs to another model or adapter.
    """
    found = _read_facts(folder)
    expected = {"version": VERSION, **facts}
    for key, value in expected.items():
        if found.get(key) != value:
            raise CheckpointError(
                f"it was written with {key} {found.get(key)!r}, not {value!r}",
                where=str(folder),
                remedy="Load it into a client made with the same base model and adapter settings.",
            )
    tensors = read_finite_adapter(folder)
    if optimizer is None:
        policy.set_tensors(tensors, origin=str(folder))
        return
    # Everything is read and found good before anything changes.
    moments, random = optimizer.read(folder / OPTIMIZER_FILE), _read_random(folder / RANDOM_FILE)
    policy.set_tensors(tensors, origin=str(folder))
    optimizer.set_moments(moments)
    torch.set_rng_state(random["cpu"])
    if policy.device.type == "cuda" and "cuda" in random:
        torch.cuda.set_rng_state(random["cuda"], policy.device)


def read_shape(folder: Path) -> AdapterShape:
    """Return the shape of the adapter in a saved state, and with it the base model's name.

    Raises:
        CheckpointError: if the folder holds no finished state.
    """
    facts = {key: value for key, value in _read_facts(folder).items() if key != "version"}
    try:
        return AdapterShape(**facts)
    except TypeError as error:
        raise CheckpointError(
            f"{STATE_FILE} does not describe an adapter ({error})", where=str(folder)
        ) from error


def _read_random(file: Path) -> dict[str, Tensor]:
    try:
        random = load_file(file)
        torch.Generator().set_state(random["cpu"])
    except (OSError, SafetensorError, KeyError, RuntimeError, TypeError) as error:
        raise CheckpointError(
            f"{file.name} cannot be read ({error})",
            where=str(file.parent),
            remedy="Take a state that was written whole, or load it without the optimiser.",
        ) from error
    return random


def _read_facts(folder: Path) -> dict[str, Any]:
    try:
        facts = json.loads((folder / STATE_FILE).read_text(encoding="utf-8"))
        if not isinstance(facts, dict):
            raise ValueError("it holds no object")
        return facts
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(
            f"{STATE_FILE} cannot be read ({error})",
            where=str(folder),
            remedy="Name a folder that `save_state` has finished writing.",
        ) from error
