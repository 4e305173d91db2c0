"""A client over plain HTTP that counts what it sends and receives, and the stream of events."""

import http.client
import itertools
import json
import re
import secrets
import threading
import urllib.parse

API = "/api/canvas-agent/v1"
TERMINAL = ("succeeded", "failed", "canceled", "expired")
# Longer than any task takes.
DEADLINE = 120

HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
PIECE = re.compile(r"(?P<breaks>\n+)|(?P<letters>[^\W\d_]+)|(?P<digits>\d+)|(?P<signs>(?:[^\w\s]|_)+)")
# Characters of each kind that are one token at most: as gateway/src/openapi/digest/tokens.rs counts them, and as
# shared/tools/src/catalogue.rs does for lists of tools, which are JSON.
MOST = {"letters": 7, "digits": 3, "signs": 2}
MOST_OF_LIST = {"letters": 8, "digits": 3, "signs": 3}


def tokens(text, most=MOST):
    """An estimate of the tokens of a text."""
    pieces = PIECE.finditer(HUMP.sub(" ", text))
    return sum(1 if it.lastgroup == "breaks" else -(-len(it[0]) // most[it.lastgroup]) for it in pieces)


class Refused(Exception):
    """A response that the caller did not expect."""

    def __init__(self, call, status, body):
        super().__init__(f"{call}: {status} {json.dumps(body)[:1000]}")
        self.status, self.error = status, body.get("error", {}) if isinstance(body, dict) else {}


class Cost:
    """What an agent sends and receives, in rows."""

    def __init__(self):
        self.rows, self.conflicts, self.lock = {}, [], threading.Lock()
        self.row = None

    def begin(self, name):
        self.row = self.rows.setdefault(name, {"requests": 0, "bytes": 0, "written": 0, "read": 0, "409": 0})

    def add(self, **counts):
        with self.lock:
            for name, count in counts.items():
                self.row[name] += count

    def total(self, *names):
        return sum(row[name] for row in self.rows.values() for name in names)


class Client:
    """Requests with a token. Those of a client with a `cost` are counted there."""

    def __init__(self, base_url, token, cost=None):
        self.host, self.token, self.cost = urllib.parse.urlsplit(base_url).netloc, token, cost
        self.connection = http.client.HTTPConnection(self.host, timeout=DEADLINE)

    def uncounted(self):
        """A client with the same token whose requests are not counted."""
        return Client(f"http://{self.host}", self.token)

    def call(self, method, path, body=None, file=None, **headers):
        """Sends a request and returns the body of its answer. `file` is a name and bytes; headers are written with `_`."""
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        written = "\n".join([f"{method} {path}"] + [f"{name}: {value}" for name, value in headers.items()])
        data = None
        if file:
            kind = "jpeg" if file[0].endswith(".jpg") else "png"
            headers |= {"Content-Type": f"image/{kind}", "X-Service-File-Name": file[0]}
            data, written = file[1], f"{written}\n{file[0]}"
        elif body is not None:
            headers["Content-Type"] = "application/json"
            text = json.dumps(body, separators=(",", ":"))
            data, written = text.encode(), f"{written}\n{text}"
        self.connection.request(method, API + path, data, headers | {"Authorization": f"Bearer {self.token}"})
        response = self.connection.getresponse()
        text = response.read().decode()
        if self.cost:
            size = len(data or b"") + len(text.encode())
            self.cost.add(requests=1, bytes=size, written=tokens(written), read=tokens(text))
        is_json = response.headers.get_content_type() == "application/json"
        answer = json.loads(text) if is_json else text
        if response.status == 409 and self.cost:
            self.cost.add(**{"409": 1})
            self.cost.conflicts.append(f"{method} {path}: {answer['error']['message']}")
        if response.status >= 400:
            raise Refused(f"{method} {path}", response.status, answer)
        return answer

    def get(self, path, **headers):
        return self.call("GET", path, **headers)

    def post(self, path, body=None, **rest):
        return self.call("POST", path, body, **rest)

    def wait(self, run):
        """The record of a run when it is over, by long polls."""
        while True:
            record = self.get(f"/runs/{run}", Prefer="wait=30")
            if record["status"] in TERMINAL:
                return record


TASK, STEPS = secrets.token_hex(2), itertools.count(1)


def key():
    """An idempotency key in the form that docs/guides/agents.md recommends."""
    return f"task-{TASK}-step-{next(STEPS)}"


class Events:
    """The caller's runs as `GET /events` tells them: one request for all waits."""

    def __init__(self, client):
        self.cost, self.runs, self.changed = client.cost, {}, threading.Condition()
        self.connection = http.client.HTTPConnection(client.host, timeout=DEADLINE)
        headers = {"Authorization": f"Bearer {client.token}", "Accept": "text/event-stream"}
        self.connection.request("GET", f"{API}/events?runs=mine", headers=headers)
        self.response = self.connection.getresponse()
        assert self.response.status == 200, self.response.status
        self.cost.add(requests=1, written=tokens("GET /events?runs=mine"))
        threading.Thread(target=self.follow, daemon=True).start()

    def follow(self):
        for line in self.response:
            text = line.decode()
            self.cost.add(bytes=len(line), read=tokens(text))
            if text.startswith("data:"):
                event = json.loads(text[5:])
                with self.changed:
                    self.runs[event.get("run")] = event["status"]
                    self.changed.notify_all()

    def wait(self, *runs, statuses=("succeeded",)):
        """Waits until these runs have ended, each with one of these statuses, which it returns."""
        with self.changed:
            is_over = self.changed.wait_for(lambda: all(self.runs.get(run) in TERMINAL for run in runs), DEADLINE)
            assert is_over, f"not over after {DEADLINE} s: {self.runs}"
            ended = {run: self.runs[run] for run in runs}
        assert set(ended.values()) <= set(statuses), ended
        return list(ended.values())
