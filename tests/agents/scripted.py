"""A scripted agent for the ten tasks. It holds a token and knows only what tools tell it: handles, revisions, `next` and `retry`."""


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
            steps = [step for step in told["next"] if step["tool"] == tool]
            assert told["retry"]["when"] == "with_changes" and steps, told
            arguments = steps[-1]["arguments"]
        raise AssertionError(told)

    def claim(self, canvas):
        """Says that the work is done only if the review allows it. Fixes what the review can fix."""
        for _ in range(4):
            review = self.tools.ok("canvas_review", canvas=canvas)
            if not review["next"]:
                break
            self.tools.ok(review["next"][0]["tool"], **review["next"][0]["arguments"])
        self.done = review["doneClaimAllowed"]
        self.report += f" {review['instruction']}"

    def nodes(self, canvas, kind):
        """Refs and titles of the nodes of a kind, and the revision, from the outline."""
        lines = self.tools.ok("canvas_read", canvas=canvas).splitlines()
        revision = lines[0].rsplit(" (", 1)[0].rsplit(" ", 1)[1]
        found = []
        for line in lines[1:]:
            words = line.split(maxsplit=2)
            if len(words) == 3 and words[1] == kind:
                # The title is a JSON string, and so is all that others have written.
                found.append((words[0], words[2].split('"')[1]))
        return found, revision

    def moodboard(self, canvas):
        images = self.tools.ok("find", kind="asset", query="mood")["items"]
        _, revision = self.nodes(canvas, "image")
        names = [f"p{at}" for at in range(len(images))]
        operations = [
            {"type": "node.create", "clientId": name, "node": {"type": "image", "asset": it["handle"], "title": it["name"]}}
            for name, it in zip(names, images)
        ]
        operations.append({"type": "section.create", "clientId": "board", "title": "Moodboard", "nodeIds": names})
        operations.append({"type": "layout.arrange", "sectionId": "board", "layout": "grid", "columns": 3})
        self.follow("canvas_edit", canvas=canvas, revision=revision, operations=operations)
        self.claim(canvas)

    def product_shots(self, canvas):
        sources, revision = self.nodes(canvas, "image")
        for node, title in sources:
            params = {"width": 1080, "height": 1350, "fit": "cover", "format": "jpeg"}
            place = {"near": f"node:{node}", "title": f"{title} 4:5"}
            made = self.tools.ok(
                "action_run", canvas=canvas, revision=revision, action="resize", inputs=[node], params=params, place=place
            )
            revision = made["revision"]
        self.claim(canvas)

    def rename(self, canvas):
        notes, revision = self.nodes(canvas, "text")
        renames = [
            {"type": "node.update", "nodeId": node, "patch": {"title": f"final {at}"}} for at, (node, _) in enumerate(notes)
        ]
        half = len(notes) // 2
        for at, renames in enumerate((renames[:half], renames[half:])):
            arguments = {"canvas": canvas, "revision": revision, "operations": renames}
            while True:
                failed, told, _ = self.tools.call("canvas_edit", **arguments)
                if not failed:
                    break
                assert told["error"]["code"] == "conflict", told
                # What others have changed meanwhile stays theirs.
                theirs = {line.split()[0].rstrip(":") for line in told["error"]["details"]["changes"]}
                mine = [it for it in arguments["operations"] if it["nodeId"] not in theirs]
                arguments = {**arguments, "revision": told["next"][-1]["arguments"]["revision"], "operations": mine}
            revision = told["revision"]
            members = [node for node, _ in notes[:half]] if at == 0 else [node for node, _ in notes[half:]]
            group = [{"type": "section.create", "title": f"Group {at + 1}", "nodeIds": members}]
            revision = self.follow("canvas_edit", canvas=canvas, revision=revision, operations=group)["revision"]
        self.claim(canvas)

    def hero(self, canvas):
        """Between the two images."""
        images, revision = self.nodes(canvas, "image")
        told = self.tools.ok("canvas_read", canvas=canvas, nodes=[node for node, _ in images])
        left, right = sorted(told["nodes"], key=lambda node: node["position"]["x"])
        position = {"x": (left["position"]["x"] + left["width"] + right["position"]["x"]) / 2 - 160, "y": left["position"]["y"]}
        node = {"type": "image", "title": "Hero", "position": position, "metadata": {"placeholder": True}}
        create = [{"type": "node.create", "clientId": "hero", "node": node}]
        self.follow("canvas_edit", canvas=canvas, revision=revision, operations=create)
        self.claim(canvas)

    def variations(self, canvas):
        [(product, _)], revision = self.nodes(canvas, "image")
        call = {
            "canvas": canvas, "revision": revision, "mode": "variations", "model": "sketch", "count": 4,
            "references": [{"handle": product, "role": "identity"}],
        }
        failed, made, _ = self.tools.call("image_generate", **call)
        if failed:
            # The answer is lost: nobody knows what has become of the call. It is repeated as it was.
            made = self.tools.ok("image_generate", **call)
        while made["status"] not in ("succeeded", "canceled"):
            made = self.tools.ok("run_wait", runs=[made["run"]])["runs"][0]
        self.claim(canvas)

    def partial(self, canvas, recipe, inputs):
        _, revision = self.nodes(canvas, "image")
        told = self.tools.fails("recipe_run", canvas=canvas, revision=revision, recipe=recipe, inputs=inputs)
        outputs = told["error"]["details"]["outputs"]
        kept = [it["key"] for it in outputs if it.get("asset")]
        refused = [it["key"] for it in outputs if it["status"] == "failed"]
        self.report = f"kept: {', '.join(kept)}; refused: {', '.join(refused)}; charged {told['error']['details']['charged']}."
        # A new attempt is a new charge: that is a person's choice.
        self.done = False

    def recipe(self, canvas, recipe):
        images, revision = self.nodes(canvas, "image")
        told = self.tools.fails("recipe_run", canvas=canvas, revision=revision, recipe=recipe, inputs={})
        arguments = told["next"][0]["arguments"]
        for port in told["error"]["details"]["ports"]:
            if not port["mayBeLeftOut"]:
                arguments["inputs"][port["key"]] = f"node:{images[0][0]}" if port["type"] == "image" else "A quiet harbor"
        made = self.tools.ok("recipe_run", **arguments)
        while made["status"] not in ("succeeded", "canceled"):
            made = self.tools.ok("run_wait", runs=[made["run"]])["runs"][0]
        self.report = "".join(it["text"] for it in made["outputs"] if "text" in it)
        self.claim(canvas)

    def within_budget(self, canvas, wanted):
        _, revision = self.nodes(canvas, "image")
        made, starts = 0, 0
        while made < wanted and starts < 2:
            call = {
                "canvas": canvas, "revision": revision, "mode": "generate", "model": "sketch", "prompt": f"Harbor {starts}",
                "count": min(4, wanted - made),
            }
            failed, told, _ = self.tools.call("image_generate", **call)
            if failed and told["error"]["code"] == "payment_required":
                fitting = [step for step in told["next"] if step["arguments"].get("model") == "sketch"]
                if not fitting:
                    self.report = f"{told['error']['message']}."
                    break
                told = self.tools.ok("image_generate", **fitting[0]["arguments"])
            made, starts, revision = made + len(told["outputs"]), starts + 1, told["revision"]
        self.report += f" {made} of {wanted} images are made; {wanted - made} are missing."
        self.done = made == wanted

    def summarize(self, canvas):
        status = self.tools.ok("status")
        notes, _ = self.nodes(canvas, "text")
        missing = [] if "canvas_edit" in self.offered else [it for it in ("canvas:write",) if it not in status["scopes"]]
        self.report = f"{len(notes)} notes: {', '.join(title for _, title in notes)}. To change it: {', '.join(missing)}."
        self.done = True

    def hand_over(self):
        """From nothing: which canvas, which run."""
        status = self.tools.ok("status")
        runs = status["running"] or self.tools.ok("find", kind="run", limit=5)["items"]
        ended = self.tools.ok("run_wait", runs=[it["run"] for it in runs])["runs"]
        assert all(it["status"] == "succeeded" for it in ended), ended
        canvas = ended[0]["canvas"]
        self.tools.ok("canvas_read", canvas=canvas)
        self.claim(canvas)
        return canvas
