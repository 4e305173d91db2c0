"""The errors of this package."""

from __future__ import annotations

import datetime
import email.utils
import typing

from . import types as api

Work: typing.TypeAlias = "api.ImageJob | api.RecipeRun | api.VideoJob"


class CanvasError(Exception):
    """The base of all errors of this package."""


class ApiError(CanvasError):
    """The service refused a request."""

    def __init__(self, status: int, request_id: str, retry_after: str | None, body: api.ErrorBody) -> None:
        self.status = status
        self.code: api.ErrorCode = body.get("code", "request_failed")
        """Stable: branch on it, never on the message."""
        self.fields = body.get("fields", [])
        """Each violation, with the field that it concerns."""
        self.details: dict[str, object] = {**body.get("details", {})}
        """Data for programs, for example `currentRevision` of a revision conflict."""
        self.request_id = request_id
        """Identifies the request for support."""
        self.retry_after = _seconds(retry_after)
        """Seconds after which the request may pass."""
        fields = ";".join(f" {violation['field']}: {violation['message']}" for violation in self.fields)
        message = body.get("message", "no error envelope")
        super().__init__(f"{status} {self.code}: {message}{fields} (request {request_id})")

    @property
    def is_revision_conflict(self) -> bool:
        """`True` if the canvas has another revision than the request is based on."""
        return self.code == "conflict" and "currentRevision" in self.details


class ConnectionError(CanvasError):
    """There was no answer, or it broke off. Whether the request had an effect is not known."""

    def __init__(self, message: str, request_id: str) -> None:
        self.request_id = request_id
        """The id that the request carried."""
        super().__init__(f"{message} (request {request_id})")


class WorkFailedError(CanvasError):
    """Work ended without success. `work["failure"]` says why, where there is a reason."""

    def __init__(self, work: Work) -> None:
        self.work = work
        failure = work.get("failure")
        super().__init__(f"{work['id']} is {work['status']}" + (f": {failure['code']}, {failure['message']}" if failure else ""))


class WaitTimeoutError(CanvasError):
    """Work had not ended when the time to wait was over. It goes on: wait again, or cancel it."""

    def __init__(self, work: Work) -> None:
        self.work = work
        super().__init__(f"{work['id']} is still {work['status']}")


class WebhookError(CanvasError):
    """A webhook is not genuine, or too old."""


def _seconds(retry_after: str | None) -> float | None:
    if retry_after is None:
        return None
    if retry_after.isascii() and retry_after.isdigit():
        return float(retry_after)
    try:
        time = email.utils.parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    return max(0.0, (time - datetime.datetime.now(datetime.timezone.utc)).total_seconds())
