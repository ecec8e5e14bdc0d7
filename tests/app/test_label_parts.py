"""The parts of the label page that need no page: scales, keys, the queue's order, Markdown."""

import pytest

from app.components.key_names import labelled, printed
from app.components.key_settings import CHOICES
from app.components.label_blind import seen_by
from app.components.label_keys import ACTIONS, KeyLog, key_map, unapplied
from app.components.label_scale import SCALES, nudged, short
from app.components.prose import parsed
from db.enums import LabelAction, ScoreScale
from db.errors import DataError
from db.records import DEFAULT_KEYS, SCORE_MAX, SCORE_MIN
from db.setting_values import SCORE_KEYS
from tests.app.conftest import chat

LOG = KeyLog(session="s", applied=2)


def sent(*keys: object, session: object = "s") -> dict[str, object]:
    return {"pressed": {"session": session, "keys": list(keys), "sent": 1}}


def key(number: object, action: object = "undo") -> dict[str, object]:
    return {"number": number, "action": action}


def test_keys_are_taken_once_in_the_order_they_were_pressed() -> None:
    arrived = sent(key(4, "b"), key(2, "x"), key(3, "a"), key(4, "b"))
    assert unapplied(arrived, LOG) == [(3, "a"), (4, "b")]


@pytest.mark.parametrize(
    "arrived",
    [
        None,
        {},
        sent(key(3), session="another"),
        sent(key("3")),
        sent(key(3, 7)),
        sent({"number": 3}),
        sent(None),
        {"pressed": {"session": "s", "keys": "undo"}},
        {"pressed": [1]},
        {"pressed": None},
    ],
)
def test_what_a_browser_should_not_send_is_passed_over(arrived: object) -> None:
    assert unapplied(arrived, LOG) == []


@pytest.mark.parametrize("kind", list(ScoreScale))
def test_every_choice_is_a_score_and_every_key_gives_one(kind: ScoreScale) -> None:
    scale = SCALES[kind]
    values = [choice.value for choice in scale.choices]
    assert values == sorted(set(values))
    assert SCORE_MIN <= scale.low == values[0] < values[-1] == SCORE_MAX
    keys = [key for choice in scale.choices for key in choice.keys]
    assert len(set(keys)) == len(keys)
    assert all(choice.keys for choice in scale.choices)


def test_digits_mean_what_the_scale_says() -> None:
    unit, stars = SCALES[ScoreScale.UNIT].keys, SCALES[ScoreScale.STARS].keys
    thumbs, signed = SCALES[ScoreScale.THUMBS].keys, SCALES[ScoreScale.SIGNED].keys
    assert (unit["0"], unit["7"], unit["A"], unit["*"]) == (0.0, 0.7, 1.0, 1.0)
    assert (stars["1"], stars["5"], "0" in stars) == (0.0, 1.0, False)
    assert (thumbs["0"], thumbs["1"]) == (0.0, 1.0)
    assert (signed["1"], signed["5"], signed["0"], signed["9"]) == (-1.0, 0.0, 0.0, 1.0)


@pytest.mark.parametrize("kind", list(ScoreScale))
def test_no_persons_own_key_is_one_that_gives_a_score(kind: ScoreScale) -> None:
    scoring = key_map(dict.fromkeys(LabelAction, ""), SCALES[kind])
    assert set(scoring) - {""} <= SCORE_KEYS
    assert not SCORE_KEYS & set(CHOICES)
    assert set(ACTIONS.values()) <= set(key_map(DEFAULT_KEYS, SCALES[kind]).values())
    assert set(DEFAULT_KEYS.values()) <= set(CHOICES)


def test_keys_pressed_before_a_failure_was_known_are_not_taken() -> None:
    log = KeyLog(session="s", applied=2)
    log.leave_out(4, DataError("no"))
    assert unapplied(sent(key(5), key(6)), log) == []
    assert unapplied(sent(key(4), key(5), session=log.session), log) == [(5, "undo")]


def test_a_score_is_nudged_in_whole_steps_and_never_off_the_scale() -> None:
    assert nudged(0.7, 1, low=0.0) == 0.75
    assert nudged(0.3, -1, low=0.0) == 0.25
    assert nudged(1.0, 1, low=0.0) == 1.0
    assert nudged(0.0, -1, low=0.0) == 0.0
    assert nudged(-0.7, -1, low=0.0) == -0.7
    assert nudged(-0.7, 1, low=0.0) == -0.65
    assert short(-0.75) == "−0.75"


def test_keys_are_printed_as_people_know_them() -> None:
    assert [printed(k) for k in ("ArrowUp", "Ctrl+Enter", "Ctrl+Shift+Z", "S", "+")] == [
        "↑",
        "Ctrl ⏎",
        "Ctrl Shift Z",
        "S",
        "+",
    ]
    assert labelled("Help", "?") == "Help :gray-badge[?]"
    assert labelled("All", "*") == "All :gray-badge[✱]"


def test_blind_scoring_shows_a_turns_scores_to_those_who_gave_one() -> None:
    talk = chat("t", ("a", "b", 0.5), ("c", "d", None))
    assert [len(m.scores) for m in seen_by(talk, "local").assistant_messages] == [1, 0]
    assert [len(m.scores) for m in seen_by(talk, "ann").assistant_messages] == [0, 0]


def test_markdown_becomes_elements_and_html_stays_text() -> None:
    assert parsed("a **b** `c<i>`\n<b onclick=x>d</b>") == [
        ["p", ["a ", ["strong", ["b"]], " ", ["code", ["c<i>"]], "\n", "<b onclick=x>d</b>"]]
    ]
    assert parsed("```py\n<script>\n```") == [["pre", [["code", ["<script>"]]]]]
    assert parsed("3. x") == [["ol", [["li", [["p", ["x"]]]]], 3]]


def test_pictures_and_links_are_told_and_never_fetched_or_followed() -> None:
    assert parsed("![p](http://t/r.png)") == [["p", [["span", ["[image: p] (http://t/r.png)"]]]]]
    assert parsed("[l](http://x/y)") == [["p", ["l", ["span", [" (http://x/y)"]]]]]
    assert parsed("[l](javascript:alert(1))") == [["p", ["[l](javascript:alert(1))"]]]


def test_what_nests_too_deeply_is_shown_as_it_is_rather_than_cut() -> None:
    text = "> " * 40 + "deep"
    assert parsed(text) == [["p", [text]]]
