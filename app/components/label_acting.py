"""What clicks and keys set off on the label page: each becomes an action at the rater's desk.

Several keys may arrive at once: they are applied one after the other, each at the turn to which the
one before it led. Callbacks of widgets, all of them.
"""

from app import auth, data, state
from app.components.errors import guarded
from app.components.label_desk import Desk, perform
from app.components.label_keys import KEY_LOG, arrived_keys
from app.components.label_place import Place, go_to, place
from app.components.label_queue import QUEUE
from app.components.label_scale import SCALES
from db.errors import DataError, EveryTurnError

HELP: state.Slot[bool] = state.Slot("label.help", bool)
"""Whether the keys are shown: until somebody closes them, however often the page is redrawn."""


@guarded
def act(action: str) -> None:
    """Do what a button says."""
    _show(perform(_desk(), action))


@guarded
def take_keys() -> None:
    """Do what the keys say that have arrived, in order; after a failure, none that followed."""
    log, keys = KEY_LOG.get(), arrived_keys()
    if not keys:
        state.FAILURE.set(log.failure)  # told anew where a redraw comes for keys that were left out
        return
    desk = _desk()
    for number, action in keys:
        try:
            desk = perform(desk, action)
        except EveryTurnError as error:
            failure = _with_rest(error, sum(later > number for later, _ in keys))
            log.leave_out(keys[-1][0], failure)
            _show(desk)
            state.FAILURE.set(failure)
            return
        log.applied, log.failure = number, None
    _show(desk)


def _desk() -> Desk:
    """Return where the rater is, by the address and the queue in work.

    Raises:
        DataError: if the page has not been drawn in this session.
    """
    queue, here = QUEUE.get(), place()
    if queue is None or here is None:
        raise DataError("no conversation is open", where="label page", remedy="Load it again.")
    return Desk(
        user=auth.current_user(),
        queue=queue,
        scale=SCALES[data.project_settings().scale],
        conversation_id=here.conversation_id,
        turn=here.turn,
    )


def _show(desk: Desk) -> None:
    """Point the page at where an action led."""
    if desk.shows_help:
        HELP.set(True)
    if desk.notice:
        state.NOTICE.set(desk.notice)
    go_to(Place(desk.conversation_id, desk.turn))


def _with_rest(error: EveryTurnError, rest: int) -> EveryTurnError:
    """Say how many keys were dropped because the one before them failed."""
    if rest == 0:
        return error
    told = f"{error.what}; the {rest} keys pressed after it were left out, too"
    return EveryTurnError(told, where=error.where, remedy=error.remedy)
