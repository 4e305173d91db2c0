"""Replicate's predictions."""

import replicate
from replicate.exceptions import ModelError, ReplicateError

from .checks import DATA_URL, FORBIDDEN, KEY, TIMEOUT, VARY, also, fails, fetch, is_mp4, is_png, makes, refused

IMAGE = "black-forest-labs/flux-2-pro"
LISTING = "black-forest-labs/flux-schnell"
VARYING = "stability-ai/stable-diffusion-3.5-large"
VIDEO = "google/veo-3"


def checks(url):
    client = replicate.Client(api_token=KEY, base_url=url, timeout=TIMEOUT)

    def run(prompt, model=IMAGE, **more):
        return client.run(model, input={"prompt": prompt, **more}, use_file_output=False, wait=False)

    def flagged(*arguments, **more):
        refused(ModelError, lambda: run(FORBIDDEN, *arguments, **more), "E005")

    yield makes("image.generate", lambda: is_png(fetch(run("a kite", aspect_ratio="16:9"))))
    yield makes("image.generate", lambda: is_png(fetch(run("a kite", LISTING)[0])), "in a list")
    yield fails("image.generate", "content", flagged)
    yield makes("image.edit", lambda: is_png(fetch(run("two kites", input_images=[DATA_URL]))))
    yield fails("image.edit", "content", lambda: flagged(input_images=[DATA_URL]))
    yield makes("image.variations", lambda: is_png(fetch(run(VARY, VARYING, image=DATA_URL))))
    yield fails("image.variations", "content", lambda: flagged(VARYING, image=DATA_URL))
    yield makes("video.generate", lambda: is_mp4(fetch(run("a kite", VIDEO, duration=8))))
    yield fails("video.generate", "content", lambda: flagged(VIDEO))
    yield makes("video.generate.fromImage", lambda: is_mp4(fetch(run("a kite", VIDEO, image=DATA_URL))))
    yield fails("video.generate.fromImage", "content", lambda: flagged(VIDEO, image=DATA_URL))

    out = "insufficient credit"
    yield also("out of credit", lambda: refused(ReplicateError, lambda: run("[[sim:out-of-credit]]"), out))
    yield also("unknown input", lambda: refused(ReplicateError, lambda: run("a kite", nonsense=1), "nonsense"))

    def cancel():
        prediction = client.models.predictions.create(IMAGE, input={"prompt": "a kite"})
        prediction.cancel()
        prediction.reload()
        assert prediction.status == "canceled", prediction.status

    yield also("cancel", cancel)
    wrong = replicate.Client(api_token="wrong", base_url=url)
    yield also(
        "wrong key", lambda: refused(ReplicateError, lambda: wrong.run(IMAGE, input={"prompt": "x"}), "Unauthenticated")
    )
