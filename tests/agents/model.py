"""A model as the agent of the twelve tasks, by the protocol of OpenAI's chat completions, which most servers of models speak."""

import json
import os
import re
import urllib.request

from answers import links_of
from scripted import run_in_shell

CALLS_MAX = 40
# What a model is told of a text; the rest is left to the tools.
ENDING = (
    "Work without asking back. At the end, answer without calling a tool, with one line of JSON:"
    ' {"done": whether all of the task is done, "canvas": the handle of the canvas, "report": what you have done, what is missing and why}.'
)
GOALS = {
    "moodboard": (
        "On the canvas {0}, put the files {2} into one Section, as a moodboard: whole, in columns that end level. They "
        "lie in the folder in which your shell runs."
    ),
    "product_shots": (
        "Make a JPEG of 1080 x 1350 pixels with the text 'Back to the harbor' of each of the three images on the canvas "
        "{0}, connected to its source, and report a link to each file."
    ),
    "rename": (
        "On the canvas {0}, rename the 20 notes note 0 to note 19 to final 0 to final 19, and group each five in a "
        "Section, in their order. Others work there as well: what they change meanwhile stays."
    ),
    "hero": (
        "On the canvas {0}, put an empty image node named Hero, which is to stay empty, between the two images. Nothing "
        "may overlap, and nothing else may move."
    ),
    "variations": "On the canvas {0}, make 4 variations of the product with the model sketch, keeping its identity, in one go.",
    "recipe": (
        "On the canvas {0}, run {1} with what is on the canvas and the topic 'A quiet harbor'. Report the keys of the "
        "outputs that are kept, then a semicolon, then those that are refused, then 'charged' and the credits. Do not "
        "spend more without a person."
    ),
    "within_budget": (
        "On the canvas {0}, generate {1} images of a harbor with the model sketch, as far as the credit goes, in one "
        "start that says how many are wanted. Report how many are missing, as in '1 are missing'."
    ),
    "summarize": (
        "Summarize the notes on the canvas {0} with their titles, and report which scope a token would need to change it."
    ),
    "hand_over": (
        "You take over unfinished work. Find what is or was under way, see it to its end, and bring its canvas into "
        "order: what was canceled is given up, empty nodes go. Report the codes of the findings, and what was canceled."
    ),
    "poster": (
        "On the canvas {0}, make an image of a kite over the sea with the model sketch, beside the brief, and a teaser "
        "from it with the model animatic. While it waits, report why."
    ),
    "changes": (
        "On the canvas {0}, an earlier session of yours, the user {2} and somebody else have changed nodes since the revision "
        "{1}. Report who that is in a first line, then what they changed, nothing of your own or the user: a line for each node, "
        "which begins with its ref and has its place (x,y), title and text as they are now, quoted as in JSON, or 'deleted'."
    ),
    "origin": "Report where the picture {0} comes from (prompt, model, images that it was made from), and where it is used.",
}
# What the user says when a model has told what is missing.
ENOUGH = "{0} will do: give up the rest, and tell what was given up. The canvas is {1}."


class Model:
    """An agent whose calls a model chooses."""

    def __init__(self, url, name, tools):
        self.url, self.name, self.tools, self.done, self.report = url.rstrip("/"), name, tools, None, ""
        self.functions = [
            {
                "type": "function",
                "function": {"name": it["name"], "description": it["description"], "parameters": it["inputSchema"]},
            }
            for it in tools.list()
        ]

    def __getattr__(self, task):
        if task not in GOALS:
            raise AttributeError(task)
        return lambda *named: self.work(GOALS[task].format(*named))

    def moodboard(self, canvas, directory, files):
        shell = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
        self.functions.append(
            {"type": "function", "function": {"name": "shell", "description": "Runs a command", "parameters": shell}}
        )
        self.directory = directory
        return self.work(GOALS["moodboard"].format(canvas, directory, ", ".join(files)))

    def within_budget(self, canvas, wanted, enough):
        self.work(GOALS["within_budget"].format(canvas, wanted))
        if enough(self):
            report = self.report
            self.work(ENOUGH.format(wanted - 2, canvas))
            self.report = f"{report} {self.report}"

    def product_shots(self, canvas):
        self.work(GOALS["product_shots"].format(canvas))
        self.delivered = links_of(self.report)

    def origin(self, asset):
        self.work(GOALS["origin"].format(asset))
        return json.loads(self.tools.transcript[-1][3])

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
        if function["name"] == "shell":
            return run_in_shell(self.tools, arguments["command"], self.directory)
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
