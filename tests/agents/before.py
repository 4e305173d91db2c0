"""The tasks with separate uploads, creates and moves, scratch nodes and strict revisions."""

from client import Refused, key
from images import PHOTOS
from common import BOARD, CAPTION, NODE, RECIPE, SIZES, image_port, nodes_in, revision_in

GAP = 40


class Agent:
    def __init__(self, client):
        self.client = client

    def contract(self):
        self.client.get("/openapi.json")

    def write(self, path, **body):
        """A write based on the last revision that is known. When the canvas has changed, it is sent again for the new one."""
        body["idempotencyKey"] = key()
        while True:
            try:
                answer = self.client.post(path, body | {"baseRevision": self.revision}, Prefer="return=minimal")
                break
            except Refused as refused:
                current = refused.error.get("details", {}).get("currentRevision")
                if current is None:
                    raise
                self.revision = current
        self.revision = answer["canvas"]["revision"] if "canvas" in answer else answer.get("canvasRevision", self.revision)
        return answer

    def apply(self, operations):
        return self.write(f"/canvases/{self.canvas}/operations", operations=operations)["resolvedIds"]

    def start(self, path, **body):
        return self.write(path, canvasId=self.canvas, **body)

    def slots(self, titles, x, y):
        """Empty image nodes in a row; their ids."""
        creates = []
        for at, title in enumerate(titles):
            node = {"type": "image", "title": title, "position": {"x": x + at * (320 + GAP), "y": y}}
            creates.append({"type": "node.create", "clientId": f"slot{at}", "node": node})
        made = self.apply(creates)
        return ["node:" + made[f"slot{at}"] for at in range(len(titles))]

    def delete(self, nodes):
        self.apply([{"type": "node.delete", "nodeId": node} for node in nodes])

    def moodboard(self):
        self.canvas = self.client.post("/canvases", {"title": BOARD})["canvas"]["id"]
        path = f"/assets?canvasId={self.canvas}"
        for photo in PHOTOS:
            self.client.post(path, file=photo, Idempotency_Key=key())
        outline = self.client.get(f"/canvases/{self.canvas}/outline")
        self.revision = revision_in(outline)
        frames = [(node, int(width), int(height)) for _, node, _, _, width, height in NODE.findall(outline)]
        self.images = [f"node:{node}" for node, _, _ in frames]
        across = sum(width + GAP for _, width, _ in frames) + GAP
        down = max(height for _, _, height in frames) + 4 * GAP
        section = {"type": "sticky", "title": BOARD, "position": {"x": 0, "y": 0}, "width": across, "height": down}
        operations = [{"type": "node.create", "clientId": "board", "node": section | {"metadata": {"section": True}}}]
        x = GAP
        for node, width, _ in frames:
            operations += [
                {"type": "node.move", "nodeId": node, "position": {"x": x, "y": 3 * GAP}},
                {"type": "node.update", "nodeId": node, "patch": {"metadata": {"sectionId": "board"}}},
            ]
            x += width + GAP
        self.apply(operations)
        return [name for name, _ in PHOTOS]

    def formats(self):
        scratch = self.slots(SIZES, 2000, 0)
        final = self.slots([f"{title} with text" for title in SIZES], 2000, 1000)
        runs = []
        for node, (width, height) in zip(scratch, SIZES.values()):
            params = {"width": width, "height": height, "fit": "cover"}
            started = self.start("/actions/resize/runs", targetNodeId=node, inputs=[self.images[0]], params=params)
            runs.append(started["run"])
        self.wait(runs)
        runs = []
        for source, node in zip(scratch, final):
            started = self.start("/actions/add-text-to-image/runs", targetNodeId=node, inputs=[source], params=CAPTION)
            runs.append(started["run"])
        self.wait(runs)
        self.delete(scratch)
        return {f"{title} with text": size for title, size in SIZES.items()}

    def wait(self, runs):
        for run in runs:
            record = self.client.wait(run)
            assert record["status"] == "succeeded", record
            self.revision = record.get("canvasRevision", self.revision)

    def recipe(self):
        recipe = next(it for it in self.client.get("/recipes")["recipes"] if it["name"] == RECIPE)
        inputs = {image_port(recipe): self.images[1]}
        run = self.start(f"/recipes/{recipe['id']}/runs", inputs=inputs)["run"]
        self.wait([run])
        return run

    def rename(self, canvas, nodes, other):
        own = self.canvas, self.revision
        self.canvas, self.revision = canvas, revision_in(self.client.get(f"/canvases/{canvas}/outline"))
        other.wait_for_a_write()
        patches = [{"nodeId": node, "patch": {"title": f"final {at}"}} for at, node in enumerate(nodes)]
        self.apply([{"type": "node.update"} | patch for patch in patches])
        self.canvas, self.revision = own

    def variations(self):
        vary = {"model": "sketch", "source": self.images[1]}
        targets = self.slots(["Variation"] * 3, 2000, 2000)
        self.wait([self.start("/images/variations", **vary, targetNodeIds=targets)["run"]])
        targets = self.slots(["Variation"] * 4, 2000, 3000)
        unwanted = self.start("/images/variations", **vary, targetNodeIds=targets)["run"]
        self.client.call("DELETE", f"/runs/{unwanted}")
        # Its targets are taken until it is over.
        self.client.wait(unwanted)
        self.delete(targets)
        self.client.get(f"/canvases/{self.canvas}/review")
        return unwanted

    def tidy(self, canvas):
        outline = self.client.get(f"/canvases/{canvas}/outline")
        self.canvas, self.revision = canvas, revision_in(outline)
        operations = []
        for at, (kind, nodes) in enumerate(nodes_in(outline).items()):
            left, top = 0, 4000 * (at + 1)
            rows = -(-len(nodes) // 3)
            section = {"type": "sticky", "title": f"All {kind}s", "position": {"x": left - GAP, "y": top - 3 * GAP}}
            section |= {"width": 3 * 360 + GAP, "height": rows * 400 + 3 * GAP, "metadata": {"section": True}}
            operations.append({"type": "node.create", "clientId": kind, "node": section})
            for place, node in enumerate(nodes):
                position = {"x": left + place % 3 * 360, "y": top + place // 3 * 400}
                operations += [
                    {"type": "node.move", "nodeId": node, "position": position},
                    {"type": "node.update", "nodeId": node, "patch": {"metadata": {"sectionId": kind}}},
                ]
        self.apply(operations)
        self.client.get(f"/canvases/{canvas}/review")
