"""What may be stored as a web address."""

from urllib.parse import urlsplit

NO_ADDRESS = "it is not a web address"


def address_problem(url: str, *, with_query: bool = False) -> str:
    """Return in words why an address cannot be called; empty if it can.

    Args:
        url: What somebody typed.
        with_query: Whether it may have a query, as the addresses of hooks have.
    """
    try:
        parts = urlsplit(url)
        port_is_good = parts.port is None or parts.port > 0
        (parts.hostname or "").encode("idna")  # a label that is empty or too long has no address
    except ValueError:
        return NO_ADDRESS
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_good:
        return NO_ADDRESS
    if parts.username or parts.password:
        return "it must hold no name and no password: an address is stored and shown"
    if parts.fragment or (parts.query and not with_query):
        return "it must hold no query: an address is stored and shown"
    if " " in url or not url.isprintable():
        return NO_ADDRESS
    if not url.isascii():
        return (
            "letters beyond ASCII must be written as they are sent (xn--… in a name, %… behind it)"
        )
    return ""
