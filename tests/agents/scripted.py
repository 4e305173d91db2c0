"""A scripted agent for the tasks. It holds a token and knows only what tools tell it: refs, revisions, `next` and `retry`. How it reads
answers is in answers.py."""

import subprocess
import time

from answers import (
    changed_titles,
    changes_of,
    frames_of,
    is_over,
    links_of,
    member,
    nodes_of,
    outputs_of,
    revision_of,
    runs_of,
    steps_of,
    uploaded,
    uploads_of,
    waiting_for_a_worker,
)
from client import tokens

SHOT = [
    {"action": "change-aspect-ratio", "params": {"ratio": "4:5"}},
    {"action": "resize", "params": {"width": 1080, "height": 1350, "fit": "cover"}},
    {"action": "add-text-to-image", "params": {"text": "Back to the harbor", "anchor": "bottom", "format": "jpeg"}},
]
# Seconds between looks at work that no worker is there to do.
PATIENCE = 20


def run_in_shell(tools, command, directory):
    """Runs a command; a model writes it and reads what it prints."""
    run = subprocess.run(command, shell=True, cwd=directory, capture_output=True, text=True)
    tools.written += tokens(command)
    tools.read += tokens(run.stdout + run.stderr)
    return run.stdout + run.stderr


class Agent:
    """What an agent says at the end: `done` is its claim, `report` its words."""

    def __init__(self, tools):
        self.tools, self.done, self.report = tools, None, ""
        self.offered = {tool["name"] for tool in tools.list()}

    def follow(self, tool, **arguments):
        """Calls a tool, and where it says how the call would succeed, that call; at most three times."""
        for _ in range(3):
            failed, told, _ = self.tools.call(tool, **arguments)
            if not failed:
                return told
            steps = steps_of(told, tool)
            assert told["retry"]["when"] == "with_changes" and steps, told
            arguments = steps[-1]
        raise AssertionError(told)

    def claim(self, canvas):
        """Says that the work is done only if the review allows it. Fixes what the review can fix."""
        for _ in range(4):
            review = self.tools.ok("canvas_review", canvas=canvas)
            if not review["next"]:
                break
            self.tools.ok(review["next"][0]["tool"], **review["next"][0]["arguments"])
        self.conclude(review)

    def conclude(self, review):
        self.done = review["doneClaimAllowed"]
        self.report += f" {review['instruction']}"

    def nodes(self, canvas, *kinds, **arguments):
        """Refs and titles of the nodes of these kinds, and the revision, from the outline."""
        outline = self.tools.ok("canvas_read", canvas=canvas, **arguments)
        return nodes_of(outline, *kinds), revision_of(outline)

    def finished(self, told):
        """The works of a start, when all are over."""
        works = runs_of(told)
        while open := [work["run"] for work in works if not is_over(work)]:
            ended = {work["run"]: work for work in runs_of(self.tools.ok("run_wait", runs=open))}
            works = [ended.get(work["run"], work) for work in works]
        return works

    def moodboard(self, canvas, directory, files):
        notes, _ = self.nodes(canvas, "text")
        slots = self.tools.ok(
            "asset_upload", canvas=canvas, files=[{"name": name} for name in files], place={"near": notes[0][0]}
        )
        stored = [uploaded(run_in_shell(self.tools, command, directory)) for command in uploads_of(slots)]
        pictures, revision = [node for node, _ in stored], stored[-1][1]
        board = [
            {"type": "section.create", "clientId": "board", "title": "Moodboard", "nodeIds": pictures},
            {"type": "layout.arrange", "sectionId": "board", "layout": "masonry"},
            {"type": "section.fit", "nodeId": "board"},
        ]
        self.follow("canvas_edit", canvas=canvas, revision=revision, operations=board)
        self.claim(canvas)

    def product_shots(self, canvas):
        sources, revision = self.nodes(canvas, "image")
        made = self.tools.ok(
            "action_run", canvas=canvas, revision=revision, inputs=[ref for ref, _ in sources], steps=SHOT, wait=50
        )
        works = self.finished(made)
        told = self.tools.ok("asset_download", canvas=canvas, items=[it["node"] for it in outputs_of({"runs": works})])
        self.delivered = links_of(told)
        self.report = "\n".join(self.delivered)
        self.claim(canvas)

    def rename(self, canvas):
        notes, revision = self.nodes(canvas, "text")
        operations = [
            {"type": "node.update", "nodeId": ref, "patch": {"title": f"final {at}"}} for at, (ref, _) in enumerate(notes)
        ]
        groups = [f"group-{at + 1}" for at in range(4)]
        for at, group in enumerate(groups):
            members = [ref for ref, _ in notes[at * 5 : at * 5 + 5]]
            operations.append({"type": "section.create", "clientId": group, "title": f"Group {at + 1}", "nodeIds": members})
        operations.append({"type": "layout.arrange", "nodeIds": groups, "layout": "column"})
        arguments = {"revision": revision, "operations": operations}
        while True:
            failed, told, _ = self.tools.call("canvas_edit", **{"canvas": canvas} | arguments)
            if not failed:
                break
            assert told["error"]["code"] == "conflict", told
            [*_, again] = steps_of(told, "canvas_edit")
            # A title that others have given meanwhile stays. What else they have changed stays anyway.
            theirs = {ref for ref, title in changed_titles(told).items() if title != dict(notes)[ref]}
            operations = [it for it in operations if it.get("nodeId") not in theirs]
            arguments = {"revision": again["revision"], "operations": operations} if theirs else again
        self.claim(canvas)

    def hero(self, canvas):
        outline = self.tools.ok("canvas_read", canvas=canvas)
        left, right = frames_of(outline, "image")
        x, revision = (left[0] + left[2] + right[0] - 320) / 2, revision_of(outline)
        node = {"type": "image", "title": "Hero", "position": {"x": x, "y": left[1]}, "metadata": {"placeholder": True}}
        self.follow("canvas_edit", canvas=canvas, revision=revision, operations=[{"type": "node.create", "node": node}])
        self.claim(canvas)

    def variations(self, canvas):
        [(product, _)], revision = self.nodes(canvas, "image")
        call = {
            "canvas": canvas,
            "revision": revision,
            "mode": "variations",
            "model": "sketch",
            "count": 4,
            "references": [{"handle": product, "role": "identity"}],
        }
        failed, made, _ = self.tools.call("image_generate", **call)
        if failed:
            # The answer is lost: nobody knows what has become of the call. It is repeated as it was.
            made = self.tools.ok("image_generate", **call)
        self.finished(made)
        self.claim(canvas)

    def recipe(self, canvas, recipe):
        """A port is missing, which the refusal names; then outputs are refused, which a person has to decide about."""
        images, revision = self.nodes(canvas, "image")
        told = self.tools.fails("recipe_run", canvas=canvas, revision=revision, recipe=recipe, inputs={})
        [arguments, *_] = steps_of(told, "recipe_run")
        for port in told["error"]["details"]["ports"]:
            if not port["mayBeLeftOut"]:
                arguments["inputs"][port["key"]] = f"node:{images[0][0]}" if port["type"] == "image" else "A quiet harbor"
        failed, told, _ = self.tools.call("recipe_run", **arguments)
        if not failed:
            [work] = self.finished(told)
            told = {"error": {"details": work}}
        details = told["error"]["details"]
        kept = [it["key"] for it in details["outputs"] if it.get("asset")]
        refused = [it["key"] for it in details["outputs"] if it["status"] == "failed"]
        charged = details.get("charged", details.get("creditCost"))
        self.report = f"kept: {', '.join(kept)}; refused: {', '.join(refused)}; charged {charged}."
        # A new attempt is a new charge: that is a person's choice.
        self.conclude(self.tools.ok("canvas_review", canvas=canvas))

    def within_budget(self, canvas, wanted, enough):
        """As many as the credit allows. `enough` is what the user answers when told what is missing."""
        _, revision = self.nodes(canvas, "image")
        call = {
            "canvas": canvas,
            "revision": revision,
            "mode": "generate",
            "model": "sketch",
            "prompt": "A harbor",
            "count": wanted,
        }
        works = self.finished(self.follow("image_generate", **call))
        made = len(outputs_of({"runs": works}))
        review = self.tools.ok("canvas_review", canvas=canvas)
        self.report = f"{made} of {wanted} images are made; {wanted - made} are missing."
        self.done = review["doneClaimAllowed"]
        if made < wanted and enough(self):
            for step in (it for it in review["next"] if it["tool"] == "run_cancel"):
                self.tools.ok(step["tool"], **step["arguments"])
            review = self.tools.ok("canvas_review", canvas=canvas)
            self.report += f" {'; '.join(review['delivery']['reasons'])}, as you wished."
            self.conclude(review)

    def summarize(self, canvas):
        status = self.tools.ok("status")
        notes, _ = self.nodes(canvas, "text", text="full")
        missing = [] if "canvas_edit" in self.offered else [it for it in ("canvas:write",) if it not in status["scopes"]]
        self.report = f"{len(notes)} notes: {', '.join(title for _, title in notes)}. To change it: {', '.join(missing)}."
        self.done = True

    def hand_over(self):
        """From nothing: which canvas, what is under way, what is wrong with it."""
        status = self.tools.ok("status")
        runs = self.tools.ok("find", kind="run", limit=5)["items"]
        canvas = next(it["canvas"] for it in runs if "canvas" in it)
        review = self.tools.ok("canvas_review", canvas=canvas)
        self.report = f"found: {sorted({it['code'] for it in review['findings']})}, {review['delivery']['reasons']}."
        # What somebody has canceled is not wanted any more.
        for run in (it["run"] for it in runs if it["status"] == "canceled"):
            self.tools.ok("run_cancel", run=run, removeTargets=True)
        for tool in ("canvas_edit", "canvas_delete"):
            for arguments in steps_of(review, tool):
                self.follow(tool, **arguments)
        self.tools.ok("run_wait", runs=[it["run"] for it in status["running"]])
        self.conclude(self.tools.ok("canvas_review", canvas=canvas))
        return canvas

    def poster(self, canvas):
        """A poster and its teaser, while no worker for videos is there."""
        notes, revision = self.nodes(canvas, "text")
        poster = self.tools.ok(
            "image_generate",
            canvas=canvas,
            revision=revision,
            mode="generate",
            model="sketch",
            prompt="A kite over the sea",
            place={"near": notes[0][0], "title": "Poster"},
        )
        [work] = self.finished(poster)
        teaser = self.tools.ok(
            "video_generate",
            canvas=canvas,
            revision=revision_of(poster),
            model="animatic",
            prompt="The kite rises",
            firstFrame=work["outputs"][0]["node"],
            place={"title": "Teaser"},
        )
        told = teaser
        while not is_over(runs_of(told)[0]):
            if words := waiting_for_a_worker(told):
                self.report = f"The teaser waits: {words[0]}."
                time.sleep(PATIENCE)
            told = self.tools.ok("run_wait", runs=[runs_of(teaser)[0]["run"]])
        self.claim(canvas)

    def changes(self, canvas, since, user):
        """In a session that remembers nothing: what neither it nor the user has changed."""
        known = {self.tools.ok("status")["token"], user}
        theirs = [it for it in changes_of(self.tools.ok("canvas_read", canvas=canvas, since=since)) if it[1] - known]
        who = set().union(*(by for _, by, _ in theirs)) - known
        self.report = "\n".join([f"By {', '.join(sorted(who))}:", *(f"{ref} {now}" for ref, _, now in theirs)])
        self.done = True

    def origin(self, asset):
        told = self.tools.ok("describe", handle=asset)
        self.report = str({name: member(told, name) for name in ("made", "inputs", "usedIn")})
        self.done = True
        return told
