"""Does the ten tasks with an agent and judges them; see tests/agents/tools."""

import functools
import statistics
import sys
import traceback

import tasks
from ground import SERVICE, Tools
from model import Model

CALLS_MEDIAN_MAX = 12
TOKENS_MEDIAN_MAX = 25_000
# Of the list of tools. The estimate counts its JSON 28 % too high: a list of 6546 has 5114 tokens of o200k_base, of which 6000 are allowed.
LIST_TOKENS_MAX = 7000


def main(only):
    rows, failures = [], []
    for task in tasks.TASKS:
        if only and task.__name__ not in only:
            continue
        try:
            account, agent, canvas = task()
            if not tasks.judge(account, agent, canvas):
                failures.append(f"{task.__name__}: a false claim: {agent.report}")
            rows.append((task.__name__, agent.tools.calls, agent.tools.written, agent.tools.read, agent.done))
        except Exception:
            failures.append(f"{task.__name__}: {traceback.format_exc()}")
            rows.append((task.__name__, 0, 0, 0, "failed"))
    print(f"   {'':14}{'calls':>8}{'written':>10}{'read':>10}   claims done")
    for name, calls, written, read, done in rows:
        print(f"   {name:14}{calls:8}{written:10}{read:10}   {done}")
    listed = Tools(SERVICE["baseUrl"], SERVICE["token"])
    listed.list()
    print(f"   {'list of tools':14}{listed.read:28}")
    if listed.read > LIST_TOKENS_MAX:
        failures.append(f"the list of tools has {listed.read} tokens, more than {LIST_TOKENS_MAX}")
    calls, tokens = (statistics.median(values) for values in zip(*((row[1], row[2] + row[3]) for row in rows)))
    print(f"   {'median':14}{calls:8.0f}{tokens:20.0f}")
    if calls > CALLS_MEDIAN_MAX:
        failures.append(f"a median of {calls} calls, more than {CALLS_MEDIAN_MAX}")
    if tokens > TOKENS_MEDIAN_MAX:
        failures.append(f"a median of {tokens} tokens, more than {TOKENS_MEDIAN_MAX}")
    return failures


if __name__ == "__main__":
    only = sys.argv[1:]
    if only[:1] == ["--model"]:
        _, url, name, *only = only
        tasks.Agent = functools.partial(Model, url, name)
    sys.exit("\n".join(main(only)) or 0)
