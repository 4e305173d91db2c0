"""Drives the provider simulators with the vendors' SDKs; see tests/sdk. Prints one line a check and exits 1 if one fails."""

import base64
import io
import os
import ssl
import subprocess
import sys
import time
import traceback
import urllib.request

KEY = "sim-key-0123456789abcdef"
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
DATA_URL = "data:image/png;base64," + base64.b64encode(PNG).decode()
TIMEOUT = 30


def is_png(data):
    assert data[:8] == b"\x89PNG\r\n\x1a\n", data[:40]


def is_mp4(data):
    assert data[4:8] == b"ftyp", data[:40]


def fetch(url):
    with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:
        return answer.read()


def refused(kind, call, *words):
    """The call raises `kind`, and its text has every word."""
    try:
        call()
    except kind as error:
        for word in words:
            assert word in str(error) + repr(error.__dict__), f"{word!r} not in {error!r}"
        return
    raise AssertionError(f"not refused with {kind}")


def openai_checks(url, _ca):
    import openai

    client = openai.OpenAI(base_url=url + "/v1", api_key=KEY, max_retries=0, timeout=TIMEOUT)
    model = "gpt-image-2.6-flare"

    def generate(prompt, **more):
        return client.images.generate(model=model, prompt=prompt, **more)

    def edit(prompt):
        files = [("a.png", io.BytesIO(PNG), "image/png"), ("b.png", io.BytesIO(PNG), "image/png")]
        return client.images.edit(model=model, image=files, prompt=prompt)

    yield "generate", lambda: is_png(base64.b64decode(generate("a kite", size="1536x1024").data[0].b64_json))
    yield "edit", lambda: is_png(base64.b64decode(edit("two kites").data[0].b64_json))
    yield "generate, content refused", lambda: refused(
        openai.BadRequestError, lambda: generate("[[sim:content]]"), "moderation_blocked"
    )
    yield "edit, content refused", lambda: refused(openai.BadRequestError, lambda: edit("[[sim:content]]"))
    yield "out of credit", lambda: refused(
        openai.RateLimitError, lambda: generate("[[sim:out-of-credit]]"), "credit_balance_exhausted"
    )
    yield "rate limited", lambda: refused(openai.RateLimitError, lambda: generate("[[sim:rate-limited]]"))
    yield "unknown field", lambda: refused(
        openai.BadRequestError, lambda: generate("a kite", extra_body={"seed": 1}), "seed"
    )
    wrong = openai.OpenAI(base_url=url + "/v1", api_key="wrong", max_retries=0)
    yield "wrong key", lambda: refused(openai.AuthenticationError, lambda: wrong.images.generate(model=model, prompt="x"))
    yield "answer lost", lambda: refused(openai.APIConnectionError, lambda: generate("[[sim:lose-answer]]"))


def google_checks(url, _ca):
    from google import genai
    from google.genai import errors, types

    def client(key):
        return genai.Client(api_key=key, http_options=types.HttpOptions(base_url=url, timeout=TIMEOUT * 1000))

    def generate(contents, key=KEY):
        config = types.GenerateContentConfig(
            response_modalities=["IMAGE"], image_config=types.ImageConfig(aspect_ratio="16:9", image_size="2K")
        )
        # The client closes itself when nothing holds it any more.
        held = client(key)
        return held.models.generate_content(model="gemini-nano-banana-2.1", contents=contents, config=config)

    def picture(answer):
        parts = answer.candidates[0].content.parts
        return next(part.inline_data.data for part in parts if part.inline_data and not part.thought)

    image = types.Part.from_bytes(data=PNG, mime_type="image/png")
    yield "generate", lambda: is_png(picture(generate("a kite")))
    yield "edit", lambda: is_png(picture(generate(["two kites", image, image])))

    def blocked(contents):
        answer = generate(contents)
        assert answer.prompt_feedback.block_reason.name == "PROHIBITED_CONTENT" and not answer.candidates

    yield "generate, content refused", lambda: blocked("[[sim:content]]")
    yield "edit, content refused", lambda: blocked(["[[sim:content]]", image])
    yield "rate limited", lambda: refused(errors.APIError, lambda: generate("[[sim:rate-limited]]"), "RESOURCE_EXHAUSTED")
    yield "wrong key", lambda: refused(errors.APIError, lambda: generate("x", key="wrong"), "API_KEY_INVALID")


def replicate_checks(url, _ca):
    import replicate
    from replicate.exceptions import ModelError, ReplicateError

    client = replicate.Client(api_token=KEY, base_url=url, timeout=TIMEOUT)

    def run(prompt, model="black-forest-labs/flux-2-pro", **more):
        return client.run(model, input={"prompt": prompt, **more}, use_file_output=False, wait=False)

    yield "generate", lambda: is_png(fetch(run("a kite", aspect_ratio="16:9")))
    yield "generate, a list", lambda: is_png(fetch(run("a kite", "black-forest-labs/flux-schnell")[0]))
    yield "edit", lambda: is_png(fetch(run("two kites", input_images=[DATA_URL])))
    veo = "google/veo-3"
    yield "video", lambda: is_mp4(fetch(run("a kite", veo, duration=8)))
    yield "video from an image", lambda: is_mp4(fetch(run("a kite", veo, image=DATA_URL)))
    yield "video, content refused", lambda: refused(ModelError, lambda: run("[[sim:content]]", veo), "E005")
    yield "generate, content refused", lambda: refused(ModelError, lambda: run("[[sim:content]]"), "E005")
    yield "edit, content refused", lambda: refused(ModelError, lambda: run("[[sim:content]]", input_images=[DATA_URL]))
    yield "out of credit", lambda: refused(ReplicateError, lambda: run("[[sim:out-of-credit]]"), "insufficient credit")
    yield "unknown input", lambda: refused(ReplicateError, lambda: run("a kite", nonsense=1), "nonsense")

    def cancel():
        prediction = client.models.predictions.create("black-forest-labs/flux-2-pro", input={"prompt": "a kite"})
        prediction.cancel()
        prediction.reload()
        assert prediction.status == "canceled", prediction.status

    yield "cancel", cancel
    wrong = replicate.Client(api_token="wrong", base_url=url)
    yield "wrong key", lambda: refused(
        ReplicateError, lambda: wrong.run("black-forest-labs/flux-2-pro", input={"prompt": "x"}), "Unauthenticated"
    )


def runway_checks(url, _ca):
    import runwayml

    client = runwayml.RunwayML(api_key=KEY, base_url=url, max_retries=0, timeout=TIMEOUT)

    def make(prompt, **more):
        more.setdefault("model", "gen4_image")
        return finish(client.text_to_image.create(prompt_text=prompt, ratio="1920:1080", **more))

    def film(prompt, **more):
        images = [{"uri": DATA_URL, "position": "first"}, {"uri": DATA_URL, "position": "last"}]
        create = client.image_to_video.create
        return finish(create(model="veo3.1", prompt_text=prompt, prompt_image=images, ratio="1280:720", duration=8, **more))

    def finish(task):
        for _ in range(10):
            task = client.tasks.retrieve(task.id)
            if task.status in ("SUCCEEDED", "FAILED", "CANCELLED"):
                return task
        raise AssertionError("the task does not end")

    references = [{"uri": DATA_URL, "tag": "kite"}]
    yield "generate", lambda: is_png(fetch(make("a kite").output[0]))
    yield "edit", lambda: is_png(fetch(make("@kite twice", model="gen4_image_turbo", reference_images=references).output[0]))

    yield "video from frames", lambda: is_mp4(fetch(film("a kite", audio=False).output[0]))
    text = dict(model="gen4.5", prompt_text="a kite", ratio="1280:720", duration=5)
    yield "video", lambda: is_mp4(fetch(finish(client.text_to_video.create(**text)).output[0]))

    def failed(make=make, **more):
        task = make("[[sim:content]]", **more)
        assert task.status == "FAILED" and task.failure_code == "SAFETY.INPUT.TEXT", task

    yield "generate, content refused", failed
    yield "edit, content refused", lambda: failed(reference_images=references)
    yield "video, content refused", lambda: failed(film)
    yield "out of credit", lambda: refused(runwayml.BadRequestError, lambda: make("[[sim:out-of-credit]]"), "enough credits")
    yield "no reference", lambda: refused(
        runwayml.BadRequestError, lambda: make("x", model="gen4_image_turbo"), "referenceImages"
    )
    yield "rate limited", lambda: refused(runwayml.RateLimitError, lambda: make("[[sim:rate-limited]]"))

    def cancel():
        task = client.text_to_image.create(model="gen4_image", prompt_text="a kite", ratio="1920:1080")
        client.tasks.delete(task.id)
        refused(runwayml.NotFoundError, lambda: client.tasks.retrieve(task.id))

    yield "cancel", cancel
    wrong = runwayml.RunwayML(api_key="wrong", base_url=url, max_retries=0)
    yield "wrong key", lambda: refused(
        runwayml.AuthenticationError,
        lambda: wrong.text_to_image.create(model="gen4_image", prompt_text="x", ratio="1920:1080"),
    )


def fal_checks(url, ca):
    # This client builds https URLs whatever the host: the simulator has a certificate, and its authority is trusted.
    os.environ.update(FAL_QUEUE_RUN_HOST=url.removeprefix("https://"), FAL_KEY=KEY, SSL_CERT_FILE=ca)
    import fal_client
    import httpx

    errors = (fal_client.FalClientHTTPError, httpx.HTTPStatusError)

    def run(prompt, endpoint="fal-ai/flux/schnell", client=None, **more):
        client = client or fal_client.SyncClient(key=KEY, default_timeout=TIMEOUT)
        return client.submit(endpoint, {"prompt": prompt, **more}).get()

    def download(file):
        trusting = ssl.create_default_context(cafile=ca)
        with urllib.request.urlopen(file["url"], timeout=TIMEOUT, context=trusting) as answer:
            return answer.read()

    def picture(result):
        return download(result["images"][0])

    edit = "fal-ai/flux-2-pro/edit"
    yield "generate", lambda: is_png(picture(run("a kite", image_size="landscape_16_9")))
    yield "edit", lambda: is_png(picture(run("two kites", edit, image_urls=[DATA_URL])))
    frames = "fal-ai/veo3.1/first-last-frame-to-video"
    both = dict(first_frame_url=DATA_URL, last_frame_url=DATA_URL)
    yield "video", lambda: is_mp4(download(run("a kite", "fal-ai/veo3.1", duration="8s")["video"]))
    yield "video from frames", lambda: is_mp4(download(run("a kite", frames, **both)["video"]))
    yield "video, content refused", lambda: refused(errors, lambda: run("[[sim:content]]", frames, **both))
    yield "generate, content refused", lambda: refused(errors, lambda: run("[[sim:content]]"))
    yield "edit, content refused", lambda: refused(errors, lambda: run("[[sim:content]]", edit, image_urls=[DATA_URL]))
    yield "out of credit", lambda: refused(errors, lambda: run("[[sim:out-of-credit]]"), "Exhausted balance")
    yield "unknown field", lambda: refused(errors, lambda: run("x", nonsense=1))

    def cancel():
        client = fal_client.SyncClient(key=KEY)
        handle = client.submit("fal-ai/flux/schnell", {"prompt": "a kite"})
        handle.cancel()
        assert type(handle.status()).__name__ == "Completed"

    yield "cancel", cancel
    yield "wrong key", lambda: refused(errors, lambda: run("x", client=fal_client.SyncClient(key="wrong")))


CHECKS = {
    "openai": openai_checks,
    "google": google_checks,
    "replicate": replicate_checks,
    "runway": runway_checks,
    "fal=https": fal_checks,
}


def main():
    command = [sys.argv[1], *CHECKS]
    simulators = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    passed = failed = 0
    try:
        for name, checks in CHECKS.items():
            _, url, ca = simulators.stdout.readline().split()
            for what, check in checks(url, ca):
                start = time.monotonic()
                try:
                    check()
                    passed += 1
                    print(f"ok      {name}: {what} ({time.monotonic() - start:.1f} s)", flush=True)
                except Exception:
                    failed += 1
                    print(f"FAILED  {name}: {what}\n{traceback.format_exc()}", flush=True)
    finally:
        simulators.stdin.close()
        simulators.wait(timeout=TIMEOUT)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


main()
