"""What a check is, and what the checks of all SDKs share."""

import base64
import urllib.request
from typing import Callable, NamedTuple, Optional

# The key that every simulator takes, and the prompt that each of them refuses for its content.
KEY = "sim-key-0123456789abcdef"
FORBIDDEN = "[[sim:content]]"
TIMEOUT = 30

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
DATA_URL = "data:image/png;base64," + base64.b64encode(PNG).decode()
# What is sent where a variation has no prompt of its own: no vendor's models of today have a route for variations.
VARY = "Make a new variation of this image."


class Check(NamedTuple):
    """Something that an SDK does with a simulator; `run` raises when it is not as it should be."""

    what: str
    run: Callable[[], object]
    # Of the catalogue's, or "text"; none where it is about none of them.
    capability: Optional[str] = None
    # "success" or "failure", of the capability.
    outcome: Optional[str] = None


def makes(capability, run, how=""):
    """The capability succeeds."""
    return Check(f"{capability} {how}".strip(), run, capability, "success")


def fails(capability, why, run):
    """The capability fails, and the SDK says so in the vendor's way."""
    return Check(f"{capability} fails: {why}", run, capability, "failure")


def also(what, run):
    """Something that is no capability's own."""
    return Check(what, run)


def is_png(data):
    assert data[:8] == b"\x89PNG\r\n\x1a\n", data[:40]


def is_mp4(data):
    assert data[4:8] == b"ftyp", data[:40]


def is_written(text, prompt):
    assert text == f"Written of: {prompt}", text


def fetch(url):
    """What lies there. Authorities come from SSL_CERT_FILE, as for the SDKs."""
    with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:
        return answer.read()


def refused(kind, call, *words):
    """The call raises `kind`, and its text has every word."""
    try:
        call()
    except kind as error:
        for word in words:
            assert word in str(error) + repr(error.__dict__), f"{word!r} not in {error!r}"
        return
    raise AssertionError(f"not refused with {kind}")
