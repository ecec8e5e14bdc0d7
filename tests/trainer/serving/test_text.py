"""Text that comes in pieces is the text that would come at once, up to the first stop string."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models import CHATML_TEMPLATE, make_tokenizer
from trainer.serving.text import TextOf

TOKENIZER = make_tokenizer(CHATML_TEMPLATE)


def pieces(text: str, stops: tuple[str, ...] = ()) -> tuple[list[str], bool]:
    shown = TextOf(TOKENIZER, stops)
    found: list[str] = []
    for token in TOKENIZER.encode(text, add_special_tokens=False):
        found.append(shown.add(token))
        if shown.stopped:
            break
    return [*found, shown.rest()], shown.stopped


@given(st.text(max_size=60))
def test_the_pieces_make_the_whole(text: str) -> None:
    expected = TOKENIZER.decode(
        TOKENIZER.encode(text, add_special_tokens=False), skip_special_tokens=True
    )
    assert "".join(pieces(text)[0]) == expected


def test_a_character_of_several_tokens_comes_whole() -> None:
    found, _ = pieces("naïve 🌍 done")
    assert "🌍" in "".join(found) and not any("�" in piece for piece in found)


@given(st.text("ab\n", max_size=40), st.text("ab\n", min_size=1, max_size=4))
def test_nothing_of_a_stop_string_or_after_it_is_shown(text: str, stop: str) -> None:
    found, stopped = pieces(text, (stop,))
    assert stopped == (stop in text)
    assert "".join(found) == text.partition(stop)[0]


def test_of_several_stop_strings_the_first_to_be_complete_ends_it() -> None:
    found, stopped = pieces("The capital of France is Paris.", ("Paris", "France", "of Spain"))
    assert stopped and "".join(found) == "The capital of "


@pytest.mark.parametrize("stops", [(), ("",)])
def test_no_stop_string_holds_nothing_back(stops: tuple[str, ...]) -> None:
    found, stopped = pieces("The capital of France is Paris.", stops)
    assert not stopped and found[-1] == ""
