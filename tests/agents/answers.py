"""Reads the answers of tools: whatever depends on their form is here."""

import json
import re

LINE = re.compile(r'^\s*(n\d+) (image|video|text|sticky|section)\b[^"\n]*("(?:[^"\\]|\\.)*")', re.MULTILINE)
# A line of a conflict: who has changed the node, and what it is now.
CHANGED = re.compile(r'^(n\d+)(?: by [^":]*)?: (?:image|video|text|sticky|section) ("(?:[^"\\]|\\.)*")', re.MULTILINE)
# A line of `canvas_read` with `since`: the node, whether it is gone, the labels of those who changed it, and what it is now.
SINCE = re.compile(r'^(n\d+)( deleted)?(?: by ([^":\n]*))?(?:: (.*))?$', re.MULTILINE)
LINK = re.compile(r"https?://\S+/d/\S+")


def nodes_of(outline, *kinds):
    """Refs and titles of the nodes of these kinds in an outline. A title is a JSON string, as all is that others have written."""
    return [(ref, json.loads(title)) for ref, kind, title in LINE.findall(outline) if kind in kinds]


def frames_of(outline, kind):
    """Place and size of the nodes of this kind in an outline."""
    found = re.findall(rf'^\s*n\d+ {kind}\b.*?"(?:[^"\\]|\\.)*" (-?\d+),(-?\d+) (\d+)x(\d+)', outline, re.MULTILINE)
    return [tuple(map(int, frame)) for frame in found]


def revision_of(told):
    """The revision that an answer names: of a write, of a start, or of an outline in its first line."""
    if isinstance(told, str):
        return re.search(r"\brevision (\S+)", told)[1].strip(",;)")
    return told.get("revision") or runs_of(told)[-1]["revision"]


def runs_of(told):
    """The works of an answer: one, or `runs`."""
    return told["runs"] if "runs" in told else [told]


def is_over(work):
    return work["status"] in ("succeeded", "failed", "canceled", "expired")


def outputs_of(told):
    """The outputs of all works of an answer."""
    return [output for work in runs_of(told) for output in work["outputs"]]


def steps_of(told, tool):
    """The arguments of the calls of a tool that an answer proposes."""
    steps = told.get("next", []) if isinstance(told, dict) else []
    return [step["arguments"] for step in steps if step["tool"] == tool]


def changed_titles(told):
    """The nodes that others have changed, by ref, of a conflict: the titles that they have now."""
    lines = "\n".join(told["error"]["details"]["changes"])
    return {ref: json.loads(title) for ref, title in CHANGED.findall(lines)}


def changes_of(told):
    """The nodes that changed since a revision: ref, labels of those who changed it, and what it is now."""
    found = SINCE.findall(told)
    return [(ref, set(by.split(", ")) - {""}, now or gone.strip()) for ref, gone, by, now in found]


def links_of(told):
    """The links of a delivery, in the order of its items."""
    return LINK.findall(told if isinstance(told, str) else json.dumps(told))


def uploads_of(told):
    """The commands that send the files."""
    return re.findall(r"curl [^\n\"]+", told)


def uploaded(printed):
    """What a command has printed, which is JSON: the node of the file, and the revision of its canvas."""
    stored = json.loads(printed)
    return stored.get("ref") or stored["node"], stored["canvas"]["revision"]


def waiting_for_a_worker(told):
    """What an answer says of works that no worker is there to do."""
    return [work["waiting"] for work in runs_of(told) if work.get("waiting") and "worker" in work["waiting"]]


def member(told, name):
    """The member with this name, wherever an answer has it."""
    if isinstance(told, dict):
        if name in told:
            return told[name]
        told = list(told.values())
    for part in told if isinstance(told, list) else ():
        if (found := member(part, name)) is not None:
            return found
    return None


def starts_of(transcript):
    """What the starts and cancels of an agent asked for, by handle, as the judge takes it: no record tells it."""
    starts = {}
    for tool, arguments, failed, text in transcript:
        if failed:
            continue
        if tool in ("image_generate", "video_generate"):
            works = runs_of(json.loads(text))
            asked = arguments.get("asked", 0)
            for work in works:
                targets = sum(1 for output in work["outputs"] if output.get("node"))
                starts[work["run"]] = {"targets": targets, "outputs": targets or 1}
                asked -= targets if work is not works[-1] else 0
            # Several starts of a call share what is asked for: the last one has the rest.
            starts[works[-1]["run"]] |= {"asked": asked} | ({"retryOf": arguments["retryOf"]} if "retryOf" in arguments else {})
        elif tool == "run_cancel" and arguments.get("removeTargets"):
            starts.setdefault(arguments["run"], {})["givenUp"] = True
    return starts
