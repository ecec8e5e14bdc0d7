"""Random tokens that only their holder knows: the database keeps a hash of each."""

import hashlib
import secrets


def new_token() -> str:
    """Return 256 random bits in letters that a cookie can carry."""
    return secrets.token_urlsafe(32)


def token_sha256(token: str) -> str:
    """Return what the database keeps of a token; any text may be asked about."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
