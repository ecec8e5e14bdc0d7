"""How much shared prefixes save: one pass a conversation against one pass a turn, in one run.

Prints a table and writes the same figures to `bench.json` in EVERYTURN_HOME. Only ratios are
worth quoting: the machine's speed drifts, and both sides are measured in turn.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence

import torch

from db.settings import read_settings
from trainer.config import EMBEDDED_MODEL
from trainer.data.datums import build_datum
from trainer.data.rendering import RenderedTurn
from trainer.engine.client import ServiceClient, TrainingClient
from trainer.engine.types import Datum

USER_TOKENS, REPLY_TOKENS = 60, 120
TURN_COUNTS = (1, 2, 4, 8)
REPEATS = 2


def main() -> None:
    """Measure and print."""
    settings = read_settings()
    client = ServiceClient(settings=settings).create_lora_training_client(
        EMBEDDED_MODEL, rank=16, seed=0, train_unembed=False, token_budget=8192
    )
    rows = [measure(client, conversation(turns)) for turns in TURN_COUNTS]
    print(f"{EMBEDDED_MODEL}, fp32, {torch.get_num_threads()} threads, {client.device}")
    print(
        f"{USER_TOKENS} + {REPLY_TOKENS} tokens a turn, forward and backward, median of {REPEATS}"
    )
    print("turns  tokens a turn way  computed  seconds a turn way  seconds shared  times as fast")
    for row in rows:
        print(
            f"{row['turns']:>5}  {row['turn_tokens']:>17}  {row['computed_tokens']:>8}  "
            f"{row['per_turn_s']:>18.2f}  {row['shared_s']:>14.2f}  {row['speedup']:>13.2f}"
        )
    path = settings.home / "bench.json"
    path.write_text(json.dumps({"threads": torch.get_num_threads(), "rows": rows}, indent=2))
    print(f"Written to {path}", file=sys.stderr)


def conversation(turns: int) -> list[Datum]:
    """The datums of one conversation of random tokens."""
    generator = torch.Generator().manual_seed(turns)
    history: tuple[int, ...] = ()
    data: list[Datum] = []
    for turn in range(turns):
        ids = torch.randint(1000, 40000, (USER_TOKENS + REPLY_TOKENS,), generator=generator)
        prompt = history + tuple(ids[:USER_TOKENS].tolist())
        response = tuple(ids[USER_TOKENS:].tolist())
        rendered = RenderedTurn(turn=turn, prompt_ids=prompt, response_ids=response)
        old = [-5.0] * REPLY_TOKENS
        data.append(build_datum(rendered, advantage=0.5, old_logprobs=old, off_policy=False))
        history = prompt + response
    return data


def measure(client: TrainingClient, data: Sequence[Datum]) -> dict[str, float]:
    """Time both ways in turn, after one warm-up of each."""

    def shared() -> None:
        client.forward_backward(data, "ppo").result()

    def per_turn() -> None:
        for datum in data:
            client.forward_backward([datum], "ppo").result()

    before = client.computed_tokens
    shared()
    computed = client.computed_tokens - before
    per_turn()
    pairs = [(seconds(shared), seconds(per_turn)) for _ in range(REPEATS)]
    return {
        "turns": len(data),
        "turn_tokens": sum(datum.model_input.length for datum in data),
        "computed_tokens": computed,
        "shared_s": statistics.median(pair[0] for pair in pairs),
        "per_turn_s": statistics.median(pair[1] for pair in pairs),
        "speedup": statistics.median(pair[1] / pair[0] for pair in pairs),
    }


def seconds(work: Callable[[], None]) -> float:
    """Return the wall time of a piece of work."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


main()
