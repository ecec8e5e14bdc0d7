"""The estimate of a run: its arithmetic by hand, what does not fit, and the trial it rests on."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from db.settings import Settings
from trainer import machine
from trainer.__main__ import main
from trainer.config import Preset, TrainConfig
from trainer.data.findings import Finding
from trainer.data.rendering import RenderedTurn
from trainer.data.turns import TrainableTurn
from trainer.engine import calibration
from trainer.errors import OutOfMemoryError
from trainer.estimate import estimate_run, passes_of
from trainer.fit import find_misfits
from trainer.pass_costs import Calibration, Machine, PassMemory, PassTime, Work

RECIPE = TrainConfig.for_preset(Preset.RECIPE, epochs=2, sample_tokens=10)

CALIBRATION = Calibration(
    pass_time=PassTime(fixed_s=1.0, token_s=0.1, pair_s=0.01),
    forward_share=0.5,
    step_s=3.0,
    answer_token_s=0.2,
    load_s=7.0,
    pass_memory=PassMemory(fixed_bytes=100.0, kept_bytes=10.0, recomputed_bytes=2.0),
    resident_bytes=1000,
    model_bytes=800,
    optimizer_bytes=50,
    shares_prefixes=True,
)


def machine_of(limit_bytes: float = 1e9, free_bytes: float = 1e9) -> Machine:
    return Machine(calibration=CALIBRATION, free_bytes=free_bytes, limit_bytes=limit_bytes)


def conversations(*lengths: list[int]) -> list[TrainableTurn]:
    """Turns whose model inputs have these lengths; those of a conversation begin alike."""
    return [
        TrainableTurn(
            conversation=number,
            turn=turn,
            place=f"conversation {number + 1} ('chat'), turn {turn + 1}",
            reward=1.0,
            advantage=1.0,
            rendered=RenderedTurn(
                turn=turn,
                prompt_ids=tuple(range(1000 * number, 1000 * number + length - 1)),
                response_ids=(1000 * number + length - 1, 5),
            ),
        )
        for number, own in enumerate(lengths)
        for turn, length in enumerate(own)
    ]


# -- time ----------------------------------------------------------------------------------------


def test_three_lengths_tell_all_parts_of_a_pass_apart() -> None:
    true = PassTime(fixed_s=0.3, token_s=0.008, pair_s=3e-6)
    lengths = (64, 256, 1024)
    found = PassTime.fit([(n, true.seconds(Work.chain(n))) for n in lengths])
    assert found.fixed_s == pytest.approx(0.3)
    assert found.token_s == pytest.approx(0.008)
    assert found.pair_s == pytest.approx(3e-6)


@pytest.mark.parametrize(
    "seconds", [(1.0, 3.0, 4.0), (5.0, 1.0, 0.5), (0.1, 0.2, 9.0), (1.0, 2.0), (1.0,)]
)
def test_a_disturbed_trial_still_gives_a_time_that_is_no_less_for_more(
    seconds: tuple[float, ...],
) -> None:
    found = PassTime.fit(list(zip((64, 256, 1024), seconds, strict=False)))
    assert min(found.fixed_s, found.token_s, found.pair_s) >= 0
    assert found.seconds(Work.chain(512)) > 0


def test_the_parts_of_a_run_add_up_by_hand() -> None:
    # One pass an epoch: 6 + 4 distinct tokens, 21 + 10 pairs -> 1 + 1.0 + 0.31 s
    turns = conversations([3, 6], [4])
    found = estimate_run(turns, [], RECIPE, machine_of(), answers=2)
    assert found.train_s == pytest.approx(2 * 2.31 + 2 * 3.0)
    assert found.measure_s == 0  # the recipe's old log-probabilities are a constant
    assert found.sample_s == pytest.approx(2 * 2 * 10 * 0.2)
    assert found.seconds == pytest.approx(7 + found.train_s + found.sample_s)
    assert found.tokens_per_s == pytest.approx(20 / found.train_s)
    assert found.longest_pass_tokens == 10
    assert found.memory_bytes == 1000 + 50 + 100 + 10 * 10


def test_measuring_the_data_takes_a_forward_pass_before_training_and_after_each_epoch() -> None:
    standard = TrainConfig(epochs=3)
    held_out = conversations([4])  # 1 + 0.4 + 0.1 s, forward half of it, 4 times
    found = estimate_run(conversations([6]), held_out, standard, machine_of(), answers=0)
    trained = 1 + 0.6 + 0.21
    assert found.measure_s == pytest.approx(trained / 2 + 4 * 1.5 / 2)


def test_recomputed_layers_take_up_to_a_third_more_time() -> None:
    turns = conversations([6], [4])
    # 10 tokens need 200 bytes, or 120 with every layer recomputed: 160 recompute half of them.
    free, half = (
        estimate_run(turns, [], RECIPE, machine_of(limit), answers=0) for limit in (200.0, 160.0)
    )
    steps_s = 2 * 3.0
    assert (free.recomputed, half.recomputed) == (0, pytest.approx(0.5))
    assert half.train_s - steps_s == pytest.approx((free.train_s - steps_s) * (1 + 0.5 / 3))
    assert half.memory_bytes == 1000 + 50 + 160


def test_passes_are_those_of_the_engine() -> None:
    turns = conversations([3, 6], [4])
    config = RECIPE.replace(token_budget=16)
    assert passes_of(turns, [(0, 1, 2)], config, shares_prefixes=True) == [
        Work(tokens=10, pairs=31)
    ]
    assert [work.tokens for work in passes_of(turns, [(0, 1, 2)], config, shares_prefixes=False)] == [
        3, 6, 4,
    ]  # fmt: skip
    long = conversations([3, 12], [14])
    assert [work.tokens for work in passes_of(long, [(0, 1, 2)], config, shares_prefixes=True)] == [
        12, 14,
    ]  # fmt: skip


# -- memory --------------------------------------------------------------------------------------


def misfits(turns: list[TrainableTurn], config: TrainConfig, machine: Machine) -> list[Finding]:
    tokens = estimate_run(turns, [], config, machine, answers=0).longest_pass_tokens
    return find_misfits(turns, config, machine, pass_tokens=tokens)


def test_what_fits_is_not_worth_a_word() -> None:
    assert misfits(conversations([6], [4]), RECIPE, machine_of(200.0)) == []


def test_a_turn_that_no_recomputing_makes_fit_forbids_the_start_and_names_what_to_lower() -> None:
    # 200 bytes leave room for (200 - 100) / 2 = 50 tokens.
    turns = conversations([40], [20, 60])
    (found,) = misfits(turns, RECIPE, machine_of(200.0))
    assert (found.kind, found.blocking, found.conversation, found.turn) == (
        "will_not_fit",
        True,
        1,
        1,
    )
    assert "Conversation 2 ('chat'), turn 2" in found.text
    assert "60 tokens" in found.text
    assert "(max_context_tokens) to 50" in found.text
    shorter = [turn for turn in turns if turn.rendered.tokens <= 50]
    assert not any(f.blocking for f in misfits(shorter, RECIPE, machine_of(200.0)))


def test_a_limit_above_what_is_free_does_not_make_more_fit() -> None:
    (found,) = misfits(conversations([60]), RECIPE, machine_of(1e9, free_bytes=200.0))
    assert found.blocking


def test_a_model_that_leaves_no_room_asks_for_a_smaller_one() -> None:
    (found,) = misfits(conversations([60]), RECIPE, machine_of(90.0))
    assert found.blocking
    assert "max_context_tokens" not in found.text
    assert "choose a smaller model" in found.text


def test_a_pass_that_will_be_split_names_the_budget_that_fits() -> None:
    turns = conversations([40], [30])
    (found,) = misfits(turns, RECIPE, machine_of(200.0))
    assert (found.kind, found.blocking) == ("is_split", False)
    assert "(token_budget) to 50" in found.text
    lowered = RECIPE.replace(token_budget=50)
    assert "is_split" not in [f.kind for f in misfits(turns, lowered, machine_of(200.0))]


def test_a_conversation_that_must_be_torn_apart_is_named() -> None:
    one, other = conversations([40], [30])  # two branches of one conversation, nothing in common
    (found,) = misfits([one, replace(other, conversation=0)], RECIPE, machine_of(200.0))
    assert (found.kind, found.blocking) == ("is_split", False)
    assert "Conversation 1 ('chat') is torn apart, at 70 tokens" in found.text


def test_recomputing_is_told_with_its_price_and_the_budget_that_avoids_it() -> None:
    # 400 bytes hold 30 tokens at full speed; 40 lack 100 bytes of the 320 that recomputing saves.
    turns = conversations([20], [20])
    (found,) = misfits(turns, RECIPE, machine_of(400.0))
    assert (found.kind, found.blocking) == ("recomputes", False)
    assert "takes 10% longer" in found.text
    assert "(token_budget) is at most 30" in found.text
    assert misfits(turns, RECIPE.replace(token_budget=30), machine_of(400.0)) == []
    (alone,) = misfits(conversations([40]), RECIPE, machine_of(400.0))
    assert "Conversation 1 ('chat') alone has 40 tokens" in alone.text


# -- the trial -----------------------------------------------------------------------------------


def lines(*replies: tuple[str, float]) -> str:
    return "\n".join(
        json.dumps({
            "messages": [
                {"role": "user", "content": "What is the capital of France?"},
                {"role": "assistant", "content": reply, "score": score},
            ]
        })
        for reply, score in replies
    )  # fmt: skip


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.jsonl"
    path.write_text(lines(("Paris.", 1.0), ("I do not know that.", 0.0)))
    return path


def test_a_trial_of_a_model_gives_positive_figures_that_survive_the_file(
    settings: Settings, tiny_llama: Path
) -> None:
    config = TrainConfig(base_model=str(tiny_llama), lora_rank=4)
    found = calibration.calibrate(settings, config)
    assert found.pass_time.seconds(Work.chain(100)) > 0
    assert 0 < found.forward_share <= 1
    assert min(found.step_s, found.answer_token_s, found.load_s) > 0
    assert found.pass_memory.kept_bytes > found.pass_memory.recomputed_bytes > 0
    assert found.shares_prefixes
    assert Calibration.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_the_estimate_is_part_of_the_preview_and_the_model_is_tried_once(
    settings: Settings,
    data: Path,
    tiny_llama: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command = ["preview", "--data", str(data), "--model", str(tiny_llama), "--json"]
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out)["estimate"] is None

    trials: list[TrainConfig] = []

    def calibrate(settings: Settings, config: TrainConfig) -> Calibration:
        trials.append(config)
        return replace(CALIBRATION, load_s=float(len(trials)))

    monkeypatch.setattr(machine, "calibrate", calibrate)
    for epochs in ("2", "5"):
        assert main([*command, "--estimate", "--set", f"epochs={epochs}"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["estimate"]["load_s"] == 1.0
        assert document["estimate"]["seconds"] > 0
    assert main([*command, "--estimate", "--set", "lora_rank=4"]) == 0
    assert json.loads(capsys.readouterr().out)["estimate"]["load_s"] == 2.0
    assert [config.lora_rank for config in trials] == [16, 4]


def test_an_old_or_damaged_calibration_is_taken_anew(
    settings: Settings, tiny_llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = TrainConfig(base_model=str(tiny_llama))
    trials: list[int] = []
    monkeypatch.setattr(machine, "calibrate", lambda *_: trials.append(1) or CALIBRATION)
    machine.read_machine(settings, config)
    kept = settings.home / "calibration.json"
    entries = json.loads(kept.read_text())
    entries[0]["measured_at"] = "2020-01-01T00:00:00+00:00"
    kept.write_text(json.dumps(entries))
    machine.read_machine(settings, config)
    kept.write_text('[{"facts": 1}]')
    machine.read_machine(settings, config)
    machine.read_machine(settings, config)
    assert len(trials) == 3
    assert len(json.loads(kept.read_text())) == 1


def test_the_memory_limit_is_the_setting_or_most_of_what_the_model_leaves(
    settings: Settings, tiny_llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "calibrate", lambda *_: CALIBRATION)
    monkeypatch.setattr(machine, "free_bytes", lambda _: 1800.0)
    config = TrainConfig(base_model=str(tiny_llama))
    assert machine.read_machine(settings, config).limit_bytes == pytest.approx(0.8 * 1000)
    assert machine.read_machine(settings, config).free_bytes == 950
    limited = config.replace(memory_limit_gb=2.0)
    assert machine.read_machine(settings, limited).limit_bytes == 2e9


def test_a_model_larger_than_memory_is_refused_before_it_is_loaded(
    settings: Settings, tiny_llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "free_bytes", lambda _: 10.0)
    with pytest.raises(OutOfMemoryError, match="smaller model"):
        calibration.calibrate(settings, TrainConfig(base_model=str(tiny_llama)))
