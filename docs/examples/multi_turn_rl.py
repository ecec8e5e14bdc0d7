"""Multi-turn PPO on scored conversations, in the calls of the Tinker / MinT API.

    python docs/examples/multi_turn_rl.py [BASE_MODEL]

Each turn is credited with its reward against the mean of its conversation, and each epoch takes
one optimiser step. To run it on MinT's servers, write `import mint` for the import below.
"""

import asyncio
import sys
from dataclasses import dataclass
from typing import Any

import trainer.engine.api as mint

CONVERSATIONS = (
    (
        ("What is the capital of France?", "The capital of France is Paris.", 1.0),
        (
            "How many people live there?",
            "Paris has approximately 2.2 million residents in the city proper.",
            0.9,
        ),
    ),
    (
        (
            "Explain quantum mechanics.",
            "Quantum mechanics is the study of particles at atomic scales.",
            0.7,
        ),
        (
            "Can you be more precise?",
            "Quantum mechanics uses wave functions and probability amplitudes to describe "
            "particle behavior.",
            0.95,
        ),
    ),
)
"""What the user said, what the assistant said, and how good that was, turn by turn."""

EPOCHS = 2
OLD_LOGPROB = -0.5
"""Nobody knows what sampled these replies; the recipe assumes this much for each token."""


@dataclass(frozen=True)
class Turn:
    """The figures of one turn in one epoch."""

    epoch: int
    tokens: int
    response_tokens: int
    metrics: dict[str, float]


def datums(tokenizer: Any) -> list[Any]:
    """Return one datum for each assistant turn, in order."""
    found: list[Any] = []
    for conversation in CONVERSATIONS:
        mean_reward = sum(reward for _, _, reward in conversation) / len(conversation)
        said: list[str] = []
        for question, reply, reward in conversation:
            said.append(question)
            prompt = tokenizer.encode(" ".join(said))
            response = tokenizer.encode(reply)
            said.append(reply)
            tokens = prompt + response
            context, length = len(prompt) - 1, len(response)
            inputs = {
                "target_tokens": tokens[1:],
                "weights": [0.0] * context + [1.0] * length,
                "logprobs": [0.0] * context + [OLD_LOGPROB] * length,
                "advantages": [0.0] * context + [reward - mean_reward] * length,
            }
            model_input = mint.ModelInput.from_ints(tokens[:-1])
            found.append(mint.Datum(model_input=model_input, loss_fn_inputs=inputs))
    return found


async def train(base_model: str, name: str = "multi-turn-rl") -> tuple[list[Turn], str]:
    """Train an adapter; return the figures of every turn, and where the adapter was saved."""
    service = mint.ServiceClient()
    client = await service.create_lora_training_client_async(base_model, rank=16, seed=0)
    data = datums(client.get_tokenizer())
    turns: list[Turn] = []
    for epoch in range(EPOCHS):
        # Submitted at once: the calls are computed in this order, the step after all passes.
        passes = [await client.forward_backward_async([datum], "ppo") for datum in data]
        step = await client.optim_step_async(mint.AdamParams(learning_rate=1e-4))
        for datum, future in zip(data, passes, strict=True):
            metrics = (await future).metrics
            trained = sum(datum.loss_fn_inputs["weights"].tolist())
            turns.append(Turn(epoch, datum.model_input.length, int(trained), metrics))
        await step
    saved = await (await client.save_weights_for_sampler_async(name))
    return turns, saved.path


def main() -> None:
    """Train on the model named on the command line and print the figures."""
    base_model = sys.argv[1] if len(sys.argv) > 1 else "Qwen/Qwen3-0.6B"
    turns, path = asyncio.run(train(base_model))
    for turn in turns:
        figures = "  ".join(f"{key} {value:+.4f}" for key, value in sorted(turn.metrics.items()))
        print(f"epoch {turn.epoch}  {turn.tokens} tokens  {figures}")  # noqa: T201
    print(f"adapter: {path}")  # noqa: T201


if __name__ == "__main__":
    main()
