"""Turns: one at a time, first come, first served, and never lost."""

import time
from threading import Event, Thread

import pytest

from db.turnstile import Turnstile


def test_those_who_wait_go_in_the_order_in_which_they_came() -> None:
    turnstile, order, threads = Turnstile(), [], []
    inside, leave = Event(), Event()

    def hold() -> None:
        with turnstile.turn():
            inside.set()
            leave.wait(30)

    def pass_through(number: int) -> None:
        with turnstile.turn():
            order.append(number)

    holder = Thread(target=hold)
    holder.start()
    assert inside.wait(30)
    for number in range(8):
        threads.append(Thread(target=pass_through, args=(number,)))
        threads[-1].start()
        while len(turnstile._waiting) <= number:
            time.sleep(0.001)
    assert order == []
    leave.set()
    for thread in (holder, *threads):
        thread.join(30)
    assert order == list(range(8))


def test_one_at_a_time_whoever_comes_when() -> None:
    turnstile, counts = Turnstile(), {"inside": 0, "most": 0, "all": 0}

    def come_again_and_again() -> None:
        for _ in range(200):
            with turnstile.turn():
                counts["inside"] += 1
                counts["most"] = max(counts["most"], counts["inside"])
                counts["all"] += 1
                time.sleep(0)
                counts["inside"] -= 1

    threads = [Thread(target=come_again_and_again) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert counts == {"inside": 0, "most": 1, "all": 1600}


def test_a_failure_inside_passes_the_turn_on() -> None:
    turnstile = Turnstile()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), turnstile.turn():
            _ = 1 / 0
    with turnstile.turn():
        pass
