"""Judges boards by name and random ones; see tests/agents/boards."""

import json
import os
import re
import sys

from boards import NAMED, Ground, Made, is_as_named, properties, random_plan

COUNT = int(os.environ.get("JUDGE_BOARDS", 100))
SEED = os.environ.get("JUDGE_SEED", "1")
# Boards that are made before the workers stand still.
TOGETHER = 25


def main():
    ground, failures, held, again = Ground(), [], 0, 0
    names = list(NAMED)
    with Made(ground, [NAMED[name][0] for name in names]) as boards:
        for name, board in zip(names, boards):
            failures += [f"{name}: {it}" for it in is_as_named(board, *NAMED[name][1:]) + properties(board)]
    print(f"   {len(names)} boards by name")
    for first in range(0, COUNT, TOGETHER):
        seeds = [f"{SEED}:{at}" for at in range(first, min(first + TOGETHER, COUNT))]
        with Made(ground, [random_plan(seed) for seed in seeds]) as boards:
            wrong = {seed: found for seed, board in zip(seeds, boards) if (found := properties(board))}
            held += sum(not board.allowed for board in boards)
            again += sum(board.repairs > 1 for board in boards)
        for seed, found in wrong.items():
            plan, found = smallest(ground, random_plan(seed), found)
            failures.append(f"board {seed}: {'; '.join(found)}\n{json.dumps(plan)}")
    print(f"   {COUNT} random boards of seed {SEED}; {held} of them hold the claim, {again} need more than one repair")
    if COUNT >= 100 and not COUNT / 10 < held < COUNT * 9.9 / 10:
        failures.append("the random boards are too much alike to show anything")
    if again > max(2, COUNT / 50):
        failures.append(f"{again} boards need more than one repair")
    return failures


def smallest(ground, plan, wrong):
    """The plan without all that is not needed for one of the same faults, and its faults."""
    kinds = lambda found: {re.split(r"[:\[(]", it)[0] for it in found}
    for part in ("starts", "lines", "nodes"):
        for at in reversed(range(len(plan[part]))):
            less = plan | {part: plan[part][:at] + plan[part][at + 1 :]}
            with Made(ground, [less]) as [board]:
                found = properties(board)
            if kinds(found) & kinds(wrong):
                plan, wrong = less, found
    return plan, wrong


if __name__ == "__main__":
    sys.exit("\n".join(main()) or 0)
