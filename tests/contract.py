"""Hooks and checks that tests/contract adds to schemathesis; see tests/contract.toml.

- Half of the valid requests get references that exist (canvas, revision, nodes, images, models, pages, jobs), so that they succeed
  instead of only being rejected. Half of those are replays. They stay valid by the document.
- Every event of a stream is validated against the schema of its data, which OpenAPI 3.1 cannot express.
- A request that is valid by the document may be rejected with 400 for a rule that no schema expresses, such as members that exclude
  each other, but never for its shape: what the document says of types, members, ranges, lengths and patterns is all that is checked.
- The statuses that each operation returned are written to $CONTRACT_STATUSES, so that tests/contract can check that every success occurred.
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


# -- Requests that succeed --

NUMBERS = itertools.count()


def ask(method, path, body=None):
    response = SESSION.request(method, ROOT + path, json=body, timeout=30)
    response.raise_for_status()
    return response.json()


class ScratchCanvas:
    """A canvas for one request, which no other request changes."""

    def __init__(self):
        made = ask("POST", "/canvases", {})["canvas"]
        self.canvas, self.revision = made["id"], made["revision"]

    def node(self, kind, metadata):
        """Creates a node and returns its id."""
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
# The headers that identify an upload, apart from its bytes.
UPLOAD_HEADERS = ("Idempotency-Key", "X-Service-File-Name", "X-Canvas-File-Name")
IMAGE = "asset:" + os.environ["CONTRACT_ASSET_ID"]
SHOP = os.environ["CONTRACT_SHOP_URL"]


def without(body, *fields):
    for field in fields:
        body.pop(field, None)


def slots(body, scratch):
    """Keeps one of the members that name targets."""
    if "place" in body:
        # Random nodes do not exist.
        body["place"] = {"title": "result"}
        without(body, "targetNodeId", "targetNodeIds", "count")
    elif "targetNodeIds" in body:
        body["targetNodeIds"] = [scratch.node("image", {}) for _ in body["targetNodeIds"][:4]]
        without(body, "targetNodeId", "count")
    else:
        body["targetNodeId"] = scratch.node("image", {})
        without(body, "count")


def image(body, scratch):
    without(body, "connectionId", "size", "quality", "elements", "source")
    body["model"], body["references"] = "sketch", [IMAGE]
    if "promptNodeId" in body:
        body["promptNodeId"] = scratch.node("text", {"content": "a kite"})
        without(body, "prompt")
    else:
        body["prompt"] = "a kite"
    slots(body, scratch)


def action(body, scratch):
    body["inputs"] = [IMAGE]
    body["params"] = {"width": 32}
    slots(body, scratch)


def chain(body, scratch):
    body["inputs"] = [IMAGE]
    body["steps"] = [{"action": "resize", "params": {"width": 32}}, {"action": "rotate", "params": {"degrees": 90}}]
    if "targetNodeIds" in body and "place" not in body:
        body["targetNodeIds"] = [scratch.node("image", {})]
    else:
        body["place"] = {"title": "result"}
        without(body, "targetNodeIds")


def video(body, scratch):
    without(body, "connectionId", "canvasId", "ownerUid", "aspectRatio", "durationSeconds", "resolution", "generateAudio",
            "firstFrame", "lastFrame", "references", "baseRevision", "targetNodeId", "place", "connect", "fit")
    body["model"] = "animatic"


def keeping(body, scratch):
    without(body, "canvasId", "targetNodeId", "baseRevision")


def downloads(body, scratch):
    body["items"] = [IMAGE]


def uploads(body, scratch):
    body["files"], body["expiresInSeconds"] = [{"name": "a.png"}], 60
    # Random nodes do not exist.
    without(body, "place")


def fork(body, scratch):
    without(body, "version", "ownerUid", "near", "sectionId")


def recipe(body, scratch):
    without(body, "version", "instanceNodeId", "near", "sectionId", "size", "quality")
    body["model"], body["inputs"] = "sketch", {"brief": "a kite over the sea"}


def element(body, scratch):
    body["sourceAssetIds"] = [os.environ["CONTRACT_ASSET_ID"]]
    without(body, "collectionIds")


def element_patch(body, scratch):
    if "element" in body:
        body["element"]["sourceAssetIds"] = [os.environ["CONTRACT_ASSET_ID"]]
    if "collectionIds" in body:
        body["collectionIds"] = []


def review(body, scratch):
    shot = ask("GET", f"/campaigns/{os.environ['CONTRACT_CAMPAIGN_ID']}")["run"]["shots"][0]["id"]
    body["decisions"] = [{**body["decisions"][0], "shotId": shot}]


def operations(body, scratch):
    body["operations"] = [{"type": "node.create", "node": {"type": "text", "position": {"x": 0, "y": 0}}}]


def import_image(body, scratch):
    body["imageUrl"] = SHOP + "/boots.png"


# Requests for a page without variants: its gallery, the same again, and a variant, which requires a review.
VARIANTS = itertools.cycle([{}, {}, {"variantSelector": "color=Green"}])


def import_gallery(body, scratch):
    without(body, "variantSelector")
    body.update(next(VARIANTS), productPageUrl=SHOP + "/boots")


def workflow(body, scratch):
    body["inputs"] = [{"key": "a", "label": "A", "type": "text", "useAsDefault": False}]
    body["outputs"] = [{"key": "b", "label": "B", "type": "text", "prompt": "{{a}}", "inputKeys": ["a"]}]


def nothing(body, scratch):
    """Changes nothing: the request only needs a canvas."""


ARRANGE = {
    "generateImages": image, "editImages": image, "varyImages": image, "runAction": action, "runActions": chain, "generateVideo": video, "keepJobVideo": keeping,
    "forkRecipe": fork, "runRecipe": recipe, "createElement": element, "updateElement": element_patch,
    "reviewCampaign": review, "applyOperations": operations, "createWorkflow": workflow,
    "planCampaign": nothing, "startCampaign": nothing,
    "createDownloads": downloads, "createUploads": uploads, "setBatchAside": operations,
    "importImage": import_image, "importProductReferences": import_gallery,
}


# Operations that start work; the first arranged requests of each are a start, a dry run and a replay.
STARTS = {"generateImages", "editImages", "varyImages", "runAction", "runActions", "generateVideo", "runRecipe", "startCampaign"}


def set_terms(body, is_dry_run):
    """Makes a start or a dry run of a request, with a price that its cap admits."""
    if "maxCredits" in body:
        body["maxCredits"] = 1000
    body["validateOnly"] = is_dry_run
    if not is_dry_run:
        body["idempotencyKey"] = str(uuid.uuid4())


def unfinished():
    """Starts a job that does not end, and returns its id. It uses the saved connection, whose models take precedence and which never
    responds to this prompt."""
    scratch = ScratchCanvas()
    target = scratch.node("image", {})
    job = ask("POST", "/images/generate", {"canvasId": scratch.canvas, "baseRevision": scratch.revision, "targetNodeId": target,
                                           "idempotencyKey": str(uuid.uuid4()), "prompt": "[[sim:hang]]"})
    deadline = time.monotonic() + 30
    while ask("GET", "/jobs/" + job["id"])["status"] == "queued" and time.monotonic() < deadline:
        time.sleep(0.05)
    return job["rawId"]


read_again = functools.cache(unfinished)

# Active jobs instead of terminal ones. Each cancellation gets a job of its own.
UNDER_WAY = {
    "getJob": lambda: {"jobId": read_again()}, "cancelJob": lambda: {"jobId": unfinished()},
    "getRun": lambda: {"runId": read_again()}, "cancelRun": lambda: {"runId": unfinished()},
}


TURNS = collections.defaultdict(itertools.count)


@schemathesis.hook
def before_call(context, case, kwargs):
    if not is_right(case) or case.meta.phase.name.value == "coverage":
        # Boundary values are sent unchanged.
        return
    operation = operation_of(case)
    if str((case.headers or {}).get("Prefer", "")).startswith("wait="):
        # A long poll of work that does not end would take longer than a request may.
        case.headers["Prefer"] = "wait=1"
    turn = next(TURNS[operation])
    if turn % 2:
        return
    if operation == "uploadAsset":
        # Random bytes are not an image, and a random canvas id does not exist.
        kwargs["data"], case.media_type = PNG, "application/octet-stream"
        without(case.query or {}, "canvasId", "ownerUid", "metadata")
        if turn % 4:
            # Sent before, so that the tested request is a replay.
            case.headers["Idempotency-Key"] = str(uuid.uuid4())
            sent = {name: case.headers[name] for name in UPLOAD_HEADERS if name in case.headers}
            SESSION.post(ROOT + "/assets", data=PNG, headers={"Content-Type": case.media_type, **sent}, timeout=60)
    elif operation in ("getAssetContent", "getAssetPreview", "getAssetVideo", "getJobOutput"):
        case.headers["Range"] = "bytes=0-0"
        # Most assets have none.
        without(case.query or {}, "original")
    elif operation == "renderCanvas":
        # Random nodes do not exist.
        without(case.query or {}, "section", "nodes")
    elif operation == "getBatchSetAside":
        canvas = os.environ["CONTRACT_CANVAS_ID"]
        made = ask("POST", f"/canvases/{canvas}/set-aside", {"operations": [{"type": "canvas.update", "title": "T"}]})
        case.path_parameters.update(canvasId=canvas, batchId=made["id"])
        without(case.query or {}, "ownerUid")
    elif operation == "listRuns":
        without(case.query or {}, "canvasId", "ownerUid", "cursor")
    elif operation == "followEvents":
        case.query = {"runs": "mine"} if turn % 4 else {"canvas": [os.environ["CONTRACT_CANVAS_ID"]]}
    elif operation in UNDER_WAY:
        case.path_parameters.update(UNDER_WAY[operation]())
    elif operation in ARRANGE and isinstance(case.body, dict):
        arrange(ARRANGE[operation], case)
        if operation in STARTS:
            set_terms(case.body, is_dry_run=turn % 6 == 2)
        if "idempotencyKey" in case.body and turn % 4:
            # Sent before, so that the tested request is a replay.
            SESSION.post(os.environ["CONTRACT_BASE_URL"] + case.formatted_path, json=case.body, params=case.query, timeout=60)


def arrange(how, case):
    scratch = ScratchCanvas()
    body = json.loads(json.dumps(case.body))
    how(body, scratch)
    if "idempotencyKey" in body:
        body["idempotencyKey"] = str(uuid.uuid4())
    if "baseRevision" in body:
        body["baseRevision"] = scratch.revision
    if "canvasId" in body:
        body["canvasId"] = scratch.canvas
    if "canvasId" in (case.path_parameters or {}):
        case.path_parameters["canvasId"] = scratch.canvas
        (case.query or {}).pop("ownerUid", None)
    case.body = body


# -- Imports --

@schemathesis.check
def shop_imports_succeed(ctx, response, case):
    """Imports from the test shop succeed, although tests/contract.toml permits imports to fail."""
    if response.status_code in (502, 504) and isinstance(case.body, dict):
        url = str(case.body.get("imageUrl", case.body.get("productPageUrl")))
        assert not url.startswith(SHOP), f"{url} was not fetched"


# -- Streams --

@schemathesis.hook
def before_load_schema(context, raw_schema):
    if API + "/events" not in raw_schema["paths"]:
        # The document of the console has no streams.
        return
    stream = raw_schema["paths"][API + "/runs/{runId}/events"]["get"]["responses"]["200"]["content"]
    # Replaces a schema that only says that the stream is a string.
    stream["text/event-stream"] = {"itemSchema": {"$ref": "#/components/schemas/RunEvent"}}
    stream = raw_schema["paths"][API + "/events"]["get"]["responses"]["200"]["content"]
    stream["text/event-stream"] = {"itemSchema": {"$ref": "#/components/schemas/StreamEvent"}}


send = requests.Session.send


def send_briefly(session, request, **kwargs):
    """Reads only the first events of a stream that does not end."""
    if not request.path_url.startswith(API + "/events"):
        return send(session, request, **kwargs)
    response = send(session, request, **{**kwargs, "stream": True})
    if "text/event-stream" in response.headers.get("Content-Type", ""):
        beginning = b""
        for piece in response.iter_content(None):
            beginning += piece
            if beginning.endswith(b"\n\n"):
                break
        response._content, response._content_consumed = beginning, True
        response.close()
    return response


requests.Session.send = send_briefly


# -- Valid requests that are rejected --

# What the service says of a wrong shape.
SHAPE = re.compile(r"is required$|is not a known field$|must be of type |must be at (least|most) -?[0-9.]+$|"
                   r"must have at (least|most) [0-9]+ (character|item|field)s?$|must match ")

# Operation, field and message of rules that are reported in these words, although the schema cannot express them.
BEYOND = [
    # The parameters depend on the Action in the path.
    ("runAction", "params(\\..*)?", ".*"),
    # The header value is percent-encoded.
    ("uploadAsset", "X-Service-File-Name", ".*"),
    # Unless the start is only checked.
    (".*", "idempotencyKey", "is required$"),
]


with open(os.environ["CONTRACT_DOCUMENT"]) as document:
    DOCUMENT = json.load(document)


@functools.cache
def validator(operation):
    """A validator of the operation's body. The boundary values of schemathesis may be wrong elsewhere."""
    operations = (it for item in DOCUMENT["paths"].values() for it in item.values())
    content = next(it for it in operations if it["operationId"] == operation).get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {"schema": {}})["schema"]
    return jsonschema_rs.Draft202012Validator({"allOf": [schema], "components": DOCUMENT["components"]})


def is_beyond(operation, violation):
    subject = (operation, violation["field"], violation["message"])
    return any(all(re.match(f"(?:{pattern})" + ("" if part == 2 else "$"), text, re.S)
                   for part, (pattern, text) in enumerate(zip(rule, subject))) for rule in BEYOND)


@schemathesis.check
def rejections_are_explained(ctx, response, case):
    if not is_right(case) or response.status_code != 400:
        return
    if isinstance(case.body, dict) and not validator(operation_of(case)).is_valid(case.body):
        return
    error = response.json()["error"]
    if isinstance(error, str):
        # The form of OpenID Connect.
        return
    assert error["code"] == "input_validation_error" and error["fields"], f"no rule is named: {error}"
    wrong = [it for it in error["fields"] if SHAPE.match(it["message"]) and not is_beyond(operation_of(case), it)]
    assert not wrong, f"the request has the shape that the document describes, and is rejected for its shape: {wrong[:5]}"


# -- Statuses by operation --

STATUSES = collections.defaultdict(collections.Counter)


@schemathesis.hook
def after_call(context, case, response):
    STATUSES[operation_of(case)][response.status_code] += 1


@atexit.register
def write_statuses():
    if path := os.environ.get("CONTRACT_STATUSES"):
        with open(path, "w") as file:
            json.dump(STATUSES, file)
