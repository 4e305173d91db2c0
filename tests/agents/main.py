"""Runs the six tasks in one form and judges them; see tests/agents/http."""

import os
import sys

import after
import before
import checks
from client import Client, Cost
from scene import Other, busy_board, messy_board

REQUESTS_MAX = 30
TOKENS_MAX = 25_000

TASKS = ("contract", "moodboard", "formats", "recipe", "rename", "variations", "tidy")


def main(form):
    tasks = {"before": before, "after": after}[form]
    url, token = os.environ["CANVAS_BASE_URL"], os.environ["CANVAS_TOKEN"]
    cost = Cost()
    agent, checker = tasks.Agent(Client(url, token, cost)), Client(url, token)
    for task in TASKS:
        cost.begin(task)
        if task == "rename":
            canvas, nodes = busy_board(checker)
            with Other(Client(url, token), canvas, nodes[len(nodes) // 2 :]) as other:
                agent.rename(canvas, nodes[: len(nodes) // 2], other)
            checks.rename(checker, canvas, nodes, other)
        elif task == "tidy":
            canvas, groups = messy_board(checker)
            agent.tidy(canvas)
            checks.tidy(checker, canvas, groups)
        else:
            result = getattr(agent, task)()
            getattr(checks, task, lambda *_: None)(checker, agent, result)
    report(cost)
    return judge(cost) if form == "after" else []


def report(cost):
    columns = ("requests", "written", "read", "bytes", "409")
    print(f"   {'':12}" + "".join(f"{name:>10}" for name in columns))
    for task, row in cost.rows.items():
        print(f"   {task:12}" + "".join(f"{row[name]:10}" for name in columns))
    print(f"   {'in all':12}" + "".join(f"{cost.total(name):10}" for name in columns))


def judge(cost):
    """What costs too much."""
    requests, tokens = cost.total("requests"), cost.total("written", "read")
    found = [f"a write was answered with 409: {conflict}" for conflict in cost.conflicts]
    if requests > REQUESTS_MAX:
        found.append(f"{requests} requests, more than {REQUESTS_MAX}")
    if tokens > TOKENS_MAX:
        found.append(f"{tokens} tokens written and read, more than {TOKENS_MAX}")
    return found


if __name__ == "__main__":
    sys.exit("\n".join(main(sys.argv[1])) or 0)
