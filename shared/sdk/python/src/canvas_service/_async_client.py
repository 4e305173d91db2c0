"""The client."""

from __future__ import annotations

import asyncio
import json
import mimetypes
import os
import time
import typing
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path

import httpx

from . import _rules
from . import types as api
from ._async_operations import AsyncOperations
from .errors import ApiError, CanvasError, ConnectionError, WaitTimeoutError, WorkFailedError, Work

if typing.TYPE_CHECKING:
    from typing_extensions import Self

W = typing.TypeVar("W", api.ImageJob, api.RecipeRun, api.VideoJob)
T = typing.TypeVar("T")


class AsyncCanvasClient(AsyncOperations):
    """A client of one service with one token."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @typing.overload
    async def wait_for_run(self, work: W, *, timeout: float = ..., on_change: Callable[[Work], object] | None = ...) -> W: ...
    @typing.overload
    async def wait_for_run(self, work: str, *, timeout: float = ..., on_change: Callable[[Work], object] | None = ...) -> Work: ...
    async def wait_for_run(self, work: Work | str, *, timeout: float = 900.0, on_change: Callable[[Work], object] | None = None) -> Work:
        """Waits for the end of a run or job, given as a record or by its handle, and returns its last record.

        Raises `WorkFailedError` if it did not succeed, and `WaitTimeoutError` when `timeout` seconds are over. `on_change` is called with each
        state. The service answers when something changes, so little is sent.
        """
        handle = work if isinstance(work, str) else str(work.get("run", work["id"]))
        path = "/jobs/{jobId}" if handle.startswith("job:") else "/runs/{runId}"
        deadline = time.monotonic() + timeout
        last: Work | None = None
        etag: str | None = None
        while True:
            left = max(0.0, deadline - time.monotonic())
            headers: dict[str, str | None] = {}
            if etag and left > 0:
                headers = {"Prefer": f"wait={min(_rules.WAIT, int(left) + 1)}", "If-None-Match": etag}
            asked = time.monotonic()
            response = await self._send(_rules.prepare("GET", path, segments=[handle], headers=headers))
            known = typing.cast("str | None", response.headers.get("etag"))
            if response.status_code != 304:
                work = typing.cast(Work, response.json())
                if on_change and (last is None or known != etag):
                    on_change(work)
                last = work
                if work["status"] == "succeeded":
                    return work
                if work["status"] in _rules.ENDS:
                    raise WorkFailedError(work)
            else:
                known = known or etag
            if last is not None and left == 0:
                raise WaitTimeoutError(last)
            # Nothing changed, and the service did not wait: a proxy dropped the preference, or the work has no worker. Without a tag
            # there is nothing to wait from.
            if known is None or (known == etag and time.monotonic() - asked < _rules.POLL):
                await asyncio.sleep(min(_rules.POLL, left))
            etag = known

    async def upload_file(
        self,
        file: bytes | str | os.PathLike[str],
        *,
        file_name: str | None = None,
        media_type: str | None = None,
        idempotency_key: str | None = None,
        canvas_id: str | None = None,
        node: typing.Literal["none"] | None = None,
        metadata: api.UploadMetadata | None = None,
        owner_uid: str | None = None,
    ) -> api.Asset:
        """Uploads a file, given by its path or as its bytes, and repeats the upload without a second effect."""
        if not isinstance(file, bytes):
            file_name = file_name or Path(file).name
            file = Path(file).read_bytes()
        answer = await self.upload_asset(
            file,
            media_type=media_type or mimetypes.guess_type(file_name or "")[0] or "application/octet-stream",
            file_name=file_name,
            idempotency_key=idempotency_key or str(uuid.uuid4()),
            canvas_id=canvas_id,
            node=node,
            metadata=metadata,
            owner_uid=owner_uid,
        )
        return answer["asset"]

    async def with_revision(self, canvas_id: str, change: Callable[[api.Canvas], Awaitable[T]]) -> T:
        """Makes a change that is based on the present revision of a canvas.

        `change` is called with the canvas, and again with the canvas as it is then, if somebody else wrote in between: at most five times.
        Build the whole request in it, without a key of your own.
        """
        attempt = 1
        while True:
            canvas = (await self.get_canvas(canvas_id))["canvas"]
            try:
                return await change(canvas)
            except ApiError as error:
                if not error.is_revision_conflict or attempt == _rules.CONFLICTS:
                    raise
            attempt += 1

    async def follow_events(
        self, *, canvases: list[str] | None = None, runs: typing.Literal["mine"] | None = None, pointers: bool | None = None
    ) -> AsyncGenerator[api.StreamEvent, None]:
        """Follows canvases, and with `runs="mine"` the runs of the account.

        The present state comes first, also after a connection was lost: it is opened again, and states that were sent before are left out.
        What happened in between is in `get_canvas_changes`, from the last revision.
        """
        left = list(canvases or [])

        def request() -> _rules.Request:
            query = {"canvas": left, "runs": runs, "pointers": pointers}
            return _rules.prepare("GET", "/events", query=query, headers={"Accept": "text/event-stream"})

        async with aclosing(self._follow(request)) as events:
            async for name, data in events:
                yield typing.cast(api.StreamEvent, {"event": name, "data": data})
                if name == "gone":
                    gone = str(data["canvas"])
                    left = [each for each in left if each != gone and not gone.endswith(":" + each.rpartition(":")[2])]
                    if not left and not runs:
                        return

    async def follow_run(self, run: str) -> AsyncGenerator[api.Run, None]:
        """Follows a run, and ends after its last state."""
        request = _rules.prepare("GET", "/runs/{runId}/events", segments=[run], headers={"Accept": "text/event-stream"})
        async with aclosing(self._follow(lambda: request)) as events:
            async for _, data in events:
                yield typing.cast(api.Run, data)
                if data["status"] in _rules.ENDS:
                    return

    async def _follow(self, request: Callable[[], _rules.Request]) -> AsyncGenerator[tuple[str, dict[str, object]], None]:
        """The events of a stream, over any number of connections; without those that repeat the last one of their subject."""
        last: dict[tuple[str, object], str] = {}
        failures = 0
        was_open = False
        while True:
            pause = _rules.POLL
            try:
                async with aclosing(await self._send(request(), is_stream=True)) as response:
                    was_open = True
                    async with aclosing(self._events(response)) as events:
                        async for name, text in events:
                            failures = 0
                            data = typing.cast("dict[str, object]", json.loads(text))
                            subject = (name, data.get("run", data.get("canvas")))
                            if last.get(subject) != text:
                                last[subject] = text
                                yield name, data
            except CanvasError as error:
                if not was_open or not _rules.is_temporary(error):
                    raise
                failures += 1
                pause = _rules.pause_after(error, failures) or pause
            # Where the service ended the stream, it shuts down, or the credential is not valid any more.
            await asyncio.sleep(pause)

    async def _events(self, response: httpx.Response) -> AsyncGenerator[_rules.Event, None]:
        parser = _rules.EventParser()
        try:
            async for piece in response.aiter_text():
                for event in parser.feed(piece):
                    yield event
        except httpx.TransportError as error:
            request_id = response.headers.get("x-request-id", "")
            raise ConnectionError(f"the stream broke off: {error!r}", request_id) from error
