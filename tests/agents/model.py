"""A model as the agent of the ten tasks, by the protocol of OpenAI's chat completions, which most servers of models speak."""

import json
import os
import re
import urllib.request

CALLS_MAX = 40
# What a model is told of a text; the rest is left to the tools.
ENDING = (
    "Work without asking back. At the end, answer without calling a tool, with one line of JSON:"
    ' {"done": whether all of the task is done, "canvas": the handle of the canvas, "report": what you have done, what is missing and why}.'
)
GOALS = {
    "moodboard": "On the canvas {0}, put the six images whose names begin with mood into one Section, as a moodboard.",
    "product_shots": "Make a JPEG of 1080 x 1350 pixels of each of the three images on the canvas {0}, connected to its source.",
    "rename": "On the canvas {0}, rename the 20 notes note 0 to note 19 to final 0 to final 19, and group the first ten and the last ten in "
    "a Section each. Others work there as well: what they change meanwhile stays.",
    "hero": "On the canvas {0}, put an empty image node named Hero between the two images. Nothing may overlap, and nothing else may move.",
    "variations": "On the canvas {0}, make 4 variations of the product with the model sketch, keeping its identity, in one go.",
    "partial": "On the canvas {0}, run {1} with the inputs {2}. Report the keys of the outputs that are kept, then a semicolon, then those "
    "that are refused, then 'charged' and the credits. Do not spend more without a person.",
    "recipe": "On the canvas {0}, run {1} with what is on the canvas. Report the text that it makes, word for word.",
    "within_budget": "On the canvas {0}, generate {1} images of a harbor with the model sketch, as far as the credit goes, in at most two "
    "starts. Report how many are missing, as in '1 are missing'.",
    "summarize": "Summarize the notes on the canvas {0} with their titles, and report which scope a token would need to change it.",
    "hand_over": "You take over unfinished work. Find the run that is or was under way, see it to its end, and bring its canvas into order.",
}


class Model:
    """An agent whose calls a model chooses."""

    def __init__(self, url, name, tools):
        self.url, self.name, self.tools, self.done, self.report = url.rstrip("/"), name, tools, None, ""
        self.functions = [
            {"type": "function", "function": {"name": it["name"], "description": it["description"], "parameters": it["inputSchema"]}}
            for it in tools.list()
        ]

    def __getattr__(self, task):
        if task not in GOALS:
            raise AttributeError(task)
        return lambda *named: self.work(GOALS[task].format(*named))

    def work(self, goal):
        messages = [{"role": "user", "content": f"{goal}\n\n{ENDING}"}]
        for _ in range(CALLS_MAX):
            message = self.complete(messages)
            messages.append(message)
            if not message.get("tool_calls"):
                return self.ended(message["content"])
            for call in message["tool_calls"]:
                content = self.call(call["function"])
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})
        raise AssertionError(f"no end after {CALLS_MAX} answers of the model")

    def call(self, function):
        try:
            arguments = json.loads(function["arguments"] or "{}")
        except ValueError as error:
            return f"the arguments are no JSON: {error}"
        _, told, _ = self.tools.call(function["name"], **arguments)
        return told if isinstance(told, str) else json.dumps(told)

    def complete(self, messages):
        body = {"model": self.name, "messages": messages, "tools": self.functions}
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ.get('MODEL_API_KEY', '')}"}
        request = urllib.request.Request(f"{self.url}/chat/completions", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=300) as response:
            return json.load(response)["choices"][0]["message"]

    def ended(self, content):
        found = re.findall(r"\{.*\}", content)
        assert found, f"no claim at the end: {content}"
        claim = json.loads(found[-1])
        self.done, self.report = claim["done"], claim["report"]
        return claim.get("canvas")
