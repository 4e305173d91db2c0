"""What the tasks find: boards that others made, and another process that writes."""

import threading

from client import Refused, key
from images import PHOTOS


def apply(client, canvas, operations, **members):
    """Applies operations to the canvas as it is, whoever else writes."""
    revision = client.get(f"/canvases/{canvas}/changes?since=none")["revision"]
    while True:
        body = {"baseRevision": revision, "idempotencyKey": key(), "operations": operations} | members
        try:
            return client.post(f"/canvases/{canvas}/operations", body)
        except Refused as refused:
            revision = refused.error.get("details", {}).get("currentRevision")
            if revision is None:
                raise


def board(client, title, nodes):
    """A canvas with these nodes, and their ids."""
    canvas = client.post("/canvases", {"title": title})["canvas"]["id"]
    creates = [{"type": "node.create", "clientId": f"n{at}", "node": node} for at, node in enumerate(nodes)]
    made = apply(client, canvas, creates, force=True)["resolvedIds"] if creates else {}
    return canvas, [made[f"n{at}"] for at in range(len(nodes))]


def text(title, x, y):
    return {"type": "text", "title": title, "position": {"x": x, "y": y}, "metadata": {"content": f"About {title}."}}


def busy_board(client):
    """A canvas of texts: the first half is the agent's to rename, the rest another process renames."""
    return board(client, "Busy", [text(f"draft {at}", 400 * (at % 5), 240 * (at // 5)) for at in range(20)])


def messy_board(client):
    """A canvas of images and texts that lie on each other, and the ids of both."""
    assets = [client.post("/assets", file=photo)["asset"]["handle"] for photo in PHOTOS]
    spots = [(90 * (at % 5), 70 * (at // 5)) for at in range(19)]
    images = [
        {"type": "image", "title": f"image {at}", "asset": assets[at % 3], "position": {"x": x, "y": y}}
        for at, (x, y) in enumerate(spots[:9])
    ]
    texts = [text(f"note {at}", x, y) for at, (x, y) in enumerate(spots[9:])]
    canvas, ids = board(client, "Messy", images + texts)
    return canvas, (ids[:9], ids[9:])


class Other:
    """Another process, which renames nodes of its own all the time."""

    def __init__(self, client, canvas, nodes):
        self.client, self.canvas, self.nodes = client, canvas, nodes
        self.titles, self.writes, self.failure = {}, 0, None
        self.stopping, self.written = threading.Event(), threading.Condition()

    def __enter__(self):
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join()

    def run(self):
        try:
            # A pause in which a writer that is checked strictly can succeed.
            while not self.stopping.wait(0.05):
                node, title = self.nodes[self.writes % len(self.nodes)], f"other {self.writes}"
                patch = {"type": "node.update", "nodeId": node, "patch": {"title": title}}
                apply(self.client, self.canvas, [patch])
                self.titles[node] = title
                with self.written:
                    self.writes += 1
                    self.written.notify_all()
        except Exception as failure:
            self.failure = failure

    def wait_for_a_write(self):
        """The time in which an agent thinks: the canvas changes meanwhile."""
        with self.written:
            before = self.writes
            assert self.written.wait_for(lambda: self.writes > before, 30), self.failure
