# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false
"""Data sets of the Hugging Face Hub: rows by name, into a file that is imported like any other.

`datasets` is an optional requirement (requirements-hub.txt) and imported only here. Its code runs,
that of a data set never does: data sets that consist of a script are refused by it.
"""

import re
import tempfile
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import orjson

from db.errors import DataError, EveryTurnError
from db.formats import Source
from db.records import HubSet

INSTALL = "pip install -r requirements-hub.txt"

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_TIMEOUT_S = 10


class HubError(EveryTurnError):
    """A data set cannot be had from the hub."""


@contextmanager
def fetched(wanted: HubSet) -> Generator[Source]:
    """Yield a file with the rows of a data set, which lasts as long as the block.

    Raises:
        HubError, DataError: as `fetch_rows`.
    """
    with tempfile.TemporaryDirectory(prefix="everyturn-hub-") as work:
        path = Path(work) / "rows.jsonl"
        fetch_rows(wanted, path)
        yield Source.of_path(path, wanted.name)


def fetch_rows(
    wanted: HubSet, path: Path, progress: Callable[[float, str], None] | None = None
) -> int:
    """Write the rows of a data set as JSON lines, one after another as they arrive.

    Args:
        wanted: Which data set, and how much of it.
        path: The file; an older one there is replaced.
        progress: Is told how far it is, as a share of `wanted.limit` where there is one.

    Returns:
        How many rows there are.

    Raises:
        HubError: if the hub cannot be reached, has no such data set, keeps it from us, or the
            package that speaks with it is not installed.
        DataError: if the name is none, or there are no rows.
    """
    if not _NAME.fullmatch(wanted.name) or Path(wanted.name).exists():
        raise DataError(
            f"{wanted.name!r} is not the name of a data set on the hub",
            where="data set",
            remedy="A name is like HuggingFaceH4/ultrafeedback_binarized; files are imported by "
            "their path.",
        )
    count = 0
    with path.open("wb") as file:
        for row in _rows(wanted):
            file.write(orjson.dumps(row, default=_as_json, option=orjson.OPT_NON_STR_KEYS) + b"\n")
            count += 1
            if progress is not None:
                share = count / wanted.limit if wanted.limit else 0.0
                progress(share, f"Fetching {wanted.name}: {count:,} rows")
            if count == wanted.limit:
                break
    if count == 0:
        raise DataError(
            "the data set has no rows", where=wanted.name, remedy="Choose another split."
        )
    return count


def _as_json(value: object) -> object:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _rows(wanted: HubSet) -> Iterable[Mapping[str, Any]]:
    """Yield rows as they are stored; pictures and sounds are not decoded.

    Raises:
        HubError: naming what stands in the way.
    """
    try:
        from datasets import load_dataset  # noqa: PLC0415 - optional, and slow to import
        from httpx2 import HTTPError  # noqa: PLC0415
        from huggingface_hub import HfApi  # noqa: PLC0415
        from huggingface_hub.errors import (  # noqa: PLC0415
            GatedRepoError,
            RepositoryNotFoundError,
        )
    except ImportError:
        raise HubError(
            "the package that reads data sets of the hub is not installed",
            where=wanted.name,
            remedy=f"On the machine that the app runs on: {INSTALL}",
        ) from None
    try:
        HfApi().dataset_info(wanted.name, timeout=_TIMEOUT_S)  # one try: load_dataset waits long
        loaded: Any = load_dataset(wanted.name, wanted.config, split=wanted.split, streaming=True)
        yield from cast("Iterable[Mapping[str, Any]]", loaded.decode(False))
    except GatedRepoError:
        raise HubError(
            "its owner gives this data set only to people who have asked for it",
            where=wanted.name,
            remedy="Ask on its page, then set HF_TOKEN to a token of your account.",
        ) from None
    except RepositoryNotFoundError:
        raise HubError(
            "the hub has no such data set, or it is private",
            where=wanted.name,
            remedy="Check the name; for a private one set HF_TOKEN to a token of your account.",
        ) from None
    except (HTTPError, ConnectionError) as error:
        raise HubError(
            f"the hub cannot be reached from this machine ({error})",
            where=wanted.name,
            remedy="Check the network and HF_HUB_OFFLINE, or fetch the files elsewhere and import "
            "them here.",
        ) from None
    except (ValueError, RuntimeError, OSError) as error:
        raise HubError(
            f"the data set cannot be read ({' '.join(str(error).split())[:300]})",
            where=wanted.name,
            remedy="Check its split and configuration on its page.",
        ) from None
