"""Client of Canvas Service."""

from . import types
from ._async_client import AsyncCanvasClient
from ._sync_client import CanvasClient
from .errors import ApiError, CanvasError, ConnectionError, WaitTimeoutError, WebhookError, Work, WorkFailedError
from .webhook import verify_webhook

__all__ = [
    "ApiError",
    "AsyncCanvasClient",
    "CanvasClient",
    "CanvasError",
    "ConnectionError",
    "WaitTimeoutError",
    "WebhookError",
    "Work",
    "WorkFailedError",
    "types",
    "verify_webhook",
]
