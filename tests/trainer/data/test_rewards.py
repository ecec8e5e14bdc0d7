"""Several people's scores become one reward a turn, and the same one from a frozen snapshot."""

import json
from dataclasses import replace

import pytest

from db.enums import Aggregation, Role
from db.formats import parse, write
from db.records import Conversation, Message, Score
from trainer.config import TrainConfig
from trainer.data.rewards import conversation_rewards
from trainer.errors import ConfigError
from trainer.preview import preview


def scores(**values: float) -> tuple[Score, ...]:
    return tuple(Score(rater=rater, value=value) for rater, value in values.items())


def talk(*replies: Message, **fields: object) -> Conversation:
    messages: list[Message] = []
    for reply in replies:
        messages += [Message(role=Role.USER, content="And?"), reply]
    return Conversation(messages=tuple(messages), **fields)  # type: ignore[arg-type]


THREE = Message(role=Role.ASSISTANT, content="a", scores=scores(anna=0.9, ben=0.0, cara=0.3))
DECIDED = Message(
    role=Role.ASSISTANT,
    content="b",
    scores=scores(anna=1.0, ben=0.0),
    adjudicated=Score(rater="dora", value=0.2, note="polite, but wrong"),
)
UNSCORED = Message(role=Role.ASSISTANT, content="c")
TALK = talk(THREE, DECIDED, UNSCORED, outcomes=scores(anna=0.5, ben=0.1))


@pytest.mark.parametrize(
    ("aggregation", "turns", "outcome"),
    [
        (Aggregation.MEAN, (0.4, 0.5, None), 0.3),
        (Aggregation.MEDIAN, (0.3, 0.5, None), 0.3),
        (Aggregation.ADJUDICATED, (0.4, 0.2, None), 0.3),
    ],
)
def test_each_way_gives_its_number(
    aggregation: Aggregation, turns: tuple[float | None, ...], outcome: float
) -> None:
    rewards = conversation_rewards(TALK, aggregation=aggregation)
    assert [None if r is None else round(r, 9) for r in rewards.turns] == list(turns)
    assert rewards.outcome == pytest.approx(outcome)


def test_one_rater_leaves_out_what_that_person_did_not_score() -> None:
    rewards = conversation_rewards(TALK, aggregation=Aggregation.ONE_RATER, rater="cara")
    assert rewards.turns == (0.3, None, None)
    assert rewards.outcome is None


def test_a_decision_counts_even_where_nobody_scored() -> None:
    decided = replace(UNSCORED, adjudicated=Score(rater="dora", value=0.0))
    rewards = conversation_rewards(talk(decided), aggregation=Aggregation.ADJUDICATED)
    assert rewards.turns == (0.0,)


def test_one_rater_without_a_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="whose scores count"):
        TrainConfig(aggregation=Aggregation.ONE_RATER)
    assert TrainConfig(aggregation=Aggregation.ONE_RATER, rater="anna").rater == "anna"


def test_settings_of_older_runs_mean_the_mean_as_they_did() -> None:
    stored = TrainConfig().to_json()
    del stored["aggregation"], stored["rater"]
    config = TrainConfig.from_json(stored)
    undecided = talk(THREE, replace(DECIDED, adjudicated=None))
    assert conversation_rewards(undecided, aggregation=config.aggregation, rater=config.rater) == (
        conversation_rewards(undecided, aggregation=Aggregation.MEAN)
    )


@pytest.mark.parametrize("aggregation", Aggregation)
def test_the_frozen_snapshot_gives_the_same_advantages(aggregation: Aggregation) -> None:
    config = TrainConfig(aggregation=aggregation, rater="anna")
    data = [TALK, talk(DECIDED), talk(THREE)]
    frozen = write(data, "native")
    assert json.loads(frozen.splitlines()[1])["messages"][1]["adjudicated"]["value"] == 0.2
    again = parse(frozen.encode()).conversations
    assert preview(again, config).turns == preview(data, config).turns


def test_only_what_begins_alike_is_compared_tools_included() -> None:
    tool = {"type": "function", "function": {"name": "look"}}
    plain = (talk(THREE), talk(DECIDED, THREE))
    with_tool = (talk(THREE, tools=(tool,)), talk(UNSCORED, tools=({**tool},)))
    groups = [
        {conversation_rewards(one, aggregation=Aggregation.MEAN).group for one in alike}
        for alike in (plain, with_tool, (talk(THREE, system="s"),))
    ]
    assert [len(group) for group in groups] == [1, 1, 1]
    assert len(set.union(*groups)) == 3
