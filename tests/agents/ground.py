"""Accounts for the tasks, made as an operator makes them, and what the tasks find on the service."""

import itertools
import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

from client import API, Client
from mcp import Tools
from images import png

GATEWAY = os.environ["CANVAS_GATEWAY"]
SERVICE = json.loads(os.environ["CANVAS_SERVICE"])
NUMBERS = itertools.count(1)


def admin(*arguments):
    run = subprocess.run([GATEWAY, "admin", *arguments], env=environment(), capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def environment(**more):
    return os.environ | json.loads(SERVICE["environment"]) | more


class Account:
    """An account with credit, its tools for the agent, and a client for the checker."""

    def __init__(self, credit=0, scopes="all"):
        name = f"agent-{os.getpid()}-{next(NUMBERS)}"
        self.uid = admin("account", "create", "--email", f"{name}@example.com", "--credits", str(credit))["uid"]
        self.credit = credit
        self.owner = Client(SERVICE["baseUrl"], self.token("all"))
        self.tools = Tools(SERVICE["baseUrl"], self.token(scopes))

    def token(self, scopes, surface="api", label="agent"):
        properties = ("--label", label, "--scopes", scopes, "--surface", surface)
        return admin("token", "create", "--account", self.uid, *properties)["token"]

    def person(self):
        """A client whose nodes are a person's."""
        return Client(SERVICE["baseUrl"], self.token("all", "browser"))

    def spent(self):
        return self.credit - self.owner.get("/auth/status")["creditBalance"]

    def runs(self):
        return self.owner.get("/runs?limit=100")["runs"]

    def content(self, asset):
        """The bytes of an asset."""
        return self.file(f"/assets/{asset}/content")

    def file(self, path, **headers):
        """The bytes that are served at a path."""
        headers["Authorization"] = f"Bearer {self.owner.token}"
        request = urllib.request.Request(f"{SERVICE['baseUrl']}{API}{path}", headers=headers)
        return urllib.request.urlopen(request).read()

    def image(self, name, width=480, height=320, tone=40, canvas=None):
        """Stores an image and returns its asset."""
        where = f"?canvasId={canvas}" if canvas else ""
        return self.owner.call("POST", f"/assets{where}", file=(name, png(width, height, tone)))["asset"]


class Existing(Account):
    """The account that canvas-contract has furnished: with a connection to a simulated provider, whose work costs nothing."""

    def __init__(self):
        self.uid = SERVICE["ownerUid"]
        self.owner = Client(SERVICE["baseUrl"], SERVICE["token"])
        self.tools = Tools(SERVICE["baseUrl"], SERVICE["token"])
        self.credit = self.owner.get("/auth/status")["creditBalance"]


class Standstill:
    """While it is open, the workers of the service with these names are stopped, as if they were gone: nobody takes up work."""

    def __init__(self, *names):
        self.names = names

    def __enter__(self):
        parent = os.environ["CANVAS_SERVICE_PID"]
        self.pids = [
            int(path.name)
            for path in Path("/proc").glob("[0-9]*")
            if (words := status_of(path)) and words[1] == parent and (path / "exe").readlink().name.split(" ")[0] in self.names
        ]
        assert len(self.pids) == len(self.names), f"{self.names} are not all there: {self.pids}"
        self.send(signal.SIGSTOP)

    def __exit__(self, *_):
        self.send(signal.SIGCONT)

    def send(self, number):
        for pid in self.pids:
            os.kill(pid, number)


def status_of(path):
    """State and parent of a process, and more."""
    try:
        return (path / "stat").read_text().rsplit(") ", 1)[1].split()
    except OSError:
        return None


def expire(job):
    """Lets the retention of a job's record be over."""
    environ = json.loads(SERVICE["environment"])
    past = "now() - interval '1 second'"
    end = f"UPDATE jobs SET retain_until = {past}, finalized_at = coalesce(finalized_at, {past}) WHERE id = '{job}'"
    subprocess.run([f"{os.environ['TEST_POSTGRES_BIN']}/psql", environ["CANVAS_DATABASE_URL"], "-q", "-c", end], check=True)


def another_gateway():
    """A new process of the gateway on the same state: its address, and the process."""

    def free():
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            return listener.getsockname()[1]

    port, probes = free(), free()
    listen = {"CANVAS_LISTEN": f"127.0.0.1:{port}", "CANVAS_ADMIN_LISTEN": f"127.0.0.1:{probes}"}
    process = subprocess.Popen(
        [GATEWAY, "serve"], env=environment(**listen), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/llms.txt", timeout=1)
            return f"http://127.0.0.1:{port}", process
        except OSError:
            time.sleep(0.2)
    process.kill()
    raise AssertionError("the other gateway does not answer")


def turned_jpeg(account, canvas, node):
    """A JPEG whose EXIF says that it is to be turned by 90 degrees: 480 wide in the file, 320 as it is seen."""
    told = account.tools.ok(
        "action_run",
        canvas=canvas,
        revision=account.owner.get(f"/canvases/{canvas}/changes?since=none")["revision"],
        inputs=[node],
        steps=[{"action": "rotate", "params": {"degrees": 0, "format": "jpeg"}}],
        wait=50,
    )
    jpeg = account.content(told["runs"][0]["outputs"][0]["asset"])
    tiff = b"MM\0*\0\0\0\x08" + b"\0\x01" + b"\x01\x12\0\x03\0\0\0\x01\0\x06\0\0" + b"\0\0\0\0"
    exif = b"Exif\0\0" + tiff
    return jpeg[:2] + b"\xff\xe1" + (len(exif) + 2).to_bytes(2, "big") + exif + jpeg[2:]
