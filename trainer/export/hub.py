"""An export on its way to the Hugging Face Hub, with a token that is used once and kept nowhere."""

from pathlib import Path

import httpx2
from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError, HFValidationError

from trainer.errors import TrainerError, shortened

DENIED = (401, 403)


class PushError(TrainerError):
    """The hub could not be reached, or refused."""


def push(folder: Path, repository: str, token: str, *, private: bool = True) -> str:
    """Upload an export's files; the repository is made if there is none.

    Args:
        folder: The export.
        repository: owner/name on the hub.
        token: The person's own token with the right to write; it is not stored.
        private: Whether a new repository is seen by its owner alone.

    Returns:
        The address of what was uploaded.

    Raises:
        PushError: if the hub cannot be reached, or refuses name or token.
    """
    if not token.strip():
        raise PushError(
            "there is no token",
            where="push",
            remedy="Make one with the right to write in your settings on the hub.",
        )
    api = HfApi(token=token.strip())
    try:
        made = api.create_repo(repository, private=private, exist_ok=True)
        api.upload_folder(
            repo_id=made.repo_id,
            folder_path=folder,
            commit_message="Upload a model trained with EveryTurn",
        )
    except HFValidationError as error:
        raise PushError(
            f"{shortened(repository)!r} is no name for a repository",
            where="push",
            remedy="Write owner/name, with letters, digits, '-', '_' and '.'.",
        ) from error
    except HfHubHTTPError as error:
        raise _refused(repository, error) from error
    except (
        OSError,
        httpx2.TransportError,
    ) as error:  # no network, no such host, a proxy that says no
        raise PushError(
            "the Hugging Face Hub cannot be reached from this machine",
            where="push",
            remedy="The export lies on this machine and is whole: upload it from one with network.",
        ) from error
    return str(made)


def _refused(repository: str, error: HfHubHTTPError) -> PushError:
    status = error.response.status_code
    if status in DENIED:
        return PushError(
            f"the hub does not let this token write to {shortened(repository)!r}",
            where="push",
            remedy="Check the token's rights and the repository's owner.",
        )
    words = shortened(str(error).partition("\n")[0], 200)
    return PushError(f"the hub refused ({status}: {words})", where="push", remedy="Try again.")
