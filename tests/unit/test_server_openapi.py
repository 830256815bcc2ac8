"""What the server's own document promises is what it does: schemathesis asks all of it, with and against the rules."""

from __future__ import annotations

import contextlib

import pytest
import servers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from sweeps import sweep

from farthing.server.app import app
from farthing.server.guard import Limits

schemathesis = pytest.importorskip("schemathesis", reason="the extra `test` is not whole: pip install schemathesis")

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of schemathesis and what it brings
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

EXAMPLES = sweep(6, 40)
OWNER, ALICE = "owner", "alice"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A server whose requests are not limited, and its schema."""
    made = servers.World(tmp_path_factory.mktemp("openapi"))
    made.schema = schemathesis.openapi.from_asgi(
        "/openapi.json", app(made.service, made.people, limits=Limits(1e9, 1e9))
    )
    yield made
    made.close()


def operations(schema):
    """Return all operations of a schema."""
    return [found.ok() for found in schema.get_all_operations()]


def test_every_operation_is_asked(world):
    """The document has the operations that are tried below."""
    assert len(operations(world.schema)) >= 11


@pytest.mark.parametrize("who", [OWNER, ALICE])
@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode))
def test_the_document_is_kept(world, who, mode):
    """Each response has a status and a shape that is documented; no error is the server's own, whatever is sent."""
    headers = {"Authorization": f"Bearer {world.tokens[who]}"}
    for operation in operations(world.schema):

        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)
        def tried(case):
            """Send it, and hold the response against the document."""
            response = case.call(headers=headers)
            assert response.status_code < 500
            case.validate_response(response)

        with contextlib.suppress(Unsatisfiable):  # nothing is against the rules where there are none
            tried()


def test_questions_that_are_nearly_right(world):
    """Requests about a table that is there, with odd options: an answer or one clear error, never the server's own."""
    operation = world.schema["/v1/ask"]["POST"]
    headers = {"Authorization": f"Bearer {world.tokens[ALICE]}"}
    numbers = st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-5, 500)
    extra = st.dictionaries(st.sampled_from(["relative", "absolute", "confidence", "max_epsilon"]), numbers, max_size=3)
    keys = (
        st.none() | st.just("private") | st.dictionaries(st.text(max_size=4), st.lists(st.text(max_size=3)), max_size=2)
    )

    @given(extra=extra, keys=keys, sql=st.sampled_from([servers.COUNT["sql"], "SELECT AVG(x) FROM rides", "SELECT 1"]))
    @settings(max_examples=sweep(15, 40), deadline=None, suppress_health_check=list(HealthCheck), database=None)
    def tried(extra, keys, sql):
        """Ask it."""
        body = {"dataset": "rides", "sql": sql, "keys": keys} | extra
        response = operation.Case(body=body, media_type="application/json").call(headers=headers)
        assert response.status_code < 500

    tried()
