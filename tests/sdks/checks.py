"""The type of a check, and helpers that the checks of all SDKs share."""

import base64
import urllib.request
from typing import Callable, NamedTuple, Optional

# The key that every simulator accepts, and the prompt that every simulator rejects for its content.
KEY = "sim-key-0123456789abcdef"
FORBIDDEN = "[[sim:content]]"
TIMEOUT = 30

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
DATA_URL = "data:image/png;base64," + base64.b64encode(PNG).decode()
# The prompt for variations that have no prompt of their own. No current model of these vendors has an endpoint for variations.
VARY = "Make a new variation of this image."


class Check(NamedTuple):
    """An interaction of an SDK with a simulator; `run` raises an exception if the result is wrong."""

    what: str
    run: Callable[[], object]
    # A capability of the catalog, or "text"; None if the check is about no capability.
    capability: Optional[str] = None
    # "success" or "failure", of the capability.
    outcome: Optional[str] = None


def makes(capability, run, how=""):
    """The capability succeeds."""
    return Check(f"{capability} {how}".strip(), run, capability, "success")


def fails(capability, why, run):
    """The capability fails, and the SDK reports it as the vendor does."""
    return Check(f"{capability} fails: {why}", run, capability, "failure")


def also(what, run):
    """A check that belongs to no capability."""
    return Check(what, run)


def is_png(data):
    assert data[:8] == b"\x89PNG\r\n\x1a\n", data[:40]


def is_mp4(data):
    assert data[4:8] == b"ftyp", data[:40]


def is_written(text, prompt):
    assert text == f"Written of: {prompt}", text


def fetch(url):
    """Downloads the URL. Certificate authorities come from SSL_CERT_FILE, as for the SDKs."""
    with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:
        return answer.read()


def refused(kind, call, *words):
    """Asserts that the call raises `kind` with a message that contains every word."""
    try:
        call()
    except kind as error:
        for word in words:
            assert word in str(error) + repr(error.__dict__), f"{word!r} not in {error!r}"
        return
    raise AssertionError(f"not rejected with {kind}")
