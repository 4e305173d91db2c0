"""The tasks with starts that bring their own targets, layout operations, lenient writes and short views."""

from client import Events, key
from images import PHOTOS
from common import BOARD, CANCELED, CAPTION, RECIPE, SIZES, image_port, nodes_in, revision_in


class Agent:
    def __init__(self, client):
        self.client = client

    def contract(self):
        self.client.get("/digest.md")
        self.events = Events(self.client)

    def apply(self, canvas, revision, operations, client=None):
        body = {"baseRevision": revision, "idempotencyKey": key(), "operations": operations}
        prefer = "handling=lenient, return=minimal"
        return (client or self.client).post(f"/canvases/{canvas}/operations", body, Prefer=prefer)

    def start(self, path, **body):
        """Starts work on the own canvas. What it reads has not changed since the last revision that is known."""
        body = {"canvasId": self.canvas, "baseRevision": self.revision, "idempotencyKey": key()} | body
        return self.client.post(path, body, Prefer="handling=lenient")

    def moodboard(self):
        canvas = self.client.post("/canvases", {"title": BOARD})["canvas"]
        self.canvas = canvas["id"]
        operations, titles = [], [name for name, _ in PHOTOS]
        for photo in PHOTOS:
            asset = self.client.post("/assets", file=photo, Idempotency_Key=key())["asset"]["handle"]
            node = {"type": "image", "title": photo[0], "asset": asset}
            operations.append({"type": "node.create", "clientId": f"p{len(operations)}", "node": node})
        names = [operation["clientId"] for operation in operations]
        operations += [
            {"type": "section.create", "clientId": "board", "title": BOARD, "nodeIds": names},
            {"type": "layout.arrange", "sectionId": "board", "layout": "row"},
        ]
        applied = self.apply(self.canvas, canvas["revision"], operations)
        self.revision = applied["canvas"]["revision"]
        self.images = ["node:" + applied["resolvedIds"][name] for name in names]
        return titles

    def formats(self):
        runs, targets, since = [], {}, None
        for title, (width, height) in SIZES.items():
            started = self.start(
                "/actions/resize/runs",
                inputs=[self.images[0]],
                params={"width": width, "height": height, "fit": "cover"},
                place={"near": self.images[0], "title": title},
            )
            runs.append(started["run"])
            [targets[title]] = started["targets"]
            since = started["canvasRevision"]
        self.events.wait(*runs)
        # A revision in which the new images are what they are.
        self.revision = self.client.get(f"/canvases/{self.canvas}/changes?since={since}")["revision"]
        runs = []
        for title, node in targets.items():
            place = {"near": node, "title": f"{title} with text"}
            started = self.start("/actions/add-text-to-image/runs", inputs=[node], params=CAPTION, place=place)
            runs.append(started["run"])
        self.events.wait(*runs)
        return {f"{title} with text": size for title, size in SIZES.items()}

    def recipe(self):
        entries = self.client.get("/recipes?view=summary")["recipes"]
        chosen = next(entry["key"] for entry in entries if entry["name"] == RECIPE)
        port = image_port(self.client.get(f"/recipes/{chosen}")["recipe"])
        near = self.images[1]
        run = self.start(f"/recipes/{chosen}/runs", inputs={port: near}, near=near)["run"]
        self.events.wait(run)
        return run

    def rename(self, canvas, nodes, other):
        revision = revision_in(self.client.get(f"/canvases/{canvas}/outline?ids=refs"))
        other.wait_for_a_write()
        patches = [{"nodeId": node, "patch": {"title": f"final {at}"}} for at, node in enumerate(nodes)]
        self.apply(canvas, revision, [{"type": "node.update"} | patch for patch in patches])

    def variations(self):
        source = self.images[1]
        vary = {"model": "sketch", "source": source}
        place = {"near": source, "title": "Variation"}
        # The second run waits behind the first, so it is still to be done when it is canceled.
        wanted = self.start("/images/variations", **vary, place=place | {"count": 3})["run"]
        started = self.start("/images/variations", **vary, place=place | {"count": 4})
        unwanted = started["run"]
        self.client.call("DELETE", f"/runs/{unwanted}?removeTargets=true")
        self.events.wait(wanted)
        # It can have ended before its cancel arrived. Then its images go, which is not counted: the limits are those of a cancel in time.
        if self.events.wait(unwanted, statuses=CANCELED) == ["succeeded"]:
            aside = self.client.uncounted()
            revision = aside.get(f"/canvases/{self.canvas}/changes?since={started['canvasRevision']}")["revision"]
            gone = [{"type": "node.delete", "nodeId": node} for node in started["targets"]]
            self.apply(self.canvas, revision, gone, aside)
        self.client.get(f"/canvases/{self.canvas}/review")
        return unwanted

    def tidy(self, canvas):
        outline = self.client.get(f"/canvases/{canvas}/outline?ids=refs")
        operations = []
        for at, (kind, nodes) in enumerate(nodes_in(outline).items()):
            section = {"clientId": kind, "title": f"All {kind}s", "nodeIds": nodes, "x": 0, "y": 4000 * (at + 1)}
            operations += [
                {"type": "section.create"} | section,
                {"type": "layout.arrange", "sectionId": kind, "layout": "grid", "columns": 3},
                {"type": "section.fit", "nodeId": kind},
            ]
        self.apply(canvas, revision_in(outline), operations)
        self.client.get(f"/canvases/{canvas}/review")
