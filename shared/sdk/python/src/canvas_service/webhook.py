"""Verification of webhooks."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
import typing
from collections.abc import Iterable, Mapping

from . import types as api
from .errors import WebhookError


def verify_webhook(
    headers: Mapping[str, str], body: bytes, secrets: str | Iterable[str], *, tolerance_seconds: float = 300, now: float | None = None
) -> api.Event:
    """Verifies the signature of a webhook and returns its event, or raises `WebhookError`.

    `headers` have names in any case, and `body` is the body as it was received: parsing and serializing changes it. `secrets` are those
    that may have signed it: during a rotation, the new and the old one. An event can arrive more than once: do nothing twice for one `id`.
    """
    accepted = [secrets] if isinstance(secrets, str) else list(secrets)
    if not accepted or not all(accepted):
        raise ValueError("a secret is missing")
    values = {name.lower(): value for name, value in headers.items()}
    timestamp = values.get("service-webhook-timestamp", "")
    if not re.fullmatch(r"[0-9]{10,13}", timestamp):
        raise WebhookError("there is no valid Service-Webhook-Timestamp")
    # Of 13 digits, it is in milliseconds.
    signed_at = int(timestamp) / (1000 if len(timestamp) > 12 else 1)
    if abs((time.time() if now is None else now) - signed_at) > tolerance_seconds:
        raise WebhookError("the signature is too old, or of the future")
    parts = values.get("service-webhook-signature", "").split(",")
    signatures = [found[1].encode() for part in parts if (found := re.fullmatch(r"\s*v1=([0-9a-f]{64})\s*", part))]
    signed = timestamp.encode() + b"." + body
    is_genuine = False
    for secret in accepted:
        expected = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest().encode()
        # Each comparison takes constant time, and all pairs are compared.
        for signature in signatures:
            is_genuine |= hmac.compare_digest(expected, signature)
    if not is_genuine:
        raise WebhookError("the signature does not match")
    return typing.cast(api.Event, json.loads(body))
