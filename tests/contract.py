"""What tests/contract adds to schemathesis: see tests/contract.toml.

- A half of the right requests gets references that exist (canvas, revision, nodes, pictures, models, pages, jobs), so that they
  are done and not only refused; a half of these has been sent before. They stay right by the document.
- Every event of a stream is held against the schema of what it carries, for which OpenAPI 3.1 has no place.
- A right request that is refused with 400 has to break a rule that no schema can say; those rules are listed here.
- The statuses that each operation gave are written to $CONTRACT_STATUSES, so that tests/contract sees whether all was done.
"""

import atexit
import base64
import collections
import functools
import itertools
import json
import os
import re
import time
import uuid

import jsonschema_rs
import requests
import schemathesis

API = "/api/canvas-agent/v1"
ROOT = os.environ["CONTRACT_BASE_URL"] + API
SESSION = requests.Session()
SESSION.headers["Authorization"] = "Bearer " + os.environ["CONTRACT_TOKEN"]


def operation_of(case):
    return case.operation.definition.raw["operationId"]


def is_right(case):
    return case.meta is not None and case.meta.generation.mode.is_positive


# -- Requests that are done --

NUMBERS = itertools.count()


def ask(method, path, body=None):
    response = SESSION.request(method, ROOT + path, json=body, timeout=30)
    response.raise_for_status()
    return response.json()


class Workshop:
    """A canvas for one request, which nobody else changes."""

    def __init__(self):
        made = ask("POST", "/canvases", {})["canvas"]
        self.canvas, self.revision = made["id"], made["revision"]

    def node(self, kind, metadata):
        """A new node's id."""
        node = {"type": kind, "position": {"x": 1000 * next(NUMBERS), "y": 0}, "metadata": metadata}
        body = {"baseRevision": self.revision, "idempotencyKey": str(uuid.uuid4()),
                "operations": [{"type": "node.create", "node": node}]}
        made = ask("POST", f"/canvases/{self.canvas}/operations", body)
        self.revision = made["canvas"]["revision"]
        return made["changedNodeIds"][0]


# One pixel.
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
# What an upload is besides its bytes.
UPLOAD_HEADERS = ("Idempotency-Key", "X-Service-File-Name", "X-Canvas-File-Name")
PICTURE = "asset:" + os.environ["CONTRACT_ASSET_ID"]
SHOP = os.environ["CONTRACT_SHOP_URL"]


def without(body, *fields):
    for field in fields:
        body.pop(field, None)


def slots(body, workshop):
    if "targetNodeId" in body:
        body["targetNodeId"] = workshop.node("image", {})
    if "targetNodeIds" in body:
        body["targetNodeIds"] = [workshop.node("image", {}) for _ in body["targetNodeIds"][:4]]
        without(body, "count")


def image(body, workshop):
    without(body, "connectionId", "size", "quality", "elements", "source")
    body["model"], body["references"] = "sketch", [PICTURE]
    if "promptNodeId" in body:
        body["promptNodeId"] = workshop.node("text", {"content": "a kite"})
    slots(body, workshop)


def action(body, workshop):
    body["inputs"] = [PICTURE]
    body["params"] = {"width": 32}
    slots(body, workshop)


def video(body, workshop):
    without(body, "connectionId", "canvasId", "ownerUid", "aspectRatio", "durationSeconds", "resolution", "generateAudio",
            "firstFrame", "lastFrame", "references")
    body["model"] = "animatic"


def fork(body, workshop):
    without(body, "version", "ownerUid")


def recipe(body, workshop):
    without(body, "version", "instanceNodeId", "size", "quality")
    body["model"], body["inputs"] = "sketch", {"brief": "a kite over the sea"}


def element(body, workshop):
    body["sourceAssetIds"] = [os.environ["CONTRACT_ASSET_ID"]]
    without(body, "collectionIds")


def element_patch(body, workshop):
    if "element" in body:
        body["element"]["sourceAssetIds"] = [os.environ["CONTRACT_ASSET_ID"]]
    if "collectionIds" in body:
        body["collectionIds"] = []


def review(body, workshop):
    shot = ask("GET", f"/campaigns/{os.environ['CONTRACT_CAMPAIGN_ID']}")["run"]["shots"][0]["id"]
    body["decisions"] = [{**body["decisions"][0], "shotId": shot}]


def operations(body, workshop):
    body["operations"] = [{"type": "node.create", "node": {"type": "text", "position": {"x": 0, "y": 0}}}]


def import_image(body, workshop):
    body["imageUrl"] = SHOP + "/boots.png"


# Asked of a page without variants: its gallery, also again, and a variant, which takes a review.
VARIANTS = itertools.cycle([{}, {}, {"variantSelector": "color=Green"}])


def import_gallery(body, workshop):
    without(body, "variantSelector")
    body.update(next(VARIANTS), productPageUrl=SHOP + "/boots")


def workflow(body, workshop):
    body["inputs"] = [{"key": "a", "label": "A", "type": "text", "useAsDefault": False}]
    body["outputs"] = [{"key": "b", "label": "B", "type": "text", "prompt": "{{a}}", "inputKeys": ["a"]}]


def nothing(body, workshop):
    """The canvas is enough."""


ARRANGE = {
    "generateImages": image, "editImages": image, "varyImages": image, "runAction": action, "generateVideo": video,
    "forkRecipe": fork, "runRecipe": recipe, "createElement": element, "updateElement": element_patch,
    "reviewCampaign": review, "applyOperations": operations, "createWorkflow": workflow,
    "planCampaign": nothing, "startCampaign": nothing,
    "importImage": import_image, "importProductReferences": import_gallery,
}


def unfinished():
    """The id of a job that runs: of the saved connection, whose models come first (decisions 10.5), and which does not answer this."""
    workshop = Workshop()
    target = workshop.node("image", {})
    job = ask("POST", "/images/generate", {"canvasId": workshop.canvas, "baseRevision": workshop.revision, "targetNodeId": target,
                                           "idempotencyKey": str(uuid.uuid4()), "prompt": "[[sim:hang]]"})
    deadline = time.monotonic() + 30
    while ask("GET", "/jobs/" + job["id"])["status"] == "queued" and time.monotonic() < deadline:
        time.sleep(0.05)
    return job["rawId"]


read_again = functools.cache(unfinished)

# In place of what is over. To be canceled is a job of its own each time.
UNDER_WAY = {
    "getJob": lambda: {"jobId": read_again()}, "cancelJob": lambda: {"jobId": unfinished()},
    "getRun": lambda: {"runId": read_again()}, "cancelRun": lambda: {"runId": unfinished()},
}


TURNS = collections.defaultdict(itertools.count)


@schemathesis.hook
def before_call(context, case, kwargs):
    if not is_right(case) or case.meta.phase.name.value == "coverage":
        # Boundaries are sent as they are.
        return
    operation = operation_of(case)
    turn = next(TURNS[operation])
    if turn % 2:
        return
    if operation == "uploadAsset":
        # Bytes at random are no picture, and a canvas at random is nobody's.
        kwargs["data"], case.media_type = PNG, "application/octet-stream"
        without(case.query or {}, "canvasId", "ownerUid")
        if turn % 4:
            # Sent before, so that what is judged is a replay.
            case.headers["Idempotency-Key"] = str(uuid.uuid4())
            sent = {name: case.headers[name] for name in UPLOAD_HEADERS if name in case.headers}
            SESSION.post(ROOT + "/assets", data=PNG, headers={"Content-Type": case.media_type, **sent}, timeout=60)
    elif operation in UNDER_WAY:
        case.path_parameters.update(UNDER_WAY[operation]())
    elif operation in ARRANGE and isinstance(case.body, dict):
        arrange(ARRANGE[operation], case)
        if "idempotencyKey" in case.body and turn % 4:
            # Sent before, so that what is judged is a replay.
            SESSION.post(os.environ["CONTRACT_BASE_URL"] + case.formatted_path, json=case.body, params=case.query, timeout=60)


def arrange(how, case):
    workshop = Workshop()
    body = json.loads(json.dumps(case.body))
    how(body, workshop)
    if "idempotencyKey" in body:
        body["idempotencyKey"] = str(uuid.uuid4())
    if "baseRevision" in body:
        body["baseRevision"] = workshop.revision
    if "canvasId" in body:
        body["canvasId"] = workshop.canvas
    if "canvasId" in (case.path_parameters or {}):
        case.path_parameters["canvasId"] = workshop.canvas
        (case.query or {}).pop("ownerUid", None)
    case.body = body


# -- Imports --

@schemathesis.check
def shop_answers(ctx, response, case):
    """tests/contract.toml lets the server of an import fail; the shop does not."""
    if response.status_code in (502, 504) and isinstance(case.body, dict):
        url = str(case.body.get("imageUrl", case.body.get("productPageUrl")))
        assert not url.startswith(SHOP), f"{url} was not fetched"


# -- Streams --

@schemathesis.hook
def before_load_schema(context, raw_schema):
    run = {"type": "string", "contentMediaType": "application/json", "contentSchema": {"$ref": "#/components/schemas/RunDocument"}}
    event = {"type": "object", "properties": {"event": {"const": "run"}, "data": run}, "required": ["event", "data"]}
    stream = raw_schema["paths"][API + "/runs/{runId}/events"]["get"]["responses"]["200"]["content"]
    # In place of a schema that says no more than that the stream is a text.
    stream["text/event-stream"] = {"itemSchema": event}


# -- Right requests that are refused --

# Operation, field and message of the rules that a right request can break: nothing in JSON Schema says them.
BEYOND = [
    # No JSON Schema keeps a character out of every text; the document says it in words.
    (".*", ".*", "must not contain the character U\\+0000"),
    # Cursors are authenticated.
    ("list.*", "cursor", "is invalid or belongs to a different list"),
    # An owner may stand in a handle as well.
    (".*", "ownerUid", "differs from the owner"),
    # The same by another spelling, or in another field.
    (".*", ".*", "was given before|is there twice|is decided twice|names another input already|names an input or another"),
    (".*Images", "count", "must be the number of targets"),
    # The Action is that of the path.
    ("runAction", "params\\..*", ".*"),
    ("runAction", "inputs", "must be [12]: "),
    ("runAction", "targetNodeId", "must not be an input as well"),
    # Names of what is declared beside.
    ("createWorkflow", "outputs\\[\\d+\\]\\.inputKeys\\[\\d+\\]", "names no input|is this output itself|is an output that is made later"),
    ("createWorkflow", "outputs\\[\\d+\\]\\.prompt", "which is not among its inputKeys"),
    # Whether a host is public.
    (".*", "webhook\\.url|imageUrl|productPageUrl|firstFrame|lastFrame|references\\[\\d+\\](\\.handle)?", ".*(https|public|URL|address|host).*"),
    ("generateVideo", "canvasId", "is required with node handles"),
    # The type of a node, which may be stored, and what a batch made before.
    ("applyOperations", ".*\\.metadata\\.content", "must be empty on an image or video node"),
    ("applyOperations", ".*\\.metadata\\.section(Id)?", "must not be set on"),
    ("applyOperations", ".*\\.clientId", ".*"),
    ("applyOperations", ".*\\.metadata", "must be at most 65536 bytes"),
    # A header's text is percent-encoded.
    ("uploadAsset", "X-Service-File-Name", ".*"),
]


with open(os.environ["CONTRACT_DOCUMENT"]) as document:
    DOCUMENT = json.load(document)


@functools.cache
def validator(operation):
    """Of the operation's body. schemathesis' own boundaries do not mind what excludes and needs what."""
    operations = (it for item in DOCUMENT["paths"].values() for it in item.values())
    content = next(it for it in operations if it["operationId"] == operation).get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {"schema": {}})["schema"]
    return jsonschema_rs.Draft202012Validator({"allOf": [schema], "components": DOCUMENT["components"]})


def is_beyond(operation, violation):
    subject = (operation, violation["field"], violation["message"])
    return any(all(re.match(f"(?:{pattern})" + ("" if part == 2 else "$"), text, re.S)
                   for part, (pattern, text) in enumerate(zip(rule, subject))) for rule in BEYOND)


@schemathesis.check
def refused_beyond_the_schema(ctx, response, case):
    if not is_right(case) or response.status_code != 400:
        return
    if isinstance(case.body, dict) and not validator(operation_of(case)).is_valid(case.body):
        return
    error = response.json()["error"]
    violations = error.get("fields") or [{"field": "", "message": error["message"]}]
    told = [violation for violation in violations if not is_beyond(operation_of(case), violation)]
    assert not told, f"the document admits this, and its refusal is no rule beyond the schema: {told[:5]}"


# -- What was done --

STATUSES = collections.defaultdict(collections.Counter)


@schemathesis.hook
def after_call(context, case, response):
    STATUSES[operation_of(case)][response.status_code] += 1


@atexit.register
def tell():
    if path := os.environ.get("CONTRACT_STATUSES"):
        with open(path, "w") as file:
            json.dump(STATUSES, file)
