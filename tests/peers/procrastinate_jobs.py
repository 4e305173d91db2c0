"""Runs jobs that do nothing through procrastinate, for tests/bench --only peers. Prints the jobs per second.

usage: procrastinate_jobs.py <database URL> <jobs> <producers> <slots>
"""

import asyncio
import sys
import time

import procrastinate


async def main(url: str, jobs: int, producers: int, slots: int) -> None:
    # As many connections as our own workers and producers have.
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url, min_size=4, max_size=producers + slots))
    ended = 0

    @app.task(name="nothing")
    async def nothing() -> None:
        nonlocal ended
        ended += 1

    async def produce() -> None:
        for _ in range(jobs // producers):
            await nothing.defer_async()

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        worker = asyncio.create_task(app.run_worker_async(concurrency=slots, install_signal_handlers=False))
        began = time.monotonic()
        await asyncio.gather(*(produce() for _ in range(producers)))
        expected = jobs // producers * producers
        while ended < expected:
            await asyncio.sleep(0.005)
        # The last ones have run; now until they are recorded as done.
        left = "SELECT count(*) AS left FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
        while (await app.connector.execute_query_one_async(left))["left"]:
            await asyncio.sleep(0.005)
        print(expected / (time.monotonic() - began))
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], *map(int, sys.argv[2:5])))
