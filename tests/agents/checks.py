"""The state that the tasks must leave, read from the service."""

from client import TERMINAL
from common import CANCELED


def graph(client, canvas):
    return client.get(f"/canvases/{canvas}")["canvas"]


def frame(node):
    x, y = node["position"]["x"], node["position"]["y"]
    return x, y, x + node["width"], y + node["height"]


def is_within(inner, outer):
    return inner[0] >= outer[0] and inner[1] >= outer[1] and inner[2] <= outer[2] and inner[3] <= outer[3]


def sections(canvas):
    """The Sections of a canvas with their members."""
    nodes = canvas["nodes"]
    frames = [node for node in nodes if node["metadata"].get("section")]
    return [(it, [node for node in nodes if node["metadata"].get("sectionId") == it["id"]]) for it in frames]


def named(canvas, title):
    found = [node for node in canvas["nodes"] if node["title"] == title]
    assert len(found) == 1, f"{len(found)} nodes are named {title}"
    return found[0]


def assert_clean(client, canvas):
    """Nothing overlaps, and every member is inside its Section."""
    review = client.get(f"/canvases/{canvas}/review")["validation"]["completionReview"]
    for group in ("overlap", "containment"):
        assert review[group]["status"] == "clear", review[group]


def repaired(client, canvas):
    """Applies the repairs that the review offers."""
    operations = client.get(f"/canvases/{canvas}/review?repairs=true")["repairs"]["operations"]
    if operations:
        revision = graph(client, canvas)["revision"]
        body = {"baseRevision": revision, "idempotencyKey": f"repair-{revision}", "operations": operations}
        client.post(f"/canvases/{canvas}/operations", body)


def moodboard(client, agent, titles):
    canvas = graph(client, agent.canvas)
    [(section, members)] = sections(canvas)
    assert sorted(node["title"] for node in members) == sorted(titles), members
    for node in members:
        assert node["asset"] and is_within(frame(node), frame(section)), (node, section)
    assert_clean(client, agent.canvas)


def formats(client, agent, sizes):
    canvas = graph(client, agent.canvas)
    assert len(sizes) == 3
    for title, (width, height) in sizes.items():
        node = named(canvas, title)
        asset = client.get(f"/assets/{node['asset'].rsplit(':', 1)[1]}")["asset"]
        assert (asset["width"], asset["height"]) == (width, height), asset
        made = node["metadata"]["provenance"]
        assert made["actionId"] == "action:add-text-to-image" and made["params"]["text"], made
    assert_clean(client, agent.canvas)


def recipe(client, agent, run):
    record = client.get(f"/runs/{run}")
    assert record["status"] == "succeeded" and record["recipeId"] == "product-hero-shot", record
    nodes = {node["id"]: node for node in graph(client, agent.canvas)["nodes"]}
    kinds = {output["type"]: nodes[output["nodeId"]] for output in record["outputs"]}
    assert kinds["text"]["metadata"]["content"] and kinds["image"]["asset"], kinds
    # A text that a step wrote may need more room than its node has. The review says how to give it.
    repaired(client, agent.canvas)
    assert_clean(client, agent.canvas)


def rename(client, canvas, nodes, other):
    assert other.failure is None and other.writes > 0, other.failure
    titles = {node["id"]: node["title"] for node in graph(client, canvas)["nodes"]}
    half = len(nodes) // 2
    assert [titles[node] for node in nodes[:half]] == [f"final {at}" for at in range(half)], titles
    for node, title in other.titles.items():
        assert titles[node] == title, (titles[node], title)


def variations(client, agent, canceled):
    while (record := client.get(f"/runs/{canceled}", Prefer="wait=30"))["status"] not in TERMINAL:
        pass
    assert record["status"] in CANCELED, record
    canvas = graph(client, agent.canvas)
    made = [node for node in canvas["nodes"] if node["metadata"].get("provenance", {}).get("operation") == "variations"]
    assert len(made) == 3 and all(node["asset"] for node in made), made
    assert not {node["handle"] for node in canvas["nodes"]} & set(record["targets"]), "targets of the canceled run are left"
    assert_clean(client, agent.canvas)


def tidy(client, canvas, groups):
    state = graph(client, canvas)
    found = sorted(sorted(node["id"] for node in members) for _, members in sections(state))
    assert found == sorted(sorted(group) for group in groups), "each kind has a Section of its own"
    for section, members in sections(state):
        for node in members:
            assert is_within(frame(node), frame(section)), (node, section)
    assert_clean(client, canvas)
