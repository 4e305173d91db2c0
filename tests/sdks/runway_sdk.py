"""Runway's tasks."""

import runwayml

from .checks import DATA_URL, FORBIDDEN, KEY, TIMEOUT, VARY, also, fails, fetch, is_mp4, is_png, makes, refused

IMAGE = "gen4_image"
EDITING = "gen4_image_turbo"


def checks(url):
    client = runwayml.RunwayML(api_key=KEY, base_url=url, max_retries=0, timeout=TIMEOUT)

    def finish(task):
        for _ in range(10):
            task = client.tasks.retrieve(task.id)
            if task.status in ("SUCCEEDED", "FAILED", "CANCELLED"):
                return task
        raise AssertionError("the task does not end")

    def paint(prompt, model=IMAGE, **more):
        return finish(client.text_to_image.create(model=model, prompt_text=prompt, ratio="1920:1080", **more))

    def video(prompt):
        create = client.text_to_video.create
        return finish(create(model="gen4.5", prompt_text=prompt, ratio="1280:720", duration=5))

    def animate(prompt, images, model):
        create = client.image_to_video.create
        return finish(create(model=model, prompt_text=prompt, prompt_image=images, ratio="1280:720", duration=8))

    def follow(prompt):
        create = client.text_to_video.create
        references = [{"uri": DATA_URL}, {"uri": DATA_URL}]
        return finish(create(model="seedance2", prompt_text=prompt, references=references, ratio="1280:720", duration=5))

    def first(prompt):
        return animate(prompt, DATA_URL, "gen4_turbo")

    def both(prompt):
        images = [{"uri": DATA_URL, "position": position} for position in ("first", "last")]
        return animate(prompt, images, "veo3.1")

    def output(task):
        return fetch(task.output[0])

    def failed(task):
        assert task.status == "FAILED" and task.failure_code == "SAFETY.INPUT.TEXT", task

    references = [{"uri": DATA_URL, "tag": "kite"}]
    yield makes("image.generate", lambda: is_png(output(paint("a kite"))))
    yield fails("image.generate", "content", lambda: failed(paint(FORBIDDEN)))
    yield makes("image.edit", lambda: is_png(output(paint("@kite twice", EDITING, reference_images=references))))
    yield fails("image.edit", "content", lambda: failed(paint(FORBIDDEN, EDITING, reference_images=references)))
    yield makes("image.variations", lambda: is_png(output(paint(VARY, reference_images=references))))
    yield fails("image.variations", "content", lambda: failed(paint(FORBIDDEN, reference_images=references)))
    yield fails(
        "image.variations",
        "no image",
        lambda: refused(runwayml.BadRequestError, lambda: paint(VARY, EDITING), "referenceImages"),
    )
    for capability, make in (
        ("video.generate", video),
        ("video.generate.fromImage", first),
        ("video.generate.fromFrames", both),
        ("video.generate.fromReferences", follow),
    ):
        yield makes(capability, lambda make=make: is_mp4(output(make("a kite"))))
        yield fails(capability, "content", lambda make=make: failed(make(FORBIDDEN)))

    out = "enough credits"
    yield also("out of credit", lambda: refused(runwayml.BadRequestError, lambda: paint("[[sim:out-of-credit]]"), out))
    yield also("rate limited", lambda: refused(runwayml.RateLimitError, lambda: paint("[[sim:rate-limited]]")))

    def cancel():
        task = client.text_to_image.create(model=IMAGE, prompt_text="a kite", ratio="1920:1080")
        client.tasks.delete(task.id)
        refused(runwayml.NotFoundError, lambda: client.tasks.retrieve(task.id))

    yield also("cancel", cancel)
    wrong = runwayml.RunwayML(api_key="wrong", base_url=url, max_retries=0)
    yield also(
        "wrong key",
        lambda: refused(
            runwayml.AuthenticationError,
            lambda: wrong.text_to_image.create(model=IMAGE, prompt_text="x", ratio="1920:1080"),
        ),
    )
