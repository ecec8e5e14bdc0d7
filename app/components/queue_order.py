"""Where a waiting run goes when it is moved: past the next one that waits for the same device. Pure."""

from collections.abc import Sequence

from db.records import Run


def earlier_position(waiting: Sequence[Run], run_id: int) -> int | None:
    """Return the place in the whole queue, from 0, of the run that this one is put before.

    None if it is the first of its device, or waits no longer.
    """
    return _neighbour(waiting, run_id, step=-1)


def later_position(waiting: Sequence[Run], run_id: int) -> int | None:
    """Return the place of the run that this one is put behind; None if it is the last."""
    return _neighbour(waiting, run_id, step=1)


def _neighbour(waiting: Sequence[Run], run_id: int, *, step: int) -> int | None:
    device = next((run.device for run in waiting if run.id == run_id), None)
    places = [place for place, run in enumerate(waiting) if run.device == device]
    mine = next((i for i, place in enumerate(places) if waiting[place].id == run_id), None)
    if mine is None or not 0 <= mine + step < len(places):
        return None
    return places[mine + step]
