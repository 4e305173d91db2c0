"""Behavior of canvas-service against a service, through a proxy that breaks requests (proxy.py).

    CANVAS_BASE_URL=<address of the proxy> CANVAS_TOKEN=… python3 faults.py
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import os
import time
import typing
import unittest

import httpx

from canvas_service import (
    ApiError,
    AsyncCanvasClient,
    CanvasClient,
    ConnectionError,
    WaitTimeoutError,
    WebhookError,
    WorkFailedError,
    types,
    verify_webhook,
)

BASE_URL, TOKEN = os.environ["CANVAS_BASE_URL"], os.environ["CANVAS_TOKEN"]
client = CanvasClient(BASE_URL, TOKEN)


class Seen(typing.TypedDict):
    method: str
    path: str
    headers: dict[str, str]
    body: str


def plan(*faults: dict[str, object]) -> None:
    httpx.post(f"{BASE_URL}/-/faults", content=json.dumps(faults))


def seen() -> list[Seen]:
    return typing.cast("list[Seen]", httpx.get(f"{BASE_URL}/-/requests").json())


def sticky(title: str) -> types.NodeCreate:
    return {"type": "node.create", "clientId": "note", "node": {"type": "sticky", "title": title}}


def add(canvas_id: str, revision: str, title: str) -> types.MutationResult:
    return client.apply_operations(canvas_id, {"baseRevision": revision, "operations": [sticky(title)]})


def board() -> tuple[str, str]:
    """A canvas with a picture: their handles."""
    plan()
    canvas = client.create_canvas({"title": "Faults"})["canvas"]
    return canvas["handle"], client.upload_file("shoe.png", canvas_id=canvas["handle"])["handle"]


def resize(canvas_id: str, photo: str, width: int = 32) -> types.ImageJob:
    return client.with_revision(canvas_id, lambda canvas: client.run_action("resize", {
        "canvasId": canvas_id, "baseRevision": canvas["revision"], "inputs": [photo], "params": {"width": width}, "place": {},
    }))


def start(canvas_id: str, prompt: str, model: str) -> types.ImageStart:
    revision = client.get_canvas(canvas_id)["canvas"]["revision"]
    return {"canvasId": canvas_id, "baseRevision": revision, "prompt": prompt, "model": model, "place": {}}


def simulated() -> str:
    return client.list_models(provider="openai", capability="image.generate")["models"][0]["handle"]


class Faults(unittest.TestCase):
    def test_a_read_is_repeated_after_503_429_and_a_lost_connection_and_retry_after_is_honoured(self) -> None:
        plan({"match": "GET /canvases", "status": 503, "headers": {"Retry-After": "1"}}, {"match": "GET /canvases", "drop": "before"},
             {"match": "GET /canvases", "status": 429, "code": "rate_limited"})
        began = time.monotonic()
        client.list_canvases(limit=1)
        self.assertGreaterEqual(time.monotonic() - began, 1)
        self.assertEqual(len(seen()), 4)

    def test_a_long_pause_too_many_attempts_and_a_refusal_are_final(self) -> None:
        plan({"match": "GET", "status": 429, "code": "rate_limited", "headers": {"Retry-After": "31"}})
        with self.assertRaises(ApiError) as busy:
            client.get_auth_status()
        self.assertEqual((busy.exception.status, busy.exception.code, busy.exception.retry_after), (429, "rate_limited", 31))
        self.assertEqual(len(seen()), 1)

        plan({"match": "GET", "status": 500, "times": 9})
        with self.assertRaises(ApiError):
            CanvasClient(BASE_URL, TOKEN, retries=1).get_auth_status()
        self.assertEqual(len(seen()), 2)

        plan()
        with self.assertRaises(ApiError) as absent:
            client.get_canvas("absent")
        self.assertEqual(absent.exception.code, "not_found")
        self.assertRegex(absent.exception.request_id, "^[0-9a-f-]{36}$")
        self.assertIn(absent.exception.request_id, str(absent.exception))
        self.assertEqual(len(seen()), 1)

        with self.assertRaises(ApiError) as invalid:
            client.create_canvas({"title": "x" * 161})
        self.assertEqual([violation["field"] for violation in invalid.exception.fields], ["title"])
        with self.assertRaises(ApiError) as stranger:
            CanvasClient(BASE_URL, TOKEN + "x").get_auth_status()
        self.assertEqual(stranger.exception.code, "unauthorized")

    def test_a_batch_whose_answer_was_lost_is_sent_again_with_its_key_and_has_one_effect(self) -> None:
        canvas_id, _ = board()
        plan({"match": "POST /canvases/.*/operations", "drop": "after"})
        result = client.with_revision(canvas_id, lambda canvas: add(canvas_id, canvas["revision"], "Once"))
        self.assertTrue(result["replayed"])
        first, second = (request["body"] for request in seen() if request["method"] == "POST")
        self.assertEqual(first, second)
        nodes = client.get_canvas(canvas_id)["canvas"]["nodes"]
        self.assertEqual([node["title"] for node in nodes].count("Once"), 1)

    def test_an_upload_whose_answer_was_lost_stores_one_asset(self) -> None:
        canvas_id = client.create_canvas()["canvas"]["handle"]
        plan({"match": "POST /assets", "drop": "after"})
        client.upload_file("shoe.png", canvas_id=canvas_id, file_name="Schuh – rot.png")
        first, second = (request["headers"]["idempotency-key"] for request in seen())
        self.assertEqual(first, second)
        self.assertEqual([asset["name"] for asset in client.list_assets(canvas_id=canvas_id)["assets"]], ["Schuh – rot.png"])

    def test_a_mutation_without_a_key_and_work_that_costs_credit_is_sent_once(self) -> None:
        plan({"match": "POST", "drop": "before"})
        with self.assertRaises(ConnectionError) as lost:
            client.create_canvas()
        self.assertEqual([request["headers"]["x-request-id"] for request in seen()], [lost.exception.request_id])

        canvas_id, _ = board()
        paid: types.ImageStart = {**start(canvas_id, "a shoe", "sketch"), "idempotencyKey": f"a-key-of-mine-{canvas_id}"}
        plan({"match": "POST /images", "drop": "after"})
        with self.assertRaises(ConnectionError):
            client.generate_images(paid)
        self.assertEqual(len(seen()), 1)
        # The same key again, by the caller's decision: the work that was started.
        job = client.generate_images(paid)
        self.assertTrue(job["replayed"])
        client.wait_for_run(job)

        # A dry run starts nothing and is repeated.
        request = start(canvas_id, "a shoe", "sketch")
        plan({"match": "POST /images", "status": 503})
        self.assertEqual(client.quote_generate_images(request)["creditCost"], 1)
        self.assertEqual(len(seen()), 2)

    def test_a_change_is_made_anew_when_somebody_else_wrote_five_times_at_most(self) -> None:
        canvas_id, _ = board()
        calls: list[str] = []

        def change(canvas: types.Canvas) -> types.MutationResult:
            calls.append(canvas["revision"])
            if len(calls) == 1:
                add(canvas_id, canvas["revision"], "Theirs")
            return add(canvas_id, canvas["revision"], "Mine")

        client.with_revision(canvas_id, change)
        self.assertEqual(len(set(calls)), 2)
        titles = {node["title"] for node in client.get_canvas(canvas_id)["canvas"]["nodes"]}
        self.assertLessEqual({"Theirs", "Mine"}, titles)

        plan()
        with self.assertRaises(ApiError) as conflict:
            client.with_revision(canvas_id, lambda _: add(canvas_id, "stale", "Never"))
        self.assertTrue(conflict.exception.is_revision_conflict)
        self.assertEqual(len([request for request in seen() if request["method"] == "POST"]), 5)

    def test_a_wait_ends_with_the_record_the_failure_or_the_time(self) -> None:
        canvas_id, photo = board()
        states: list[str] = []
        done = client.wait_for_run(resize(canvas_id, photo), on_change=lambda work: states.append(work["status"]))
        self.assertEqual(done["images"][0]["width"], 32)
        self.assertEqual(states[-1], "succeeded")
        self.assertEqual(client.wait_for_run(done["run"])["status"], "succeeded")

        refused = client.generate_images(start(canvas_id, "[[sim:content]]", simulated()))
        with self.assertRaises(WorkFailedError) as failed:
            client.wait_for_run(refused)
        self.assertEqual(failed.exception.work["status"], "failed")
        self.assertIn("provider_rejected", str(failed.exception))

        video = client.generate_video({"model": "animatic", "prompt": "a kite over the sea"})
        with self.assertRaises(WaitTimeoutError) as early:
            client.wait_for_run(video, timeout=0)
        self.assertEqual(early.exception.work["id"], video["id"])
        self.assertIn(b"ftyp", client.get_job_output(client.wait_for_run(video)["id"])[:16])

    def test_a_service_that_does_not_wait_is_asked_once_a_second(self) -> None:
        canvas_id, _ = board()
        hanging = client.generate_images(start(canvas_id, "[[sim:hang]]", simulated()))
        plan({"match": "GET /runs", "strip": "prefer", "times": 99})
        with self.assertRaises(WaitTimeoutError):
            client.wait_for_run(hanging, timeout=3)
        self.assertTrue(4 <= len(seen()) <= 8, f"{len(seen())} reads in 3 s")
        plan()
        client.cancel_run(hanging["run"])

    def test_a_stream_of_a_run_that_breaks_off_goes_on_without_repeated_states(self) -> None:
        run = resize(*board(), 40)["run"]
        plan({"match": "GET /runs/.*/events", "cut": 1}, {"match": "GET /runs/.*/events", "status": 503})
        states = [state["status"] for state in client.follow_run(run)]
        self.assertEqual(states[-1], "succeeded")
        self.assertEqual(len(set(states)), len(states))
        with self.assertRaises(ApiError):
            next(client.follow_run("run:absent"))

    def test_a_stream_of_a_canvas_that_breaks_off_goes_on_with_what_is_new(self) -> None:
        canvas_id, _ = board()
        plan({"match": "GET /events", "cut": 3})
        names: list[str] = []
        for event in client.follow_events(canvases=[canvas_id]):
            names.append(event["event"])
            if len(names) == 3:
                client.with_revision(canvas_id, lambda canvas: add(canvas_id, canvas["revision"], "New"))
            if names.count("canvas") == 2:
                break
        self.assertEqual(names[:3], ["role", "canvas", "presence"])
        self.assertEqual(names.count("role"), 1, "the role was not sent again")
        self.assertGreaterEqual(len([request for request in seen() if request["path"].startswith("/events")]), 2)

    def test_a_list_is_read_to_its_end_each_item_once(self) -> None:
        plan()
        canvas_id = client.create_canvas()["canvas"]["handle"]
        made = {client.upload_file("shoe.png", canvas_id=canvas_id, file_name=f"{name}.png")["handle"] for name in "abc"}
        read = [asset["handle"] for asset in client.paginate(client.list_assets, canvas_id=canvas_id, limit=2)]
        self.assertEqual((len(read), set(read)), (3, made))

    def test_an_id_that_would_address_another_resource_is_refused(self) -> None:
        plan()
        for name in ("", ".", ".."):
            with self.assertRaises(ValueError):
                client.get_canvas(name)
        self.assertEqual(seen(), [])

    def test_the_asynchronous_client_does_the_same(self) -> None:
        async def run() -> None:
            async with AsyncCanvasClient(BASE_URL, TOKEN) as client:
                plan({"match": "GET /auth", "status": 503})
                self.assertTrue((await client.get_auth_status())["authenticated"])
                canvas_id = (await client.create_canvas())["canvas"]["handle"]
                plan({"match": "POST /assets", "drop": "after"})
                photo = await client.upload_file("shoe.png", canvas_id=canvas_id)
                job = await client.with_revision(canvas_id, lambda canvas: client.run_action("resize", {
                    "canvasId": canvas_id, "baseRevision": canvas["revision"], "inputs": [photo["handle"]], "params": {"width": 8}, "place": {},
                }))
                plan({"match": "GET /runs/.*/events", "cut": 1})
                states = [state["status"] async for state in client.follow_run(job["run"])]
                self.assertEqual(states[-1], "succeeded")
                self.assertEqual((await client.wait_for_run(job))["status"], "succeeded")
                listed = [asset["handle"] async for asset in client.paginate(client.list_assets, canvas_id=canvas_id, limit=1)]
                self.assertEqual(len(listed), 2)

        asyncio.run(run())

    def test_webhooks_are_verified(self) -> None:
        secret, other, now = "0123456789abcdef0123456789abcdef", "another secret of the same length", 1755682200.0
        body = b'{"id":"event:1","type":"image_job.succeeded"}'

        def sign(timestamp: str) -> dict[str, str]:
            signature = hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
            return {"Service-Webhook-Timestamp": timestamp, "Service-Webhook-Signature": f"v1={signature}"}

        headers = sign("1755682200")
        self.assertEqual(verify_webhook(headers, body, [other, secret], now=now)["type"], "image_job.succeeded")
        for timestamp in ("1755682200000", "1755681900", "1755682500"):
            verify_webhook(sign(timestamp), body, secret, now=now)
        signature = headers["Service-Webhook-Signature"]
        refused: list[tuple[dict[str, str], bytes, str]] = [
            (headers, body + b"\n", secret),
            (headers, body, other),
            (sign("1755681899"), body, secret),
            (sign("1755682501"), body, secret),
            ({**headers, "Service-Webhook-Timestamp": "1755682201"}, body, secret),
            ({**headers, "Service-Webhook-Signature": signature[:-1]}, body, secret),
            ({**headers, "Service-Webhook-Signature": signature.replace("v1", "v2")}, body, secret),
            ({}, body, secret),
        ]
        for case in refused:
            with self.assertRaises(WebhookError):
                verify_webhook(*case, now=now)
        with self.assertRaises(ValueError):
            verify_webhook(headers, body, [], now=now)


if __name__ == "__main__":
    unittest.main()
