"""Does the twelve tasks with an agent and judges them; see tests/agents/tools."""

import functools
import os
import statistics
import sys
import traceback
from pathlib import Path

import tasks
from ground import SERVICE, Tools
from model import Model

# Of each task, written and read, as estimated; the list of tools is apart.
TOKENS_MAX = 6000
# Over all tasks.
CALLS_MEDIAN_MAX, TOKENS_MEDIAN_MAX = 5, 5000
# Of the list of tools, of which 6000 tokens of o200k_base are allowed. This is the bound of shared/tools/src/catalogue.rs on its own
# estimate, which is at least 12 % too high: a list of 6587 has 5787. tests/mcp/tokens.test.ts counts them.
LIST_TOKENS_MAX = 6700


# Where renders of the boards are put, if at all.
SCREENS = os.environ.get("CANVAS_SCREENS")


def main(only):
    rows, failures = [], []
    chosen = {task: most for task, most in tasks.TASKS.items() if not only or task.__name__ in only}
    for task, most in chosen.items():
        name, agent = task.__name__, None
        try:
            account, agent, canvas = task()
            if SCREENS:
                render = account.file(f"/canvases/{canvas}/render?width=1200", Accept="image/png")
                Path(SCREENS, f"{name}.png").write_bytes(render)
            failures += [f"{name}: {it}" for it in tasks.judge(account, agent, canvas)]
            calls, tokens = agent.tools.calls, agent.tools.written + agent.tools.read
            if calls > most:
                failures.append(f"{name}: {calls} calls, more than {most}: {[call[0] for call in agent.tools.transcript]}")
            if tokens > TOKENS_MAX:
                failures.append(f"{name}: {tokens} tokens, more than {TOKENS_MAX}")
            rows.append((name, calls, most, agent.tools.written, agent.tools.read, agent.done))
        except Exception:
            failures.append(f"{name}: {traceback.format_exc()}")
            rows.append((name, 0, most, 0, 0, "failed"))
    print(f"   {'':14}{'calls':>8}{'at most':>10}{'written':>10}{'read':>10}   claims done")
    for name, calls, most, written, read, done in rows:
        print(f"   {name:14}{calls:8}{most:10}{written:10}{read:10}   {done}")
    listed = Tools(SERVICE["baseUrl"], SERVICE["token"])
    listed.list()
    print(f"   {'list of tools':14}{listed.listed:38}")
    if listed.listed > LIST_TOKENS_MAX:
        failures.append(f"the list of tools has {listed.listed} tokens, more than {LIST_TOKENS_MAX}")
    calls, tokens = (statistics.median(values) for values in zip(*((row[1], row[3] + row[4]) for row in rows)))
    print(f"   {'median':14}{calls:8.0f}{tokens:30.0f}")
    if not only and calls > CALLS_MEDIAN_MAX:
        failures.append(f"a median of {calls} calls, more than {CALLS_MEDIAN_MAX}")
    if not only and tokens > TOKENS_MEDIAN_MAX:
        failures.append(f"a median of {tokens} tokens, more than {TOKENS_MEDIAN_MAX}")
    return failures


if __name__ == "__main__":
    only = sys.argv[1:]
    if only[:1] == ["--model"]:
        _, url, name, *only = only
        tasks.Agent = functools.partial(Model, url, name)
    sys.exit("\n".join(main(only)) or 0)
