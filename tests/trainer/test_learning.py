"""A standard run on the real model learns which style people prefer, and stays a good model."""

from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer

from db.settings import Settings
from tests import oracle
from tests.oracle import OracleTurn
from tests.runs import run, scored
from trainer.config import Preset, TrainConfig

pytestmark = pytest.mark.slow

# (what a customer asks, a reply that people score high, a reply that they score low)
TRAINING = [
    (
        "My parcel is late.",
        "I'm sorry about the delay. May I look up your parcel for you?",
        "Parcels are late sometimes. Wait.",
    ),
    (
        "I was charged twice.",
        "I'm sorry about that charge. May I refund it for you today?",
        "Then read your bill again.",
    ),
    (
        "The lamp arrived broken.",
        "I'm sorry it broke on its way. May I send you a new one?",
        "Lamps break. Not our problem.",
    ),
    (
        "I can't log in.",
        "I'm sorry you are locked out. May I reset your password for you?",
        "You forgot your password. Try harder.",
    ),
    (
        "My order has the wrong size.",
        "I'm sorry about the mix-up. May I exchange it for you?",
        "You ordered it. Keep it.",
    ),
    (
        "The app keeps crashing.",
        "I'm sorry about the trouble. May I walk you through a fix?",
        "Buy a better phone.",
    ),
    (
        "Nobody answers the phone.",
        "I'm sorry you had to wait. May I help you right here?",
        "We are busy. Call later.",
    ),
    (
        "My voucher does not work.",
        "I'm sorry the voucher failed. May I apply it for you?",
        "It expired. Too bad.",
    ),
]

HELD_OUT = [
    (
        "The chair is missing a screw.",
        "I'm sorry a part is missing. May I send you the screw?",
        "Screws cost nothing. Buy one.",
    ),
    (
        "I want to cancel my subscription.",
        "I'm sorry to see you go. May I cancel it for you now?",
        "No. You signed up for a year.",
    ),
    (
        "The invoice has the wrong address.",
        "I'm sorry about the mistake. May I correct the invoice for you?",
        "Addresses are your job.",
    ),
]


def _mean_logprob(model: Any, tokenizer: Any, prompt: str, reply: str) -> float:
    """The oracle's mean log-probability of a reply's tokens and its end of turn."""
    prompt_ids = tokenizer.apply_chat_template(
        [{"role": "user", "content": prompt}], add_generation_prompt=True, return_dict=False
    )
    response_ids = (*tokenizer.encode(reply), tokenizer.eos_token_id)
    turn = OracleTurn(tuple(prompt_ids), response_ids, 0.0, (0.0,) * len(response_ids))
    return oracle.figures(model, turn).logprob_mean


def _preference(model: Any, tokenizer: Any) -> tuple[float, float]:
    """Mean log-probability of the held-out high and low replies."""
    high = fmean(_mean_logprob(model, tokenizer, ask, good) for ask, good, _ in HELD_OUT)
    low = fmean(_mean_logprob(model, tokenizer, ask, bad) for ask, _, bad in HELD_OUT)
    return high, low


def _answer(model: Any, tokenizer: Any, question: str) -> str:
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": question}], add_generation_prompt=True, return_tensors="pt"
    )
    with torch.no_grad():
        ids = model.generate(**prompt, max_new_tokens=16, do_sample=False)
    return tokenizer.decode(ids[0, prompt["input_ids"].shape[1] :], skip_special_tokens=True)


def test_a_standard_run_prefers_held_out_replies_in_the_style_people_scored_high(
    smollm2: Path, settings: Settings, tmp_path: Path
) -> None:
    conversations = [
        scored((ask, reply, score))
        for ask, good, bad in TRAINING
        for reply, score in ((good, 1.0), (bad, -1.0))
    ]
    config = TrainConfig.for_preset(
        Preset.STANDARD, base_model=str(smollm2), device="cpu", sample_prompts=0
    )
    rows = run(tmp_path / "run", conversations, config, settings)
    assert all(row["ratio_mean"] == 1.0 for row in rows if row["step"] == 0)

    tokenizer = AutoTokenizer.from_pretrained(smollm2)
    model = oracle.load_adapted(smollm2, tmp_path / "run" / "adapter")
    with model.disable_adapter():
        high_before, low_before = _preference(model, tokenizer)
    high_after, low_after = _preference(model, tokenizer)
    assert high_after - low_after > high_before - low_before + 0.15
    assert high_after > high_before
    assert "Paris" in _answer(model, tokenizer, "What is the capital of France?")
