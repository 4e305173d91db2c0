"""Joins the frames of motion.ts to an animated picture: `motion.py DIRECTORY FILE.webp`. At most ten frames a second, and 1.5 MB."""

import json
import pathlib
import sys

from PIL import Image

MOST_BYTES, MILLISECONDS = 1_500_000, 100
directory, target = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
seen = json.loads((directory / "seen.json").read_text())
# The frames that were seen for long enough: of those in between, the last.
kept, since = [], seen[0]
for number, (_, until) in enumerate(zip(seen, seen[1:])):
    if (until - since) * 1000 >= MILLISECONDS:
        kept.append((number, round((until - since) * 1000)))
        since = until
frames = [Image.open(directory / f"{number}.jpg").convert("RGB") for number, _ in kept]
for quality in range(80, 20, -10):
    frames[0].save(target, save_all=True, append_images=frames[1:], duration=[length for _, length in kept], loop=0, quality=quality, method=4)
    if target.stat().st_size <= MOST_BYTES:
        print(f"{len(frames)} frames, {sum(length for _, length in kept) / 1000:.1f} s, quality {quality}, {target.stat().st_size} bytes")
        sys.exit()
sys.exit(f"{target} has {target.stat().st_size} bytes at the lowest quality")
