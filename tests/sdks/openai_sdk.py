"""OpenAI's images and chat completions."""

import base64
import io

import openai

from .checks import DATA_URL, FORBIDDEN, KEY, PNG, TIMEOUT, VARY, also, fails, is_png, is_written, makes, refused

IMAGE = "gpt-image-2.6-flare"
TEXT = "gpt-6-luna"


def checks(url):
    client = openai.OpenAI(base_url=url + "/v1", api_key=KEY, max_retries=0, timeout=TIMEOUT)

    def generate(prompt, **more):
        return client.images.generate(model=IMAGE, prompt=prompt, **more)

    def edit(prompt, images=2):
        files = [(f"{number}.png", io.BytesIO(PNG), "image/png") for number in range(images)]
        return client.images.edit(model=IMAGE, image=files, prompt=prompt)

    def write(content, **more):
        messages = [{"role": "user", "content": content}]
        return client.chat.completions.create(model=TEXT, messages=messages, **more).choices[0]

    def image_of(answer):
        return base64.b64decode(answer.data[0].b64_json)

    content = "moderation_blocked"
    yield makes("image.generate", lambda: is_png(image_of(generate("a kite", size="1536x1024"))))
    yield fails(
        "image.generate", "content", lambda: refused(openai.BadRequestError, lambda: generate(FORBIDDEN), content)
    )
    yield makes("image.edit", lambda: is_png(image_of(edit("two kites"))))
    yield fails("image.edit", "content", lambda: refused(openai.BadRequestError, lambda: edit(FORBIDDEN), content))
    yield makes("image.variations", lambda: is_png(image_of(edit(VARY, 1))))
    yield fails(
        "image.variations",
        "content",
        lambda: refused(openai.BadRequestError, lambda: edit(f"{VARY} {FORBIDDEN}", 1), content),
    )
    yield fails(
        "image.variations",
        "the route of the retired models",
        lambda: refused(openai.NotFoundError, lambda: client.images.create_variation(image=io.BytesIO(PNG))),
    )

    asked = "three names for a kite"
    yield makes("text", lambda: is_written(write(asked, max_completion_tokens=512).message.content, asked))
    parts = [{"type": "text", "text": asked}, {"type": "image_url", "image_url": {"url": DATA_URL}}]
    yield makes("text", lambda: is_written(write(parts).message.content, asked), "of an image")

    def declined():
        message = write(FORBIDDEN).message
        assert message.refusal and message.content is None, message

    def cut_off():
        choice = write("[[sim:expired-url]]")
        assert choice.finish_reason == "length" and not choice.message.content, choice

    yield fails("text", "content, as an answer", declined)
    yield fails("text", "no room for a word", cut_off)
    yield fails(
        "text", "a limit by its older name", lambda: refused(openai.BadRequestError, lambda: write("x", max_tokens=9))
    )

    out = "credit_balance_exhausted"
    yield also("out of credit", lambda: refused(openai.RateLimitError, lambda: generate("[[sim:out-of-credit]]"), out))
    yield also(
        "out of credit, text", lambda: refused(openai.RateLimitError, lambda: write("[[sim:out-of-credit]]"), out)
    )
    yield also("rate limited", lambda: refused(openai.RateLimitError, lambda: generate("[[sim:rate-limited]]")))
    yield also(
        "unknown field",
        lambda: refused(openai.BadRequestError, lambda: generate("a kite", extra_body={"seed": 1}), "seed"),
    )
    wrong = openai.OpenAI(base_url=url + "/v1", api_key="wrong", max_retries=0)
    yield also(
        "wrong key",
        lambda: refused(openai.AuthenticationError, lambda: wrong.images.generate(model=IMAGE, prompt="x")),
    )
    yield also("answer lost", lambda: refused(openai.APIConnectionError, lambda: generate("[[sim:lose-answer]]")))
