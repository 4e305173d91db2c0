"""Google's Gemini API: images and texts with generateContent, videos with the Interactions API."""

import base64

from google import genai
from google.genai import errors, types

from .checks import FORBIDDEN, KEY, PNG, TIMEOUT, VARY, also, fails, is_mp4, is_png, is_written, makes, refused

IMAGE = "gemini-nano-banana-2.1"
TEXT = "gemini-3.8-flash"
VIDEO = "gemini-omni-1.1-flash"


def checks(url):
    def connect(key=KEY):
        return genai.Client(api_key=key, http_options=types.HttpOptions(base_url=url, timeout=TIMEOUT * 1000))

    client = connect()

    def generate(contents, client=client):
        config = types.GenerateContentConfig(
            response_modalities=["IMAGE"], image_config=types.ImageConfig(aspect_ratio="16:9", image_size="2K")
        )
        return client.models.generate_content(model=IMAGE, contents=contents, config=config)

    def image_of(answer):
        parts = answer.candidates[0].content.parts
        return next(part.inline_data.data for part in parts if part.inline_data and not part.thought)

    def blocked(contents):
        answer = generate(contents)
        assert answer.prompt_feedback.block_reason.name == "PROHIBITED_CONTENT" and not answer.candidates

    image = types.Part.from_bytes(data=PNG, mime_type="image/png")
    yield makes("image.generate", lambda: is_png(image_of(generate("a kite"))))
    yield fails("image.generate", "content", lambda: blocked(FORBIDDEN))
    yield makes("image.edit", lambda: is_png(image_of(generate(["two kites", image, image]))))
    yield fails("image.edit", "content", lambda: blocked([FORBIDDEN, image]))
    yield makes("image.variations", lambda: is_png(image_of(generate([VARY, image]))))
    yield fails("image.variations", "content", lambda: blocked([f"{VARY} {FORBIDDEN}", image]))

    def write(contents):
        return client.models.generate_content(model=TEXT, contents=contents)

    def ended(prompt, reason):
        candidate = write(prompt).candidates[0]
        assert candidate.finish_reason.name == reason, candidate

    asked = "three names for a kite"
    yield makes("text", lambda: is_written(write(asked).text, asked))
    yield makes("text", lambda: is_written(write([asked, image]).text, asked), "of an image")
    yield fails("text", "content, as an answer", lambda: ended(FORBIDDEN, "SAFETY"))
    yield fails("text", "no room for a word", lambda: ended("[[sim:expired-url]]", "MAX_TOKENS"))
    yield from videos(client)

    yield also(
        "rate limited", lambda: refused(errors.APIError, lambda: generate("[[sim:rate-limited]]"), "RESOURCE_EXHAUSTED")
    )
    yield also(
        "wrong key", lambda: refused(errors.APIError, lambda: generate("x", connect("wrong")), "API_KEY_INVALID")
    )


def videos(client):
    """Videos: generated in the background, polled, and downloaded with the key."""

    def start(task, prompt, images):
        frame = {"type": "image", "data": base64.b64encode(PNG).decode(), "mime_type": "image/png"}
        return client.interactions.create(
            model=VIDEO,
            background=True,
            store=True,
            input=[frame] * images + [{"type": "text", "text": prompt}],
            generation_config={"video_config": {"task": task}},
            response_format={"type": "video", "aspect_ratio": "16:9", "duration": "8s", "delivery": "uri"},
        )

    def finished(task, prompt, images):
        made = start(task, prompt, images)
        for _ in range(10):
            if made.status not in ("in_progress", "requires_action"):
                return made
            made = client.interactions.get(made.id)
        raise AssertionError("the interaction does not end")

    def made(task, images):
        done = finished(task, "a kite", images)
        assert done.status == "completed", done
        is_mp4(client.files.download(file=done.output_video.uri))

    def failed(task, images, prompt=FORBIDDEN, words="safety"):
        done = finished(task, prompt, images)
        # The error is reported for the interaction, or for the step of the model's output.
        told = done.errors or [step.error for step in done.steps if step.type == "model_output"]
        assert done.status == "failed" and words in told[0].message, done

    for capability, task, images in (
        ("video.generate", "text_to_video", 0),
        ("video.generate.fromImage", "image_to_video", 1),
        ("video.generate.fromFrames", "image_to_video", 2),
        ("video.generate.fromReferences", "reference_to_video", 3),
    ):
        yield makes(capability, lambda task=task, images=images: made(task, images))
        yield fails(capability, "content", lambda task=task, images=images: failed(task, images))
    yield fails("video.generate", "the work", lambda: failed("text_to_video", 0, "[[sim:work-fails]]", "model failed"))

    def cancel():
        started = start("text_to_video", "a kite", 0)
        assert client.interactions.cancel(started.id).status == "cancelled"
        assert client.interactions.get(started.id).status == "cancelled"

    yield also("cancel a video", cancel)
