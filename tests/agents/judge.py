"""Judges the work on a canvas from the canvas document and the list of runs (docs/reference/findings.md, done claims), independently
of the service: every pair is compared, and texts are measured within bounds. What lies between the bounds may be found or not."""

OVERLAP, TOUCH, ALIGNED, NEIGHBOURS = 1, 16, 1, 200
MADE = ("generated", "action", "recipe")
# Widths of a letter in font sizes, for texts of Latin words: the narrowest and the widest mean.
NARROW, WIDE, LEADING = 0.26, 0.95, 1.42


def frame(node):
    x, y = node["position"]["x"], node["position"]["y"]
    return x, y, x + node["width"], y + node["height"]


def shared(a, b):
    """How much two frames share in each axis; negative: their distance."""
    return min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])


def overlap(a, b):
    return min(shared(a, b)) > OVERLAP


def is_in(inner, outer, by=0.0):
    return all(inner[at] >= outer[at] - by and inner[at + 2] <= outer[at + 2] + by for at in (0, 1))


def equal(a, b, *lines):
    return all(abs(line(a) - line(b)) <= ALIGNED for line in lines)


LINES = [lambda f: f[0], lambda f: (f[0] + f[2]) / 2, lambda f: f[2], lambda f: f[1], lambda f: (f[1] + f[3]) / 2, lambda f: f[3]]
ROW, COLUMN = (LINES[3], lambda f: f[3] - f[1]), (LINES[0], lambda f: f[2] - f[0])


def is_cut(node):
    """Whether a part of the text is missing; None if that is not certain."""
    data, width, height = node["metadata"], node["width"], node["height"]
    if data.get("section"):
        pad, size, _ = title_of(node)
        length = len(node["title"])
        narrow, wide = (length * letter * size > width - 2 * pad for letter in (NARROW, WIDE * 1.07))
        return None if data.get("content") or min(width, height) < 2 * size else True if narrow else None if wide else False
    text = data.get("content", "").strip()
    if node["type"] not in ("text", "sticky") or not text or data.get("collapsed"):
        return False
    size = data.get("fontSize") or (15 if node["type"] == "text" else 12)
    paragraphs = text.split("\n")
    least = max(len(paragraphs), sum(map(len, paragraphs)) * NARROW * size / width)
    if min(width, height) < 28 or least * LEADING * size > height + size and size * 2 < height:
        return True
    room = width - 36 - max(map(len, text.split())) * WIDE * size
    most = sum(1 + len(it) * WIDE * size // room for it in paragraphs) if room > 0 else float("inf")
    return False if most * LEADING * size < height - 60 else None


def title_of(section):
    """Distance from the edges, font size and height from the top of a Section's title."""
    size = min(section["metadata"].get("fontSize", 28), section["height"] / 2)
    return min(size, 44), size, 0.6 * min(size, 44)


def lies_over_title(inner, section):
    pad, size, top = title_of(section)
    x, y = section["position"]["x"] + pad, section["position"]["y"] + top
    sure, possible = (
        overlap(inner, (x, y, min(x + len(section["title"]) * letter * size, frame(section)[2]), y + 1.25 * size))
        for letter in (NARROW, WIDE * 1.07)
    )
    return True if sure and min(section["width"], section["height"]) >= 28 else None if possible else False


def touching(a, b):
    """Whether two nodes, or two Sections, or a node and a Section (the last) touch; None if that is not certain."""
    (one, other), (first, second) = (frame(a), frame(b)), (bool(a["metadata"].get("section")), bool(b["metadata"].get("section")))
    if first == second:
        in_line = not first and (equal(one, other, *ROW) or equal(one, other, *COLUMN))
        return min(shared(one, other)) > -TOUCH and not overlap(one, other) and not in_line
    if a["metadata"].get("sectionId") != b["id"]:
        return min(shared(one, other)) > -TOUCH and not (overlap(one, other) and is_in(one, other, OVERLAP))
    if not is_in(one, other, 1e-6):
        return False
    is_near = min(one[0] - other[0], other[2] - one[2], other[3] - one[3]) < TOUCH - 1e-6
    return True if is_near else lies_over_title(one, b)


def neighbours(section, sections):
    for other in sections:
        a, b = frame(section), frame(other)
        sides = [min(a[at + 2] - a[at], b[at + 2] - b[at]) for at in (0, 1)]
        along = shared(a, b)
        if other is not section and not overlap(a, b):
            if any(-NEIGHBOURS <= along[at] <= OVERLAP and along[1 - at] >= sides[1 - at] / 2 for at in (0, 1)):
                yield b


def state(node):
    """What work has made of a node: its status, and whether it shows nothing."""
    is_text = node["type"] in ("text", "sticky")
    shows = node["metadata"].get("content") if is_text else node.get("asset")
    return node["metadata"].get("job", {}).get("status"), not shows


def is_empty_slot(node):
    status, is_empty = state(node)
    data = node["metadata"]
    return (
        node["type"] in ("image", "video")
        and is_empty
        and status not in ("queued", "running", "failed", "canceled")
        and not data.get("placeholder")
        and not data.get("recipe")
    )


def holding(canvas):
    """The findings that hold the claim, as (code, nodes), and whether each is certain."""
    nodes = {node["handle"]: node for node in canvas["nodes"]}
    is_agents = {it: node["metadata"]["createdBy"] == "agent" for it, node in nodes.items()}
    solid = [it for it, node in nodes.items() if min(node["width"], node["height"]) > OVERLAP]
    sections = [nodes[it] for it in solid if nodes[it]["metadata"].get("section")]
    found = {}

    def add(code, verdict, owner, *others):
        if verdict is not False and any(is_agents[it] for it in owner):
            found[code, frozenset((*owner, *others))] = verdict is True

    for at, one in enumerate(solid):
        for other in solid[:at]:
            a, b = sorted((nodes[other], nodes[one]), key=lambda it: bool(it["metadata"].get("section")))
            is_alike = bool(a["metadata"].get("section")) == bool(b["metadata"].get("section"))
            add("agent_overlap", is_alike and overlap(frame(a), frame(b)), (one, other))
            add("frames_touch", touching(a, b), (one, other))
    for section in sections:
        beside = list(neighbours(section, sections))
        is_level = any(equal(frame(section), other, line) for other in beside for line in LINES)
        add("sections_staggered", bool(beside) and not is_level, (section["handle"],))
    for it, node in nodes.items():
        home = nodes.get(f"node:{node['metadata'].get('sectionId')}")
        add(
            "section_overflow",
            bool(home) and not is_in(frame(node), frame(home), 1e-6),
            (it,),
            *([home["handle"]] if home else []),
        )
        add("text_truncated", is_cut(node), (it,))
        add("empty_slot", is_empty_slot(node), (it,))
        made = node["metadata"].get("provenance", {})
        gone = made.get("kind") in MADE and any(
            ref["handle"].startswith("node:") and ref["handle"] not in nodes for ref in made.get("references", [])
        )
        # The asset that the node showed is what counts, where the service knows it.
        add("reference_source_missing", None if gone else False, (it,))
    for line in canvas["connections"]:
        source, target = nodes[line["from"]], line["to"]
        is_reference = line["purpose"] in ("reference", "first-frame", "last-frame")
        add(
            "reference_source_empty",
            is_reference and source["type"] == "image" and not source.get("asset"),
            (target,),
            source["handle"],
        )
    return found


def owed(run, starts):
    """What a run of the list owes beyond its targets. `starts` says of each handle what its start and cancel asked for (`asked`,
    `targets`, `outputs`, `retryOf`, `givenUp`), which no record tells."""
    start = starts.get(run["handle"], {})
    if run["kind"] not in ("image", "video") or start.get("givenUp"):
        return 0
    outputs = run["outputs"]["total"]
    is_alone = run["kind"] == "video" and not start.get("targets")
    retried = sum(other.get("outputs", 1) for other in starts.values() if other.get("retryOf") == run["handle"])
    left = max(0, max(start.get("asked", 0), outputs) - (0 if is_alone else outputs) - retried)
    return max(0, left - (1 if is_alone and run["status"] == "succeeded" else 0))


def judge(canvas, runs, starts):
    """The lists of the delivery, and the findings that hold the claim."""
    lists = {"pending": set(), "failed": set(), "nonDurable": set()}
    for node in canvas["nodes"]:
        status, is_empty = state(node)
        is_output = (
            "job" in node["metadata"]
            or node["type"] in ("image", "video")
            and node["metadata"].get("provenance", {}).get("kind") in MADE
        )
        if is_output or is_empty_slot(node) and node["metadata"]["createdBy"] == "agent":
            if status in ("queued", "running"):
                lists["pending"].add(node["handle"])
            elif is_empty:
                lists["failed" if status in ("failed", "canceled") else "nonDurable"].add(node["handle"])
    for run in runs:
        if owed(run, starts):
            lists["pending" if run["status"] in ("queued", "running") else "failed"].add(run["handle"])
    return lists, holding(canvas)


def compare(client, canvas, starts=None):
    """Judges a canvas and the service's review of it. Returns whether the claim is allowed, and the differences."""
    document = client.get(f"/canvases/{canvas}")["canvas"]
    runs = client.get(f"/runs?canvasId={canvas}&limit=100")["runs"]
    validation = client.get(f"/canvases/{canvas}/review")["validation"]
    lists, found = judge(document, runs, starts or {})
    review, differences = validation["completionReview"], []
    for name, handles in lists.items():
        told = set(review["delivery"][f"{name}OutputHandles"])
        if told != handles:
            differences.append(f"{name}: the service says {sorted(told)}, the judge {sorted(handles)}")
    held = {key_of(finding) for finding in validation["findings"] if finding["holdsClaim"]}
    certain = {key for key, is_certain in found.items() if is_certain}
    for code, nodes in certain - held:
        differences.append(f"the service misses {code} of {sorted(nodes)}")
    for code, nodes in held - set(found):
        differences.append(f"the service adds {code} of {sorted(nodes)}")
    allowed = not any(lists.values()) and not certain and not held & set(found)
    if review["doneClaimAllowed"] != allowed:
        differences.append(f"doneClaimAllowed: the service says {review['doneClaimAllowed']}, the judge {allowed}")
    return allowed, differences


def key_of(finding):
    """A Section out of line counts without its neighbours."""
    handles = finding["nodeHandles"]
    return finding["code"], frozenset(handles[:1] if finding["code"] == "sections_staggered" else handles)
