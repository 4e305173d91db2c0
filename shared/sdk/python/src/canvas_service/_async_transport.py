"""Sends requests, and repeats those that may be."""

from __future__ import annotations

import asyncio
import typing
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

import httpx

from . import _rules
from .errors import CanvasError, ConnectionError

if typing.TYPE_CHECKING:
    from typing_extensions import Unpack

P = typing.ParamSpec("P")


class AsyncTransport:
    """Repeats requests that may be repeated after 429, 5xx or no answer. Key and body stay the same, so that they have one effect."""

    def __init__(self, base_url: str, token: str, *, retries: int = 4, timeout: float = 60.0, http: httpx.AsyncClient | None = None) -> None:
        """`timeout` is the number of seconds without a byte; `http` sends the requests in place of a client of its own."""
        self._base = base_url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "*/*"}
        self._retries = retries
        self._timeout = timeout
        self._http = http or httpx.AsyncClient()

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    async def _json(self, method: str, path: str, **call: Unpack[Call]) -> object:
        response = await self._send(_rules.prepare(method, path, **call))
        return typing.cast(object, response.json())

    async def _text(self, method: str, path: str, **call: Unpack[Call]) -> str:
        return (await self._send(_rules.prepare(method, path, **call))).text

    async def _bytes(self, method: str, path: str, **call: Unpack[Call]) -> bytes:
        return (await self._send(_rules.prepare(method, path, **call))).content

    async def _send(self, request: _rules.Request, *, is_stream: bool = False) -> httpx.Response:
        """A successful response: of a stream, with its body unread."""
        attempt = 1
        while True:
            try:
                return await self._attempt(request, is_stream)
            except CanvasError as error:
                pause = _rules.pause_after(error, attempt) if request.is_repeatable and attempt <= self._retries else None
                if pause is None:
                    raise
            await asyncio.sleep(pause)
            attempt += 1

    async def _attempt(self, request: _rules.Request, is_stream: bool) -> httpx.Response:
        # Sent, so that also a request without an answer can be found in the logs of the service.
        request_id = str(uuid.uuid4())
        timeout = httpx.Timeout(self._timeout, read=_rules.SILENCE if is_stream else self._timeout)
        try:
            response = await self._http.send(
                self._http.build_request(
                    request.method,
                    self._base + request.path,
                    params=request.query,
                    headers={**self._headers, **request.headers, "X-Request-ID": request_id},
                    content=request.content,
                    timeout=timeout,
                ),
                stream=is_stream,
                follow_redirects=False,
            )
            if response.is_success or response.status_code == 304:
                return response
            await response.aread()
        except httpx.TransportError as error:
            raise ConnectionError(f"{request.method} {request.path}: no complete answer: {error!r}", request_id) from error
        raise _rules.failure(response, request_id)

    async def _items(self, operation: Callable[P, Awaitable[object]], *segments: P.args, **parameters: P.kwargs) -> AsyncIterator[object]:
        seen: set[object] = set()
        while True:
            answer = typing.cast("dict[str, object]", await operation(*segments, **parameters))
            for item in next(member for member in answer.values() if isinstance(member, list)):
                name = item.get("handle", item.get("id"))
                if name is None or name not in seen:
                    seen.add(name)
                    yield item
            page = typing.cast("dict[str, object]", answer["page"])
            if not page["hasMore"]:
                return
            parameters["cursor"] = page["nextCursor"]


class Call(typing.TypedDict, total=False):
    """What a request has besides method and path: the arguments of `_rules.prepare`."""

    segments: Sequence[str]
    query: Mapping[str, object] | None
    headers: Mapping[str, str | None] | None
    body: Mapping[str, object] | None
    content: bytes | None
    takes_key: bool
    is_paid: bool
