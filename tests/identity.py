"""A provider of identities for the tests: OpenID Connect in a few lines, for one person."""

import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT_ID = "everyturn"
CLIENT_SECRET = "a secret between the two"


@dataclass
class IdentityProvider:
    """What the provider says of whoever signs in; a test may change it at any time."""

    issuer: str
    claims: dict[str, Any]
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "1"}))
    nonces: dict[str, str] = field(default_factory=dict)

    @property
    def metadata_url(self) -> str:
        """Where the provider describes itself."""
        return f"{self.issuer}/.well-known/openid-configuration"

    def answer(self, path: str, query: dict[str, str], form: dict[str, str]) -> Any:
        """Return what a request is answered: JSON, or a text to redirect to."""
        match path:
            case "/.well-known/openid-configuration":
                return {
                    "issuer": self.issuer,
                    "authorization_endpoint": f"{self.issuer}/authorize",
                    "token_endpoint": f"{self.issuer}/token",
                    "jwks_uri": f"{self.issuer}/keys",
                    "response_types_supported": ["code"],
                    "id_token_signing_alg_values_supported": ["RS256"],
                }
            case "/authorize":  # whoever asks is the person, without a password
                code = secrets.token_urlsafe()
                self.nonces[code] = query["nonce"]
                answer = urlencode({"code": code, "state": query["state"]})
                return f"{query['redirect_uri']}?{answer}"
            case "/token":
                token = self._identity_token(self.nonces.pop(form["code"]))
                return {"access_token": "x", "token_type": "Bearer", "id_token": token}
            case _:
                return {"keys": [self.key.as_dict(private=False)]}

    def _identity_token(self, nonce: str) -> str:
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT_ID, "sub": "1", "iat": now, "exp": now + 600}
        return jwt.encode(
            {"alg": "RS256", "kid": "1"}, {**claims, "nonce": nonce, **self.claims}, self.key
        )


@contextmanager
def running_provider(**claims: Any) -> Iterator[IdentityProvider]:
    """Run a provider on a free port of 127.0.0.1 for the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            form = self.rfile.read(length).decode()
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            fields = {name: values[0] for name, values in parse_qs(form).items()}
            answer = provider.answer(parts.path, query, fields)
            self.send_response(302 if isinstance(answer, str) else 200)
            if isinstance(answer, str):
                self.send_header("Location", answer)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        do_POST = do_GET

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider = IdentityProvider(f"http://127.0.0.1:{server.server_port}", dict(claims))
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
