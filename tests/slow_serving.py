"""What a chat's server becomes in tests: replies come slowly and never end by themselves."""

import time
from typing import Any


def _slowly() -> None:
    from trainer.serving.model import ServedModel  # noqa: PLC0415 - torch, only in the server

    load = ServedModel.load.__func__

    def load_slow(cls: type, *args: Any, **kwargs: Any) -> Any:
        model = load(cls, *args, **kwargs)
        scheduler: Any = model.scheduler
        scheduler._stop_ids = frozenset()
        run = scheduler._passes.run

        def slow_run(pieces: Any) -> Any:
            time.sleep(0.03)
            return run(pieces)

        scheduler._passes.run = slow_run
        return model

    ServedModel.load = classmethod(load_slow)  # type: ignore[method-assign]


HOOKS = {"slowly": _slowly}
