"""A short trial of a model on this machine: how fast it trains, and what it holds in memory."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import psutil
import torch
import transformers
from torch import nn

from db.settings import Settings
from trainer.catalog import model_folder
from trainer.choices import LossName
from trainer.config import TrainConfig
from trainer.engine.activations import ActivationMemory
from trainer.engine.adapter import AdapterShape
from trainer.engine.client import choose_device
from trainer.engine.memory import FREE_SHARE, memory_limit_bytes
from trainer.engine.policy import Policy
from trainer.engine.training_client import TrainingClient
from trainer.engine.types import AdamParams, Datum, ModelInput, SamplingParams, TensorData
from trainer.errors import OutOfMemoryError
from trainer.models import load_base_model, load_tokenizer
from trainer.pass_costs import Calibration, PassMemory, PassTime

LENGTHS = (64, 256, 1024)
"""Lengths of the passes that are timed, in tokens; the warm-up has the first."""

LONGEST_S = 20.0
"""A longer pass is left out if it would take more than this."""

REPEAT_S = 2.0
"""Passes shorter than this are timed twice, and the faster one counts."""

ANSWER_TOKENS = 16


def calibrate(settings: Settings, config: TrainConfig) -> Calibration:
    """Load the model and time a few passes.

    Half of the tokens are replies whose logprobs are asked for, as in most conversations.

    Raises:
        ModelError: if the model cannot be had or loaded.
        OutOfMemoryError: if its weights are larger than what is free.
    """
    device = choose_device(config.device)
    _refuse_what_is_too_large(model_folder(settings, config.base_model), free_bytes(config))
    before_bytes = _held_bytes(device)
    started = time.perf_counter()
    model = load_base_model(
        settings, config.base_model, device=device, precision=config.base_precision
    )
    shape = AdapterShape(
        base_name=config.base_model, rank=config.lora_rank, alpha=config.lora_alpha
    )
    tokenizer = load_tokenizer(settings, config.base_model)
    policy = Policy(model, tokenizer, shape, seed=config.seed)
    load_s = time.perf_counter() - started
    resident_bytes = _held_bytes(device)

    client = TrainingClient(policy, config.base_model, settings, token_budget=LENGTHS[-1])
    vocabulary = cast(nn.Embedding, model.get_input_embeddings()).num_embeddings
    data = {length: [_datum(length, vocabulary)] for length in LENGTHS}

    def forward_backward(length: int) -> float:
        return _timed(
            lambda: client.forward_backward(data[length], LossName.CROSS_ENTROPY).result()
        )

    forward_backward(LENGTHS[0])
    measured = [(LENGTHS[0], forward_backward(LENGTHS[0]))]
    for length in LENGTHS[1:]:
        before, taken = measured[-1]
        if taken * length / before > LONGEST_S:
            break
        measured.append((length, forward_backward(length)))
    length, both_s = measured[min(1, len(measured) - 1)]
    forward_s = _timed(lambda: client.forward(data[length], LossName.CROSS_ENTROPY).result())
    client.optim_step(AdamParams()).result()
    forward_backward(LENGTHS[0])
    return Calibration(
        pass_time=PassTime.fit(measured),
        forward_share=min(1.0, forward_s / both_s),
        step_s=_timed(lambda: client.optim_step(AdamParams()).result(), repeat=False),
        answer_token_s=_answer_token_s(client, data[LENGTHS[0]][0].model_input),
        load_s=load_s,
        pass_memory=_pass_memory(policy.activations),
        resident_bytes=resident_bytes,
        model_bytes=max(0, resident_bytes - before_bytes),
        optimizer_bytes=4 * sum(p.numel() * p.element_size() for p in policy.trainable().values()),
        shares_prefixes=policy.shares_prefixes,
    )


def free_bytes(config: TrainConfig) -> float:
    """Return what is free now on the device that a run would use."""
    return memory_limit_bytes(choose_device(config.device)) / FREE_SHARE


def facts(settings: Settings, config: TrainConfig) -> dict[str, Any]:
    """Return, as JSON data, all that a calibration depends on."""
    device, folder = choose_device(config.device), model_folder(settings, config.base_model)
    files = [(path, path.stat()) for path in sorted(folder.glob("*.safetensors"))]
    return {
        "model": str(folder),
        "files": [[path.name, stat.st_size, stat.st_mtime_ns] for path, stat in files],
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "cores": psutil.cpu_count(),
        "threads": torch.get_num_threads(),
        "base_precision": config.base_precision.value,
        "lora_rank": config.lora_rank,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }


def _refuse_what_is_too_large(folder: Path, free: float) -> None:
    """Raise if the weights alone would not fit: the system would end the process without a word."""
    weights = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    if weights > free:
        raise OutOfMemoryError(
            f"the model's weights take at least {weights / 1e9:.1f} GB, and {free / 1e9:.1f} GB "
            "are free",
            where=str(folder),
            remedy="Free some memory, or choose a smaller model.",
        )


def _held_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.memory_allocated(device)
    return psutil.Process().memory_info().rss


def _datum(length: int, vocabulary: int) -> Datum:
    generator = torch.Generator().manual_seed(length)
    ids = torch.randint(vocabulary, (length + 1,), generator=generator).tolist()
    replies = [0.0] * (length // 2) + [1.0] * (length - length // 2)
    inputs = {
        "target_tokens": TensorData.from_list(ids[1:], "int64"),
        "weights": TensorData.from_list(replies, "float32"),
    }
    return Datum(ModelInput.from_ints(ids[:-1]), inputs)


def _timed(compute: Callable[[], object], *, repeat: bool = True) -> float:
    """Return the seconds of a computation, of two tries the faster if they are short."""
    started = time.perf_counter()
    compute()
    taken = time.perf_counter() - started
    return min(taken, _timed(compute, repeat=False)) if repeat and taken < REPEAT_S else taken


def _answer_token_s(client: TrainingClient, prompt: ModelInput) -> float:
    sampler = client.save_weights_and_get_sampling_client()
    params = SamplingParams(max_tokens=ANSWER_TOKENS, temperature=0.0)
    started = time.perf_counter()
    (answer,) = sampler.sample(prompt, 1, params).result().sequences
    return (time.perf_counter() - started) / max(1, len(answer.tokens))


def _pass_memory(activations: ActivationMemory) -> PassMemory:
    """Return the engine's own reckoning, which is linear in the tokens."""
    fixed = activations.needed_bytes(0, 0)
    return PassMemory(
        fixed_bytes=fixed,
        kept_bytes=activations.needed_bytes(1, 0) - fixed,
        recomputed_bytes=activations.needed_bytes(1, activations.layers) - fixed,
    )
