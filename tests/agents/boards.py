"""Boards to judge, made over HTTP: some by name, which show what holds the claim, and random ones."""

import random

from client import Refused, key
from ground import Account, Existing, Standstill, admin
from judge import compare, is_cut
from scene import apply

WORKERS = ("canvas-image-worker", "canvas-video-worker")
LONG, ENDLESS = "A quiet harbor at dawn. " * 30, "A quiet harbor at dawn. " * 900
# What a start does until its board is judged. Those that end do so before the workers stand still.
ENDING, WAITING = ("succeeded", "failed"), ("queued", "canceled", "given up")


class Board:
    """A canvas, and what its starts and cancels asked for."""

    def __init__(self, ground, plan):
        self.ground, self.plan, self.starts, self.ids = ground, plan, {}, {}
        self.canvas = ground.agent.post("/canvases", {"title": "Board"})["canvas"]["id"]

    def furnish(self):
        for item in self.plan.get("nodes", []):
            node, client = dict(item["node"]), self.ground.clients[item["owner"]]
            metadata = dict(node.get("metadata", {}))
            if "home" in item:
                if item["home"] not in self.ids:
                    continue
                metadata["sectionId"] = self.ids[item["home"]]
            if node.pop("filled", False):
                node["asset"] = self.ground.asset
            create = {"type": "node.create", "clientId": "it", "node": node | {"metadata": metadata}}
            self.ids[item["name"]] = apply(client, self.canvas, [create], force=True)["resolvedIds"]["it"]
        for source, target, purpose in self.plan.get("lines", []):
            if source in self.ids and target in self.ids and source != target:
                line = {"fromNodeId": self.ids[source], "toNodeId": self.ids[target], "purpose": purpose}
                apply(self.ground.agent, self.canvas, [{"type": "connection.create"} | line], force=True)

    def start_by_a_viewer(self):
        """A video of another account, which may read the canvas."""
        viewer, handle = Account(credit=5), self.graph()["handle"]
        admin("share", "--canvas", handle, "--with", viewer.uid, "--role", "viewer")
        body = {"canvasId": handle, "idempotencyKey": key(), "prompt": "A kite", "model": "animatic"}
        viewer.owner.post("/videos/generate", body)

    def start(self, start):
        """Starts work, and returns its record."""
        body = {"canvasId": self.canvas, "idempotencyKey": key(), "prompt": "A kite"}
        if "edited" in start:
            body |= {"references": [{"handle": f"node:{self.ids[start['edited']]}"}]}
        is_video, targets = start["kind"] == "video", start.get("targets", 0)
        if is_video:
            body |= {"model": "animatic"}
        elif start["end"] == "failed":
            body |= {
                "model": self.ground.model["modelId"],
                "connectionId": self.ground.model["connectionId"],
                "prompt": "[[sim:content]]",
            }
        else:
            body |= {"model": "sketch"}
        if targets:
            body["baseRevision"] = self.ground.agent.get(f"/canvases/{self.canvas}/changes?since=none")["revision"]
            place = {} if is_video else {"count": targets}
            if "into" in start and start["into"] in self.ids and targets == 1:
                body["targetNodeId" if is_video else "targetNodeIds"] = (lambda it: it if is_video else [it])(
                    self.ids[start["into"]]
                )
            else:
                body["place"] = place
        told = {"targets": targets, "outputs": targets or 1}
        for name in ("asked", "retryOf"):
            if name in start:
                body[name] = told[name] = start[name]
        try:
            path = "/videos/generate" if is_video else "/images/edit" if "edited" in start else "/images/generate"
            record = self.ground.agent.post(path, body, Prefer="handling=lenient")
        except Refused as refused:
            if refused.status == 409 and "into" in start:
                return None
            raise
        handle = record["id"] if is_video else record["run"]
        self.starts[handle] = told
        return record

    def end(self, record, start):
        """Cancels the work if the plan says so."""
        handle = record["id"] if start["kind"] == "video" else record["run"]
        path = record["pollUrl"].removeprefix("/api/canvas-agent/v1")
        if start["end"] in ("canceled", "given up"):
            self.ground.agent.call("DELETE", path)
        if start["end"] == "given up":
            self.ground.agent.call("DELETE", f"{path}?removeTargets=true")
            self.starts[handle]["givenUp"] = True
        if "again" in start:
            again = self.start(start["again"] | {"retryOf": handle})
            if again:
                self.end(again, start["again"])

    def graph(self):
        return self.ground.agent.get(f"/canvases/{self.canvas}")["canvas"]

    def end_work(self):
        """Cancels what waits."""
        for run in self.ground.agent.get(f"/runs?canvasId={self.canvas}&limit=100")["runs"]:
            if run["status"] in ("queued", "running"):
                kind = "jobs" if run["kind"] == "video" else "runs"
                self.ground.agent.call("DELETE", f"/{kind}/{run['id']}")


class Ground:
    """The account of the boards, with a client for the agent and one for the person."""

    def __init__(self):
        account = Existing()
        self.agent, self.person = account.owner, account.person()
        self.clients = {"agent": self.agent, "user": self.person}
        self.asset = account.image("board.png", 320, 320)["handle"]
        models = self.agent.get("/models?capability=image.generate")["models"]
        self.model = next(it for it in models if it["connectionId"])


class Made:
    """The boards of some plans, with the workers at a standstill while they are judged."""

    def __init__(self, ground, plans):
        self.ground, self.plans, self.still = ground, plans, Standstill(*WORKERS)

    def __enter__(self):
        self.boards = []
        for plan in self.plans:
            board = Board(self.ground, plan)
            self.boards.append(board)
            board.furnish()
            board.records = [(it, board.start(it)) for it in plan.get("starts", []) if it["end"] in ENDING]
        for board in self.boards:
            for it, record in board.records:
                if record:
                    path = record["pollUrl"].removeprefix("/api/canvas-agent/v1")
                    while (ended := self.ground.agent.get(path, Prefer="wait=20"))["status"] not in ENDING + ("canceled",):
                        pass
                    assert ended["status"] == it["end"], (it, ended)
        self.still.__enter__()
        for board in self.boards:
            board.records += [(it, board.start(it)) for it in board.plan.get("starts", []) if it["end"] in WAITING]
            for it, record in board.records:
                if record:
                    board.end(record, it)
            for name in board.plan.get("deleted", []):
                apply(self.ground.agent, board.canvas, [{"type": "node.delete", "nodeId": board.ids[name]}])
            if "foreign" in board.plan:
                board.start_by_a_viewer()
        return self.boards

    def __exit__(self, *_):
        try:
            for board in self.boards:
                board.end_work()
        finally:
            self.still.__exit__()


def node(name, owner, x, y, width, height, home=None, **rest):
    item = {
        "name": name,
        "owner": owner,
        "node": {"title": name, "position": {"x": x, "y": y}, "width": width, "height": height} | rest,
    }
    return item | ({"home": home} if home else {})


def section(name, owner, x, y, width=640, height=480, **rest):
    return node(name, owner, x, y, width, height, type="sticky", metadata={"section": True} | rest)


NOTE = node("note", "agent", 400, 0, 220, 180, type="text", metadata={"content": "A kite"})
FILM = {"kind": "video", "targets": 0}
FOUR_OF_SIX = {"kind": "image", "targets": 4, "asked": 6, "end": "succeeded"}
# By name: the plan, the codes that hold the claim, and the numbers of outputs that are pending, failed and not durable.
NAMED = {
    "queued video": ({"starts": [FILM | {"end": "queued"}]}, [], (1, 0, 0)),
    "video that is done": ({"starts": [FILM | {"end": "succeeded"}]}, [], (0, 0, 0)),
    "canceled video": ({"starts": [FILM | {"end": "canceled"}]}, [], (0, 1, 0)),
    "canceled video, started again": ({"starts": [FILM | {"end": "canceled", "again": FILM | {"end": "queued"}}]}, [], (1, 0, 0)),
    "video that was given up": ({"starts": [FILM | {"end": "given up"}]}, [], (0, 0, 0)),
    "video of a viewer": ({"foreign": True}, [], (0, 0, 0)),
    "four of six": ({"starts": [FOUR_OF_SIX]}, [], (0, 1, 0)),
    "four of six, and two more": (
        {"starts": [FOUR_OF_SIX | {"again": {"kind": "image", "targets": 2, "end": "queued"}}]},
        [],
        (2, 0, 0),
    ),
    "canceled run with empty targets": ({"starts": [{"kind": "image", "targets": 2, "end": "canceled"}]}, [], (0, 2, 0)),
    "canceled run without its targets": ({"starts": [{"kind": "image", "targets": 2, "end": "given up"}]}, [], (0, 0, 0)),
    "failed run": ({"starts": [{"kind": "image", "targets": 1, "end": "failed"}]}, [], (0, 1, 0)),
    "agent's empty nodes": (
        {"nodes": [node("image", "agent", 0, 0, 320, 320, type="image"), node("film", "agent", 400, 0, 480, 270, type="video")]},
        ["empty_slot"],
        (0, 0, 2),
    ),
    "placeholder": (
        {"nodes": [node("image", "agent", 0, 0, 320, 320, type="image", metadata={"placeholder": True})]},
        [],
        (0, 0, 0),
    ),
    "person's empty node": ({"nodes": [node("image", "user", 0, 0, 320, 320, type="image")]}, [], (0, 0, 0)),
    "cut text": (
        {"nodes": [node("note", "agent", 0, 0, 220, 180, type="sticky", metadata={"content": LONG})]},
        ["text_truncated"],
        (0, 0, 0),
    ),
    "person's cut text": (
        {"nodes": [node("note", "user", 0, 0, 220, 180, type="sticky", metadata={"content": LONG})]},
        [],
        (0, 0, 0),
    ),
    "Section flush with notes": (
        {"nodes": [NOTE, section("board", "agent", 620, 0), node("in", "agent", 620, 200, 220, 180, "board", type="text")]},
        ["frames_touch"],
        (0, 0, 0),
    ),
    "two Sections that touch": (
        {"nodes": [section("one", "agent", 0, 0), section("two", "agent", 640, 0)]},
        ["frames_touch"],
        (0, 0, 0),
    ),
    "Sections out of line": (
        {"nodes": [section("one", "agent", 0, 0), section("two", "agent", 700, 30)]},
        ["sections_staggered"],
        (0, 0, 0),
    ),
    "film strip": (
        {"nodes": [node(f"image {at}", "agent", 320 * at, 0, 320, 320, type="image", filled=True) for at in range(3)]},
        [],
        (0, 0, 0),
    ),
    "source that is deleted": (
        {
            "nodes": [node("picture", "agent", 0, 0, 320, 320, type="image", filled=True)],
            "starts": [{"kind": "image", "targets": 1, "end": "succeeded", "edited": "picture"}],
            "deleted": ["picture"],
        },
        [],
        (0, 0, 0),
    ),
    "advice": ({"nodes": [NOTE], "starts": [{"kind": "image", "targets": 1, "end": "succeeded"}]}, [], (0, 0, 0)),
}


def is_as_named(board, codes, counts):
    """What differs from what is expected of a board by name."""
    review = board.ground.agent.get(f"/canvases/{board.canvas}/review")["validation"]
    told = review["completionReview"]
    seen = (
        sorted({it["code"] for it in review["findings"] if it["holdsClaim"]}),
        tuple(len(told["delivery"][f"{name}OutputHandles"]) for name in ("pending", "failed", "nonDurable")),
        told["doneClaimAllowed"],
    )
    expected = (codes, counts, not codes and not any(counts))
    return [] if seen == expected else [f"the service says {seen}, and not {expected}"]


def random_plan(seed):
    """Frames that overlap, touch or are in a row, texts that are cut or not, empty nodes, references, and work in every state."""
    rng = random.Random(seed)
    nodes, sections = [], []
    owner = lambda: rng.choice(("agent", "agent", "user"))
    jitter = lambda: rng.choice((0, 0, 0, 1, 7, 12, 16, 24, 60, 100.5, -9))
    for at in range(rng.choice((0, 0, 1, 1, 2, 3))):
        name = f"s{at}"
        sections.append(name)
        nodes.append(
            section(
                name,
                owner(),
                700 * at + jitter(),
                rng.choice((0, 0, 520)) + jitter(),
                *rng.choice(((640, 480), (660, 500), (400, 380))),
            )
        )
    for at in range(rng.randint(1, 8)):
        kind = rng.choice(("text", "sticky", "picture", "picture", "slot", "placeholder", "film"))
        x, y = 240 * rng.randint(0, 5) + jitter(), 200 * rng.randint(0, 4) + jitter()
        size = rng.choice(((220, 180), (220, 180), (230, 190), (200, 120), (120, 120)))
        home = rng.choice((None, *sections))
        if kind in ("text", "sticky"):
            content = rng.choice(("A quiet harbor", "", "A quiet harbor", LONG, LONG, *([ENDLESS] if rng.random() < 0.2 else [])))
            nodes.append(node(f"n{at}", owner(), x, y, *size, home, type=kind, metadata={"content": content}))
        elif kind == "film":
            nodes.append(node(f"n{at}", owner(), x, y, *size, home, type="video"))
        else:
            more = {"filled": True} if kind == "picture" else {"metadata": {"placeholder": True}} if kind == "placeholder" else {}
            nodes.append(node(f"n{at}", owner(), x, y, *size, home, type="image", **more))
    rng.shuffle(nodes)
    nodes.sort(key=lambda it: "home" in it)
    names = [it["name"] for it in nodes if it["node"].get("type") != "sticky" or not it["node"]["metadata"].get("section")]
    images = [it["name"] for it in nodes if it["node"]["type"] == "image"]
    lines = [(rng.choice(images), rng.choice(names), "reference") for _ in range(rng.choice((0, 0, 1, 2)))] if images else []
    lines = list(dict.fromkeys(line for line in lines if line[0] != line[1]))
    starts = [random_start(rng, nodes) for _ in range(rng.choice((0, 0, 0, 1, 2)))]
    return {"nodes": nodes, "lines": lines, "starts": starts}


def random_start(rng, nodes, depth=0):
    kind = rng.choice(("image", "image", "video"))
    targets = rng.randint(1, 3) if kind == "image" else rng.choice((0, 0, 1))
    end = rng.choice(WAITING if depth else ENDING[: 2 if kind == "image" else 1] + WAITING)
    start = {"kind": kind, "targets": targets, "end": end}
    slots = [it["name"] for it in nodes if it["node"]["type"] == kind]
    if targets == 1 and slots and rng.random() < 0.5:
        start["into"] = rng.choice(slots)
    if rng.random() < 0.4:
        start["asked"] = max(1, targets) + rng.randint(0, 3)
    if not depth and end != "queued" and rng.random() < 0.4:
        start["again"] = random_start(rng, nodes, 1)
    return start


GEOMETRY = ("position", "width", "height")
# One has three rounds, which is enough for almost every board. Another one of a board that is repaired has nothing to do.
REPAIRS_MAX = 3


def properties(board):
    """What is wrong with the review of a board and its repairs."""
    agent, canvas = board.ground.agent, board.canvas
    board.allowed, wrong = compare(agent, canvas, board.starts)
    before = board.graph()
    board.repairs = 0
    while (repairs := agent.get(f"/canvases/{canvas}/review?repairs=true")["repairs"])["operations"]:
        board.repairs += 1
        if board.repairs > REPAIRS_MAX:
            return wrong + [f"after {REPAIRS_MAX} repairs there are still {repairs['operations']}"]
        wrong += faults_of_repair(board, repairs["operations"])
        if any("refused" in it for it in wrong):
            return wrong
    _, differences = compare(agent, canvas, board.starts)
    wrong += [f"repaired: {it}" for it in differences]
    if repairs["deletions"]:
        apply(agent, canvas, [{"type": "node.delete", "nodeId": it} for it in repairs["deletions"]])
    findings = agent.get(f"/canvases/{canvas}/review")["validation"]["findings"]
    held, left = (
        [(it["code"], it["nodeHandles"]) for it in found if it["holdsClaim"]] for found in (findings, repairs["leaves"])
    )
    if held and is_repairable(before):
        wrong.append(f"after operations and deletions these hold: {held}")
    if sorted(held) != sorted(left):
        wrong.append(f"after operations and deletions these hold: {held}, and not {left}, which the repairs leave")
    return wrong


def faults_of_repair(board, operations):
    """Applies a repair, and says what is wrong with it."""
    agent, before, wrong = board.ground.agent, board.graph(), []
    if any(it["type"].endswith(".delete") for it in operations):
        wrong.append("the repairs delete")
    body = {"baseRevision": before["revision"], "operations": operations}
    try:
        agent.post(f"/canvases/{board.canvas}/operations", body | {"validateOnly": True})
        agent.post(f"/canvases/{board.canvas}/operations", body | {"idempotencyKey": key()})
    except Refused as refused:
        return wrong + [f"the repairs are refused: {refused}"]
    after = {it["id"]: it for it in board.graph()["nodes"]}
    theirs = [it for it in before["nodes"] if it["metadata"]["createdBy"] == "user"]
    moved = [it["title"] for it in theirs if any(after[it["id"]][name] != it[name] for name in GEOMETRY)]
    return wrong + [f"the repairs change the person's {title}" for title in moved]


def is_repairable(canvas):
    """Whether nothing may hold after operations and deletions: no work, no reference without a source, no text that overflows at font
    size 8, no agent's member of a person's Section, and no person's member of an agent's, which then stays where it is."""
    nodes = {it["id"]: it for it in canvas["nodes"]}
    for it in canvas["nodes"]:
        data, home = it["metadata"], nodes.get(it["metadata"].get("sectionId"))
        least = it | {"height": 4 * it["width"], "metadata": data | {"fontSize": 8}}
        if (
            "job" in data
            or data.get("provenance", {}).get("references")
            or not data.get("section")
            and is_cut(least) is not False
        ):
            return False
        if home and home["metadata"]["createdBy"] != data["createdBy"]:
            return False
    return not any(it["purpose"] != "flow" for it in canvas["connections"])
