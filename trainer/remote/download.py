"""The trained adapter, fetched from an endpoint: a PEFT folder, checked before it is kept."""

import json
import tarfile
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import IO

import httpx2

from trainer.adapter_config import CONFIG_FILE, WEIGHTS_FILE
from trainer.engine.adapter import read_adapter_tensors
from trainer.errors import CheckpointError, EndpointLostError, NotFiniteError
from trainer.remote.access import Access
from trainer.remote.capabilities import UNREACHABLE

LARGEST_BYTES = 64 * 10**9
"""No adapter is larger: an archive beyond that is none."""


MOST_REDIRECTS = 5
"""From the endpoint to the storage is one."""

PACKING = (425, 503)
"""What an endpoint answers while it still packs the archive."""

PACKING_WAIT_S = 5.0
"""How long to wait before it is asked again."""

PACKING_TRIES = 60


def fetch_adapter(access: Access, url: str, folder: Path, *, base_name: str) -> None:
    """Download an archive and leave the adapter's two files in a folder, ready for PEFT.

    The key is sent to the endpoint's own address alone, never to the storage that it points to.

    Args:
        access: The endpoint and its key.
        url: Where the archive is, or what redirects there.
        folder: Takes the files.
        base_name: The base model, as other tools know it.

    Raises:
        EndpointLostError: if it cannot be downloaded.
        CheckpointError: if the archive holds no adapter.
        NotFiniteError: if a weight is NaN or Inf.
    """
    with tempfile.TemporaryFile() as archive:
        try:
            _download(access, url, archive)
        except UNREACHABLE as error:
            status = isinstance(error, httpx2.HTTPStatusError) and error.response.status_code
            raise EndpointLostError(
                "the adapter cannot be downloaded "
                f"({f'status {status}' if status else type(error).__name__})",
                where=access.endpoint.name,
                remedy="Resume the run: it goes on from its last checkpoint.",
            ) from None
        archive.seek(0)
        _unpack(archive, folder, access.endpoint.name)
    tensors = read_adapter_tensors(folder)
    if not all(bool(tensor.isfinite().all()) for tensor in tensors.values()):
        raise NotFiniteError(
            "the adapter holds NaN or Inf",
            where=access.endpoint.name,
            remedy="Don't use it; lower the learning rate and train again.",
        )
    _complete_config(folder / CONFIG_FILE, tensors, base_name, access.endpoint.name)


def _origin(url: str) -> tuple[str, str, int | None]:
    """Return what belongs to one server: scheme, host and port."""
    parts = httpx2.URL(url)
    return parts.scheme, parts.host, parts.port


def _download(access: Access, url: str, archive: IO[bytes]) -> None:
    """Write what an address, or one that it redirects to, hands out."""
    redirects = tries = 0
    while True:
        own = _origin(url) == _origin(access.endpoint.base_url)
        headers = {"X-API-Key": access.key} if own and access.key else {}
        with httpx2.stream("GET", url, headers=headers, timeout=120.0) as reply:
            if reply.has_redirect_location and redirects < MOST_REDIRECTS:
                redirects += 1
                url = str(reply.url.join(reply.headers["location"]))
                continue
            if reply.status_code not in PACKING or tries == PACKING_TRIES:
                reply.raise_for_status()
                for block in reply.iter_bytes():
                    archive.write(block)
                return
        tries += 1
        time.sleep(PACKING_WAIT_S)


def _unpack(archive: IO[bytes], folder: Path, where: str) -> None:
    """Take the adapter's two files out of the archive, under their own names and no others."""
    found: set[str] = set()
    try:
        with tarfile.open(fileobj=archive) as tar:
            for member in tar:
                name = Path(member.name).name
                if name not in (CONFIG_FILE, WEIGHTS_FILE) or not member.isfile():
                    continue
                content = tar.extractfile(member)
                if content is None or member.size > LARGEST_BYTES:
                    continue
                with (folder / name).open("wb") as file:
                    while block := content.read(1 << 20):
                        file.write(block)
                found.add(name)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise CheckpointError(
            f"what it sent as the adapter is no whole archive ({error})", where=where
        ) from None
    missing = {CONFIG_FILE, WEIGHTS_FILE} - found
    if missing:
        raise CheckpointError(
            f"the archive of the adapter lacks {' and '.join(sorted(missing))}", where=where
        )


def _complete_config(file: Path, keys: Iterable[str], base_name: str, where: str) -> None:
    """Name the base model as others find it, and the layers, which some endpoints leave out.

    PEFT takes layers of its own choice where none are named, and passes over the other weights.
    """
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
        named = config.get("target_modules")
    except (OSError, ValueError, AttributeError) as error:
        raise CheckpointError(
            f"{CONFIG_FILE} of the adapter cannot be read ({error})", where=where
        ) from None
    layers = sorted({key.partition(".lora_")[0].rpartition(".")[2] for key in keys})
    config |= {"base_model_name_or_path": base_name, "target_modules": named or layers}
    file.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
