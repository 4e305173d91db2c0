"""Resizes an image on a canvas, with the client that openapi-python-client generates.

CANVAS_BASE_URL=… CANVAS_TOKEN=… python main.py image.png
"""

import os
import pathlib
import sys
import uuid
from typing import TypeVar

import httpx

from canvas_client import AuthenticatedClient
from canvas_client.api.assets import upload_asset
from canvas_client.api.canvases import apply_operations, create_canvas, get_canvas
from canvas_client.api.image_actions import run_action
from canvas_client.api.runs import get_run
from canvas_client.models import (
    ApplyOperations,
    AssetRead,
    CanvasRead,
    CreateCanvas,
    ImageJob,
    MutationResult,
    NewNode,
    NodeCreate,
    Position,
    ResizeParameters,
    RunAction,
)
from canvas_client.types import File

Result = TypeVar("Result")


def expect(kind: type[Result], result: object) -> Result:
    """The result when it is of the kind; an error response raises."""
    if not isinstance(result, kind):
        raise RuntimeError(f"expected {kind.__name__}: {result}")
    return result


def finished(client: AuthenticatedClient, run_id: str) -> ImageJob:
    """The run, once it has ended. Each request is answered when the run changes, after 30 seconds at the latest."""
    for _ in range(10):
        run = expect(ImageJob, get_run.sync(run_id, client=client, prefer="wait=30"))
        if run.status in ("succeeded", "failed", "canceled", "expired"):
            return run
    raise TimeoutError(f"{run_id} has not ended")


def main() -> None:
    client = AuthenticatedClient(
        base_url=os.environ["CANVAS_BASE_URL"],
        token=os.environ["CANVAS_TOKEN"],
        timeout=httpx.Timeout(60),
        raise_on_unexpected_status=True,
    )

    canvas = expect(CanvasRead, create_canvas.sync(client=client, body=CreateCanvas(title="From Python"))).canvas

    with pathlib.Path(sys.argv[1]).open("rb") as image:
        upload = upload_asset.sync(client=client, body=File(payload=image), idempotency_key=str(uuid.uuid4()))
    asset = expect(AssetRead, upload).asset

    # An Action writes into an empty image node.
    node = NewNode(type_="image", title="32 pixels wide", position=Position(x=0, y=0))
    batch = ApplyOperations(
        base_revision=canvas.revision,
        idempotency_key=str(uuid.uuid4()),
        operations=[NodeCreate(type_="node.create", client_id="small", node=node)],
    )
    applied = expect(MutationResult, apply_operations.sync(canvas.id, client=client, body=batch))
    target = applied.resolved_ids["small"]

    request = RunAction(
        canvas_id=canvas.id,
        base_revision=applied.canvas.revision,
        idempotency_key=str(uuid.uuid4()),
        target_node_id=target,
        inputs=[asset.handle],
        params=ResizeParameters(width=32),
    )
    job = expect(ImageJob, run_action.sync("resize", client=client, body=request))

    run = finished(client, job.run)
    assert run.status == "succeeded", run

    nodes = expect(CanvasRead, get_canvas.sync(canvas.id, client=client)).canvas.nodes
    shown = next(node for node in nodes if node.id == target)
    assert shown.asset, "the target shows an asset"
    print(f"{shown.handle} shows {shown.asset}")


main()
