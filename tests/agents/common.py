"""What both forms of the tasks have in common."""

import re

SIZES = {"Square": (1080, 1080), "Portrait": (1080, 1350), "Story": (1080, 1920)}
CAPTION = {"text": "Back to the harbor", "anchor": "bottom", "color": "#ffffff", "background": "#00000080", "size": 6}
RECIPE = "Product hero shot"
BOARD = "Moodboard"
# How a run ends that is canceled at once: on a busy machine it can be over before the cancel arrives.
CANCELED = ("canceled", "succeeded")

NODE = re.compile(r'^\s*n\d+ (image|text) ([\w-]+) "(?:[^"\\]|\\.)*" ([-\d]+),([-\d]+) (\d+)x(\d+)', re.MULTILINE)
NAMED = re.compile(r'^\s*(n\d+) (image|text) (?:([\w-]+) )?"', re.MULTILINE)


def revision_in(outline):
    return re.search(r"revision (\S+)", outline)[1]


def nodes_in(outline):
    """The images and the texts of an outline, by id, or by ref where it has no ids."""
    kinds = {"image": [], "text": []}
    for ref, kind, node in NAMED.findall(outline):
        kinds[kind].append(node or ref)
    return kinds


def image_port(recipe):
    return next(port["key"] for port in recipe["inputs"] if port["nodeType"] == "image")
