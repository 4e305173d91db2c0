"""What both clients share: requests, pauses between attempts, and the parser of event streams."""

from __future__ import annotations

import dataclasses
import json
import random
import re
import typing
import urllib.parse
import uuid
from collections.abc import Mapping, Sequence

import httpx

from . import types as api
from .errors import ApiError, ConnectionError

API_ROOT = "/api/canvas-agent/v1"
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
POLL = 1.0
"""Seconds between two reads of a service that does not wait."""
WAIT = 20
"""Seconds that a read waits at the service for a change."""
SILENCE = 45.0
"""The service sends a comment after 15 s without an event: after this time, the connection is lost."""
CONFLICTS = 5
"""Times that a change is made anew after a conflict."""
ENDS = {"succeeded", "failed", "canceled", "expired"}


@dataclasses.dataclass(frozen=True)
class Request:
    """A request, the same in each attempt."""

    method: str
    path: str
    query: list[tuple[str, str | int | float | bool | None]]
    headers: dict[str, str]
    content: bytes | None
    is_repeatable: bool


def prepare(
    method: str,
    path: str,
    *,
    segments: Sequence[str] = (),
    query: Mapping[str, object] | None = None,
    headers: Mapping[str, str | None] | None = None,
    body: Mapping[str, object] | None = None,
    content: bytes | None = None,
    takes_key: bool = False,
    is_paid: bool = False,
) -> Request:
    """Makes a request of an operation.

    It is repeatable if it is a read, a dry run, or a mutation with an idempotency key that spends no credit.
    """
    ids = iter(segments)
    filled = re.sub(r"{(\w+)}", lambda name: _segment(name[1], next(ids)), path)
    pairs: list[tuple[str, str | int | float | bool | None]]
    pairs = [(name, _text(each)) for name, value in (query or {}).items() if value is not None
             for each in (value if isinstance(value, list) else [value])]
    sent = {name: value for name, value in (headers or {}).items() if value is not None}
    if "X-Service-File-Name" in sent:
        sent["X-Service-File-Name"] = urllib.parse.quote(sent["X-Service-File-Name"], safe="")
    is_repeatable = method == "GET" or "Idempotency-Key" in sent
    if body is not None:
        keyed = dict(body)
        if takes_key:
            keyed.setdefault("idempotencyKey", str(uuid.uuid4()))
        is_repeatable = keyed.get("validateOnly") is True or ("idempotencyKey" in keyed and not is_paid)
        content = json.dumps(keyed).encode()
        sent["Content-Type"] = "application/json"
    return Request(method, API_ROOT + filled, pairs, sent, content, is_repeatable)


def _segment(name: str, value: str) -> str:
    # A URL drops "." and "..", so that the request would address another resource.
    if value in ("", ".", ".."):
        raise ValueError(f"{value!r} is no value of {name}")
    return urllib.parse.quote(value, safe=":@")


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def failure(response: httpx.Response, request_id: str) -> ApiError:
    """The error of a response whose body was read."""
    try:
        body = typing.cast(api.ErrorBody, response.json()["error"])
    except (ValueError, KeyError, TypeError):
        body = typing.cast(api.ErrorBody, {})
    known = response.headers.get("x-request-id", request_id)
    return ApiError(response.status_code, known, response.headers.get("retry-after"), body)


def is_temporary(error: Exception) -> bool:
    """`True` for a failure that may pass by itself."""
    return isinstance(error, ConnectionError) or (isinstance(error, ApiError) and (error.status == 429 or error.status >= 500))


def pause_after(error: Exception, attempt: int) -> float | None:
    """Seconds before the attempt that follows the failed one of this number.

    `None` if a repetition would fail in the same way, or the service asks for too long a pause. Half of a pause is random, so that clients
    that failed together do not return together.
    """
    if not is_temporary(error):
        return None
    grown = min(FIRST_PAUSE * 2.0 ** min(attempt - 1, 16), LONGEST_PAUSE)
    asked = (isinstance(error, ApiError) and error.retry_after) or 0.0
    return None if asked > LONGEST_PAUSE else max(asked, grown * random.uniform(0.5, 1.0))


class Event(typing.NamedTuple):
    """An event of a stream: its name, and its data as text."""

    name: str
    data: str


class EventParser:
    """Parses server-sent events (the HTML standard) from pieces of any size."""

    def __init__(self) -> None:
        self._rest = ""
        self._name = ""
        self._data: list[str] = []

    def feed(self, piece: str) -> list[Event]:
        """The events that end in this piece."""
        *lines, self._rest = (self._rest + piece).split("\n")
        events = []
        for line in lines:
            field, _, value = line.removesuffix("\r").partition(":")
            if not field and not value:
                if self._data:
                    events.append(Event(self._name, "\n".join(self._data)))
                self._name, self._data = "", []
            elif field == "event":
                self._name = value.strip()
            elif field == "data":
                self._data.append(value.removeprefix(" "))
        return events
