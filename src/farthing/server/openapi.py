"""The server's interface, as OpenAPI tells it."""

from __future__ import annotations

from typing import Any, Final

from farthing.server.people import LONGEST_NAME
from farthing.server.service import LONGEST_SQL, OPTIONS

_NAMES: Final = {str: "string", int: "integer", float: "number", bool: "boolean", dict: "object"}
_ERROR: Final = {"$ref": "#/components/responses/Error"}
_TEXT: Final = {"type": "string"}
_KEYS: Final = {"type": ["array", "string"]}
_CLOSED: Final = {"additionalProperties": False}
_LOSS: Final = {"type": "object", "additionalProperties": {"type": "number"}}


def document() -> dict[str, Any]:
    """Return the OpenAPI document."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "farthing",
            "version": "1",
            "description": "Answers about private tables at the accuracy that is named, for the least privacy loss.",
        },
        "security": [{"token": []}],
        "paths": {
            "/health": {
                "get": _operation("Whether the server runs", _object({"status": {"type": "string"}}), free=True)
            },
            "/metrics": {"get": _counts()},
            "/v1/me": {"get": _operation("Who asks", _object({"name": _TEXT, "role": _TEXT}))},
            "/v1/people": {"get": _operation("Who may ask, with their shares", _object({"people": _list()}))},
            "/v1/datasets": {"get": _operation("The data sets", _object({"datasets": _list()}))},
            "/v1/history": {
                "get": _operation("What was asked", _object({"history": _list()}))
                | {
                    "parameters": [
                        _parameter("dataset", {"type": "string"}),
                        _parameter("limit", {"type": "integer", "minimum": 1, "maximum": 10_000}),
                    ]
                }
            },
            "/v1/plan": {"post": _operation("The price of a question, free", _plan()) | _question()},
            "/v1/ask": {"post": _operation("The answer to a question", _answer()) | _question()},
            "/v1/verify": {
                "post": _operation(
                    "Check the books of a data set",
                    _object({"verified": {"type": "boolean"}, "head": {"type": "string"}}),
                )
                | _body(_object({"dataset": {"type": "string"}}, "dataset"))
            },
            "/v1/freeze": {"post": _operation("Charge nothing more, until thawed", _stopped()) | _whose()},
            "/v1/thaw": {"post": _operation("Charge again what was frozen", _stopped()) | _whose()},
        },
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": {"Error": _response("What went wrong, and what to do", _error())},
        },
    }


def _counts() -> dict[str, Any]:
    """Return the operation that tells the counts of requests."""
    text = {"description": "Counts for Prometheus", "content": {"text/plain": {"schema": _TEXT}}}
    return {"summary": "Counts of requests", "responses": {"200": text, "default": _ERROR}}


def _operation(summary: str, shape: dict[str, Any], *, free: bool = False) -> dict[str, Any]:
    """Return one method of one path."""
    made: dict[str, Any] = {"summary": summary, "responses": {"200": _response(summary, shape), "default": _ERROR}}
    return made | ({"security": []} if free else {})


def _question() -> dict[str, Any]:
    """Return the body of a question."""
    options = {name: {"type": [_NAMES[kind] for kind in kinds] + ["null"]} for name, kinds in OPTIONS.items()}
    fields = {
        "dataset": {"type": "string"},
        "sql": {"type": "string", "maxLength": LONGEST_SQL},
        "keys": {"anyOf": [{"type": "object", "additionalProperties": _KEYS}, {"const": "private"}, {"type": "null"}]},
        "plan": {"type": "string", "description": "the id of a plan: the question is charged at most what it told"},
    }
    whole = {"required": ["dataset", "sql"]}, {"required": ["plan"]}
    return _body(_object(fields | options) | _CLOSED | {"anyOf": list(whole)})


def _whose() -> dict[str, Any]:
    """Return the body that names a data set, and perhaps an analyst."""
    name = {"type": ["string", "null"], "minLength": 1, "maxLength": LONGEST_NAME}
    return _body(_object({"dataset": _TEXT, "analyst": name}, "dataset") | _CLOSED)


def _stopped() -> dict[str, Any]:
    """Return the shape of what is frozen."""
    names = {"type": "array", "items": _TEXT}
    return _object({"dataset": _TEXT, "frozen": {"type": "boolean"}, "frozen_analysts": names})


def _plan() -> dict[str, Any]:
    """Return the shape of a plan."""
    return _object({"plan": {"type": "string"}, "worst_price": _LOSS, "remaining": _LOSS, "fits": {"type": "boolean"}})


def _answer() -> dict[str, Any]:
    """Return the shape of an answer."""
    return _object({"answers": _list(), "paid": _LOSS, "remaining": _LOSS})


def _error() -> dict[str, Any]:
    """Return the shape of an error."""
    facts = {name: {"type": "string"} for name in ("kind", "message", "rule", "got", "next")}
    return _object({"error": _object(facts, *facts)}, "error")


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    """Return the schema of an object."""
    return {"type": "object", "properties": properties} | ({"required": list(required)} if required else {})


def _list() -> dict[str, Any]:
    """Return the schema of a list of rows."""
    return {"type": "array", "items": {"type": "object"}}


def _parameter(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return a parameter of the query."""
    return {"name": name, "in": "query", "schema": schema}


def _body(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a body of JSON."""
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def _response(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return a response of JSON."""
    return {"description": description, "content": {"application/json": {"schema": schema}}}
