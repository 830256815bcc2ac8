"""People who come in by an issuer of OpenID Connect: a signed token (JWT) says who they are, and their role."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, get_args
from urllib.parse import urlsplit

import httpx

from farthing.client import RefusedRequest
from farthing.errors import InvalidOption
from farthing.server.people import LONGEST_NAME, Person, Role

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from joserfc.jwk import KeySet

    from farthing.server.people import Register

SIGNED: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA")
"""Signatures that only the issuer can make. Those with a shared secret (HS256) are not among them: whoever could check
one could forge it, and the issuer's public key would be such a secret."""

FRESH_S: Final = 600.0
"""Seconds for which the issuer's keys are not fetched again."""
STALE_S: Final = 3600.0
"""Seconds for which they are used while the issuer cannot be reached."""
PAUSE_S: Final = 30.0
"""Seconds between two fetches at least, whatever strangers send."""

_LARGEST: Final = 1 << 18
_PATIENCE_S: Final = 5.0
_LEEWAY_S: Final = 30
_LEAST_BITS: Final = 2048
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_ROLES: Final = get_args(Role)
_NONSENSE: Final = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""What reading a document raises that is not what it should be."""


@dataclass(frozen=True, slots=True)
class Issuer:
    """Whose tokens are taken, and what their claims mean.

    Attributes:
        issuer: the address of the issuer, as its tokens name it (`iss`).
        audience: the name under which it knows this server (`aud`).
        algorithms: the signatures that are taken.
        name: the claim that names the person; one that people cannot change themselves.
        role: the claim that tells the role: a text, or a list of texts.
        roles: what the values of that claim mean; the first that the token has is the role.
    """

    issuer: str
    audience: str
    algorithms: tuple[str, ...] = ("RS256", "ES256")
    name: str = "sub"
    role: str = "roles"
    roles: Mapping[str, str] = field(default_factory=lambda: {role: role for role in _ROLES})

    def __post_init__(self) -> None:
        where = urlsplit(self.issuer)
        safe = where.scheme == "https" or (where.scheme == "http" and where.hostname in _LOOPBACK)
        _check(bool(where.hostname) and safe, "issuer", "an address with https", self.issuer)
        _check(bool(self.audience), "audience", "the name under which the issuer knows this server", self.audience)
        known = bool(self.algorithms) and set(self.algorithms) <= set(SIGNED)
        _check(known, "algorithms", f"some of {', '.join(SIGNED)}", self.algorithms)
        _check(bool(self.name) and bool(self.role), "name", "names of claims", self.name)
        meant = bool(self.roles) and set(self.roles.values()) <= set(_ROLES)
        _check(meant, "roles", f"values of the claim, each with one of {', '.join(_ROLES)}", dict(self.roles))


class IssuerKeys:
    """The public keys of an issuer: fetched when they are needed, and kept.

    Guarantee: a key is one that the issuer published at its own address at most an hour ago; strangers cause one fetch
        in half a minute at most, of a bounded size in a bounded time.
    Proof: `of` alone fetches, and notes the time under a lock before it does; nothing in a token names an address.
    Assumes: the certificate of the issuer's address; that its discovery document is right.
    Rounds: nothing.
    """

    def __init__(self, issuer: str, *, now: Callable[[], float] = time.monotonic) -> None:
        self._issuer, self._now = issuer, now
        self._lock, self._fetching = threading.Lock(), threading.Lock()
        self._keys: KeySet | None = None
        self._fetched = self._tried = -STALE_S

    def of(self, kid: object) -> KeySet:
        """Return the keys; fetch them where they are old, or lack one of this name. RefusedRequest: there are none."""
        with self._lock:
            keys, now = self._keys, self._now()
            missing = keys is None or now - self._fetched > FRESH_S or all(key.kid != kid for key in keys)
            due = missing and now - self._tried > PAUSE_S
            self._tried = now if due else self._tried
        if due or keys is None:  # who has a key goes on with it while another thread fetches
            with self._fetching:
                self._fetch(now, due=due)
        keys = self._keys
        if keys is None or now - self._fetched > STALE_S:
            raise RefusedRequest(
                "the issuer of tokens cannot be reached",
                status=503,
                rule="a token is checked with the issuer's keys",
                next_step="ask again in a minute",
            )
        return keys

    def _fetch(self, now: float, *, due: bool) -> None:
        """Fetch the keys, unless another thread just has."""
        found = _published(self._issuer) if due else None
        if found is not None:
            self._keys, self._fetched = found, now


class Entrance:
    """Where people come in: with a token of this server, or with one of the issuer.

    Guarantee: a token of the issuer comes in only if its signature is right by a key of the issuer and an algorithm
        that is allowed, it is for this server, has not ended, and names a person and a role. Nobody comes in by it
        under a name that has, or ever had, a token of this server: a revoked name stays outside.
    Proof: `_by_issuer` returns a person at its last line alone, after joserfc has checked signature and claims.
    Assumes: joserfc checks signatures as RFC 7515 says; the issuer gives nobody another's name.
    Rounds: the clocks of both may differ by half a minute.
    """

    def __init__(
        self,
        register: Register,
        issuer: Issuer,
        *,
        keys: IssuerKeys | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._register, self._issuer, self._now = register, issuer, now
        self._keys = keys or IssuerKeys(issuer.issuer)

    def everybody(self) -> list[Person]:
        """Return those who have a token of this server; whom the issuer knows is not known here."""
        return self._register.everybody()

    def entering(self, token: str) -> Person | None:
        """Return whose token it is; None if nobody's, or no longer good.

        Raises:
            RefusedRequest: it may be one of the issuer, whose keys cannot be fetched.
        """
        if not (token.startswith("eyJ") and token.count(".") == 2):  # the first three letters of every JWT
            return self._register.entering(token)
        person = self._by_issuer(token)
        return None if person is None or self._register.holds(person.name) else person

    def _by_issuer(self, token: str) -> Person | None:
        """Return whom the issuer says it is; None if the token is not a good one of the issuer."""
        from joserfc import jws, jwt
        from joserfc.errors import JoseError

        asked: Any = {
            "iss": {"essential": True, "value": self._issuer.issuer},
            "aud": {"essential": True, "value": self._issuer.audience},
            "exp": {"essential": True},
        }
        registry = jwt.JWTClaimsRegistry(now=lambda: int(self._now()), leeway=_LEEWAY_S, **asked)
        try:
            header = jws.extract_compact(token.encode()).headers()
            if header.get("alg") not in self._issuer.algorithms:
                return None
            read = jwt.decode(token, self._keys.of(header.get("kid")), algorithms=list(self._issuer.algorithms))
            registry.validate(read.claims)
            return self._person(read.claims)
        except (JoseError, ArithmeticError, OSError, *_NONSENSE):
            return None

    def _person(self, claims: Mapping[str, Any]) -> Person | None:
        """Return the person whom checked claims name; None if they name none, or no role."""
        name, held = claims.get(self._issuer.name), claims.get(self._issuer.role)
        values = held if isinstance(held, list) else [held]
        role = next((role for value, role in self._issuer.roles.items() if value in values), None)
        if role is None or not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
            return None
        made = claims.get("iat", claims["exp"])
        return Person(name, role, "", _moment(made), _moment(claims["exp"]))


def _moment(seconds: float) -> datetime:
    """Return a moment of a claim."""
    return datetime.fromtimestamp(seconds, UTC)


def _published(issuer: str) -> KeySet | None:
    """Return the keys that an issuer publishes for signatures; None where it cannot be reached, or says nonsense."""
    from joserfc.errors import JoseError
    from joserfc.jwk import KeySet

    try:
        with httpx.Client(timeout=_PATIENCE_S, follow_redirects=False) as http:
            told = _document(http, issuer.rstrip("/") + "/.well-known/openid-configuration")
            where = urlsplit(told["jwks_uri"])
            if told["issuer"] != issuer or (where.scheme != "https" and where.hostname not in _LOOPBACK):
                return None
            listed = [key for key in _document(http, told["jwks_uri"])["keys"] if _signs(key)]
        return KeySet.import_key_set({"keys": listed})
    except (
        httpx.HTTPError,
        httpx.InvalidURL,
        JoseError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
    ):
        return None


def _document(http: httpx.Client, address: str) -> Any:
    """Return a JSON document; ValueError where it is too large, too slow or not there."""
    found, until = b"", time.monotonic() + 2 * _PATIENCE_S
    with http.stream("GET", address) as came:
        came.raise_for_status()
        if came.status_code != 200:
            raise ValueError(came.status_code)
        for part in came.iter_bytes(1 << 14):
            found += part
            if len(found) > _LARGEST or time.monotonic() > until:
                raise ValueError(address)
    return json.loads(found)


def _signs(key: Mapping[str, Any]) -> bool:
    """Whether a key is public, long enough, and meant for signatures: a secret one could forge what it checks."""
    long_enough = key.get("kty") != "RSA" or len(str(key.get("n", ""))) * 6 >= _LEAST_BITS
    return key.get("kty") in {"RSA", "EC", "OKP"} and key.get("use", "sig") == "sig" and long_enough


def _check(good: bool, name: str, rule: str, got: object) -> None:
    """Refuse a setting of the issuer that cannot be used."""
    if not good:
        raise InvalidOption(
            f"oidc.{name} cannot be used",
            rule=rule,
            got=repr(got)[:80],
            next_step='[oidc] issuer = "https://login.example.org", audience = "farthing"',
        )
