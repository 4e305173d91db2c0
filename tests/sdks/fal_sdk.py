"""fal's queue. Its client always builds https URLs, so its simulator serves HTTPS."""

import os

import httpx

from .checks import DATA_URL, FORBIDDEN, KEY, TIMEOUT, VARY, also, fails, fetch, is_mp4, is_png, makes, refused

IMAGE = "fal-ai/flux/schnell"
EDITING = "fal-ai/flux-2-pro/edit"
VARYING = "fal-ai/nano-banana-2/edit"
VEO = "fal-ai/veo3.1"
KLING = "fal-ai/kling-video/v3/pro/image-to-video"


def checks(url):
    # The client has no argument for the host, and reads this variable when it is imported.
    os.environ["FAL_QUEUE_RUN_HOST"] = url.removeprefix("https://")
    import fal_client

    errors = (fal_client.FalClientHTTPError, httpx.HTTPStatusError)

    def run(prompt, endpoint=IMAGE, key=KEY, **more):
        client = fal_client.SyncClient(key=key, default_timeout=TIMEOUT)
        return client.submit(endpoint, {"prompt": prompt, **more}).get()

    def image(*arguments, **more):
        is_png(fetch(run(*arguments, **more)["images"][0]["url"]))

    def video(*arguments, **more):
        is_mp4(fetch(run(*arguments, **more)["video"]["url"]))

    def flagged(*arguments, **more):
        refused(errors, lambda: run(FORBIDDEN, *arguments, **more), "content_policy_violation")

    images = dict(image_urls=[DATA_URL])
    yield makes("image.generate", lambda: image("a kite", image_size="landscape_16_9"))
    yield fails("image.generate", "content", flagged)
    yield makes("image.edit", lambda: image("two kites", EDITING, **images))
    yield fails("image.edit", "content", lambda: flagged(EDITING, **images))
    yield makes("image.variations", lambda: image(VARY, VARYING, **images))
    yield fails("image.variations", "content", lambda: flagged(VARYING, **images))
    yield fails("image.variations", "no image", lambda: refused(errors, lambda: run(VARY, VARYING), "image_urls"))
    one, two = dict(image_url=DATA_URL), dict(first_frame_url=DATA_URL, last_frame_url=DATA_URL)
    for capability, endpoint, more in (
        ("video.generate", VEO, {"duration": "8s"}),
        ("video.generate.fromImage", f"{VEO}/image-to-video", one),
        ("video.generate.fromFrames", f"{VEO}/first-last-frame-to-video", two),
        ("video.generate.fromReferences", f"{VEO}/reference-to-video", {"image_urls": [DATA_URL] * 3}),
    ):
        yield makes(capability, lambda endpoint=endpoint, more=more: video("a kite", endpoint, **more))
        yield fails(capability, "content", lambda endpoint=endpoint, more=more: flagged(endpoint, **more))
    ends = dict(start_image_url=DATA_URL, end_image_url=DATA_URL)
    yield makes("video.generate.fromFrames", lambda: video("a kite", KLING, **ends), "of another model's names")

    out = "Exhausted balance"
    yield also("out of credit", lambda: refused(errors, lambda: run("[[sim:out-of-credit]]"), out))
    yield also("unknown field", lambda: refused(errors, lambda: run("x", nonsense=1), "nonsense"))

    def cancel():
        client = fal_client.SyncClient(key=KEY)
        handle = client.submit(IMAGE, {"prompt": "a kite"})
        handle.cancel()
        assert type(handle.status()).__name__ == "Completed"

    yield also("cancel", cancel)
    yield also("wrong key", lambda: refused(errors, lambda: run("x", key="wrong"), "401"))
