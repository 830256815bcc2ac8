"""A small issuer: its good tokens come in, and nothing that only looks like one."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json

import httpx
import pytest
import servers

pytest.importorskip("joserfc", reason="the extra `server` is not whole: pip install joserfc")

from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OctKey, RSAKey

from farthing.client import RefusedRequest
from farthing.errors import InvalidOption
from farthing.server import oidc
from farthing.server.oidc import Entrance, Issuer, IssuerKeys
from farthing.server.people import Register

AT = "https://login.example.org"
NOW = 1_800_000_000
KEY = RSAKey.generate_key(2048, {"kid": "one", "use": "sig"})
OTHER = RSAKey.generate_key(2048, {"kid": "one"})
CURVE = ECKey.generate_key("P-256", {"kid": "two", "alg": "ES256"})
GOOD = {"iss": AT, "aud": "farthing", "sub": "carol@example.org", "roles": ["staff", "analyst"], "exp": NOW + 600}
ISSUER = Issuer(AT, "farthing")


class Published(IssuerKeys):
    """The keys of the small issuer, without a network."""

    def __init__(self):
        super().__init__(AT)
        self.keys = [KEY.as_dict(private=False), CURVE.as_dict(private=False)]

    def of(self, kid):
        """Return them."""
        del kid
        return KeySet.import_key_set({"keys": self.keys})


@pytest.fixture
def entrance():
    """People of a register with one token, and of the issuer."""
    register = Register(hasher=servers.QUICK)
    made = Entrance(register, ISSUER, keys=Published(), now=lambda: NOW)
    made.token = register.add("alice.b", "owner")
    return made


def signed(claims=None, key=KEY, alg="RS256", **header):
    """Return a token of the issuer."""
    known = {"kid": key.kid} if key.kid else {}
    return jwt.encode({"alg": alg} | known | header, GOOD if claims is None else claims, key, algorithms=[alg])


def raw(header, claims=None, secret=b""):
    """Return a token as somebody writes it who has no key: signed with a secret, or with nothing."""
    parts = [json.dumps(header), json.dumps(claims or GOOD)]
    text = ".".join(base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts)
    mark = hmac.new(secret, text.encode(), hashlib.sha256).digest() if secret else b""
    return text + "." + base64.urlsafe_b64encode(mark).decode().rstrip("=")


def without(name):
    """Return good claims without one."""
    return {claim: value for claim, value in GOOD.items() if claim != name}


def test_a_good_token_comes_in(entrance):
    """Name and role are those of the claims, by either key; both kinds of tokens come in by one door."""
    for token in (signed(), signed(key=CURVE, alg="ES256")):
        person = entrance.entering(token)
        assert ("carol@example.org", "analyst") == (person.name, person.role)
        assert person.until.timestamp() == NOW + 600
    assert entrance.entering(entrance.token).name == "alice.b"
    assert [one.name for one in entrance.everybody()] == ["alice.b"]


PUBLIC = KEY.as_pem(private=False)
BAD = {
    "alg none": lambda: raw({"alg": "none"}),
    "alg None": lambda: raw({"alg": "None", "kid": "one"}),
    "no alg": lambda: raw({"kid": "one"}),
    "another's key": lambda: signed(key=OTHER),
    "key confusion: the public key as a secret": lambda: raw({"alg": "HS256", "kid": "one"}, secret=PUBLIC),
    "key confusion: as another writes it": lambda: raw({"alg": "HS256"}, secret=PUBLIC.strip()),
    "a shared secret": lambda: signed(key=OctKey.import_key("s" * 32), alg="HS256"),
    "an algorithm that is not allowed": lambda: signed(alg="PS256"),
    "another kind of key": lambda: raw({"alg": "ES256", "kid": "one"}),
    "a key that the token brings": lambda: signed(key=OTHER, jwk=OTHER.as_dict(private=False)),
    "a key at an address": lambda: signed(key=OTHER, jku="https://evil.example/keys"),
    "an unknown critical header": lambda: raw({"alg": "RS256", "kid": "one", "crit": ["x"], "x": 1}),
    "an unknown key": lambda: signed(key=RSAKey.generate_key(2048, {"kid": "three"})),
    "a changed claim": lambda: ".".join((signed().split(".")[0], raw({}).split(".")[1], signed().split(".")[2])),
    "no signature": lambda: signed().rpartition(".")[0] + ".",
    "ended": lambda: signed(GOOD | {"exp": NOW - 31}),
    "without an end": lambda: signed(without("exp")),
    "an end beyond all years": lambda: signed(GOOD | {"exp": 10**18}),
    "an end that is a text": lambda: signed(GOOD | {"exp": "tomorrow"}),
    "not yet": lambda: signed(GOOD | {"nbf": NOW + 60}),
    "for another server": lambda: signed(GOOD | {"aud": "wiki"}),
    "for others": lambda: signed(GOOD | {"aud": ["wiki", "mail"]}),
    "for nobody": lambda: signed(without("aud")),
    "of another issuer": lambda: signed(GOOD | {"iss": AT + "/"}),
    "of no issuer": lambda: signed(without("iss")),
    "no role": lambda: signed(without("roles")),
    "an unknown role": lambda: signed(GOOD | {"roles": "king"}),
    "a role that is an object": lambda: signed(GOOD | {"roles": {"analyst": True}}),
    "no name": lambda: signed(without("sub")),
    "an empty name": lambda: signed(GOOD | {"sub": ""}),
    "a name with a zero byte": lambda: signed(GOOD | {"sub": "a\0"}),
    "a long name": lambda: signed(GOOD | {"sub": "a" * 256}),
    "a name that has a token here": lambda: signed(GOOD | {"sub": "alice.b"}),
    "claims that are a list": lambda: raw({"alg": "RS256", "kid": "one"}, [1]),
    "nonsense": lambda: "eyJ.eyJ.eyJ",
    "nonsense of nonsense": lambda: "eyJhbGciOiJSUzI1NiJ9.\xff.x",
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_not_good_stays_outside(entrance, name):
    """Nobody comes in by it, and nothing else happens."""
    assert entrance.entering(BAD[name]()) is None


def test_over_http_it_is_401(tmp_path, entrance):
    """Each bad token is one clear refusal, and a good one asks and is charged under its own name."""
    world = servers.World(tmp_path)
    world.people = entrance
    for name in ("alg none", "another's key", "for another server", "ended", "a shared secret"):
        headers = {"Authorization": f"Bearer {BAD[name]()}"}
        assert world.request("POST", "/v1/ask", json=servers.COUNT, headers=headers).status_code == 401
    good = {"Authorization": f"Bearer {signed()}"}
    assert world.request("GET", "/v1/me", headers=good).json() == {"name": "carol@example.org", "role": "analyst"}
    assert world.request("POST", "/v1/ask", json=servers.COUNT, headers=good).status_code == 200
    history = world.request("GET", "/v1/history", headers=good).json()["history"]
    assert [entry["who"] for entry in history] == ["carol@example.org"]
    world.close()


def test_whoever_had_a_token_here_comes_in_by_none_of_the_issuer(entrance):
    """A revoked name stays outside, by whichever door."""
    entrance._register.add("carol", "analyst")
    entrance._register.revoke("carol")
    assert entrance.entering(signed(GOOD | {"sub": "carol"})) is None


def test_the_first_role_that_fits_is_the_role():
    """In the order of the settings, from a list or a text."""
    issuer = Issuer(AT, "farthing", name="email", role="groups", roles={"dpo": "owner", "staff": "analyst"})
    entrance = Entrance(Register(hasher=servers.QUICK), issuer, keys=Published(), now=lambda: NOW)
    for groups, role in ((["staff", "dpo"], "owner"), ("staff", "analyst")):
        assert entrance.entering(signed(GOOD | {"email": "c@x.org", "groups": groups})).role == role
    assert entrance.entering(signed(GOOD | {"email": "c@x.org", "groups": "owner"})) is None


@pytest.mark.parametrize(
    "given",
    [{"issuer": "http://login.example.org"}, {"issuer": "ftp://x"}, {"issuer": ""}, {"audience": ""},
     {"algorithms": ()}, {"algorithms": ("HS256",)}, {"algorithms": ("RS256", "none")}, {"roles": {}},
     {"roles": {"x": "king"}}, {"name": ""}],
)  # fmt: skip
def test_settings_that_cannot_be_right_are_refused(given):
    """No address without TLS, no shared secret, no role that is none."""
    with pytest.raises(InvalidOption):
        Issuer(**{"issuer": AT, "audience": "farthing"} | given)


class Net:
    """What the issuer's addresses tell, and how often they were asked."""

    def __init__(self, monkeypatch, keys, **found):
        self.asked, self.keys = [], keys
        self.found = {"issuer": AT, "jwks_uri": AT + "/keys"} | found
        real = httpx.Client
        transport = httpx.MockTransport(self.told)
        monkeypatch.setattr(oidc.httpx, "Client", lambda **how: real(transport=transport, **how))

    def told(self, request):
        """Answer."""
        self.asked.append(str(request.url))
        if isinstance(self.keys, httpx.Response):
            return self.keys
        known = request.url.path == "/.well-known/openid-configuration"
        return httpx.Response(200, json=self.found if known else {"keys": self.keys})


def test_keys_are_fetched_once_and_again_when_one_is_unknown(monkeypatch):
    """Strangers cause one fetch in half a minute; a new key is found; keys that are old are fetched again."""
    net, now = Net(monkeypatch, [KEY.as_dict(private=False)]), [100.0]
    keys = IssuerKeys(AT, now=lambda: now[0])
    for _ in range(5):
        keys.of("one")
    assert len(net.asked) == 2
    for _ in range(5):
        keys.of("two")
    assert len(net.asked) == 2
    now[0] += oidc.PAUSE_S + 1
    net.keys = [KEY.as_dict(private=False), CURVE.as_dict(private=False)]
    assert {key.kid for key in keys.of("two")} == {"one", "two"}
    assert len(net.asked) == 4
    now[0] += oidc.FRESH_S + 1
    keys.of("one")
    assert len(net.asked) == 6


def test_an_issuer_that_is_away_is_no_stranger(monkeypatch):
    """Known keys are used for an hour more; then, and from the start, it is 503 and not 401."""
    net, now = Net(monkeypatch, [KEY.as_dict(private=False)]), [100.0]
    keys = IssuerKeys(AT, now=lambda: now[0])
    keys.of("one")
    net.keys = httpx.Response(500)
    now[0] += oidc.STALE_S - 1
    assert keys.of("one")
    now[0] += 2
    with pytest.raises(RefusedRequest) as refused:
        keys.of("one")
    assert refused.value.status == 503


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        ([OctKey.import_key("s" * 32).as_dict()], {}),
        ([KEY.as_dict(private=False) | {"use": "enc"}], {}),
        ([KEY.as_dict(private=False) | {"n": KEY.as_dict(private=False)["n"][:171]}], {}),
        ([KEY.as_dict(private=False)], {"issuer": "https://evil.example"}),
        ([KEY.as_dict(private=False)], {"jwks_uri": "http://login.example.org/keys"}),
        ([], {}),
        (["x"], {}),
        (httpx.Response(302, headers={"Location": "https://evil.example"}), {}),
        (httpx.Response(200, content=b"[" * (1 << 19)), {}),
        (httpx.Response(200, content=b"{"), {}),
    ],
)
def test_what_is_published_is_not_believed_blindly(monkeypatch, keys, found):
    """Secret, short and other keys, other issuers, addresses without TLS, redirections and floods: no keys."""
    Net(monkeypatch, keys, **found)
    with pytest.raises(RefusedRequest):
        IssuerKeys(AT).of("one")


def test_a_list_that_has_a_shared_secret_is_seen(monkeypatch, entrance):
    """Planted: were HS256 allowed, whoever knows the secret that checks a token could write one."""
    secret = OctKey.import_key("s" * 32)
    token = signed(key=secret, alg="HS256")
    monkeypatch.setattr(entrance._keys, "of", lambda _: KeySet([secret]))
    assert entrance.entering(token) is None
    monkeypatch.setattr(oidc, "SIGNED", (*oidc.SIGNED, "HS256"))
    monkeypatch.setattr(entrance, "_issuer", Issuer(AT, "farthing", algorithms=("HS256",)))
    assert entrance.entering(token) is not None
