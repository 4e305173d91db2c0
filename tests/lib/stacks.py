#!/usr/bin/env python3
"""Measures how much of their stacks the threads of processes have used.

    tests/lib/stacks.py [--seconds N | --watch] [--most PERCENT] PID|FILE...

A process is a pid, or a file with its pid (.local/run/gateway.pid), which is read again before each sample, so that a process that was
restarted is followed. Without an option there is one sample. --seconds takes samples for N seconds, --watch until SIGTERM or SIGINT.

Of each thread, /proc/PID/task/TID/syscall has the stack pointer, and /proc/PID/smaps the mapping around it. Rss of that mapping is
the deepest that the thread has used its stack, because a touched page stays resident: a sample sees the past of a thread that still
lives. It includes the thread's own variables (TLS), some KiB at the top. A thread whose stack pointer is not readable at the moment
(it runs) is seen by another sample. The threads of a pool are one line: numbers at the end of a name are left out. Huge pages would make
Rss larger than what was used; glibc maps stacks without them.

It prints a line for each process and name of a thread: the number of threads at once, the highest Rss, the size of that stack. The stack
of the main thread grows by itself and is only printed. The exit status is 1 if another thread has used more than --most percent (50) of
its stack, or if a process was never seen. The processes must belong to the caller, or the caller be root.
"""

import argparse
import re
import signal
import sys
import time
from pathlib import Path

INTERVAL_SECONDS = 0.25
MAPPING = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) ", re.ASCII)


def mappings(pid):
    """The mappings of a process: (start, end, size, rss), sizes in KiB."""
    found, start, end, size = [], 0, 0, 0
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if match := MAPPING.match(line):
            start, end = (int(part, 16) for part in match.groups())
        elif line.startswith("Size:"):
            size = int(line.split()[1])
        elif line.startswith("Rss:"):
            found.append((start, end, size, int(line.split()[1])))
    return found


def stack_pointer(task):
    """The stack pointer of a thread that does not run at the moment, otherwise None."""
    for _ in range(20):
        words = (task / "syscall").read_text().split()
        if len(words) >= 3:
            return int(words[-2], 16)
        time.sleep(0.001)
    return None


def sample(pid):
    """The threads of a process: (name, size, rss), in KiB."""
    pointers = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            pointer = stack_pointer(task)
            name = "(main)" if task.name == str(pid) else (task / "comm").read_text().strip()
        except (FileNotFoundError, ProcessLookupError):
            continue  # It has ended.
        if pointer is not None:
            pointers.append((name, pointer))
    # Afterwards: the mapping of a stack that was given to another thread in between is as good.
    areas = mappings(pid)
    threads = []
    for name, pointer in pointers:
        area = next(((size, rss) for start, end, size, rss in areas if start <= pointer < end), None)
        if area:
            threads.append((re.sub(r"[-_ #]?\d+$", "", name), *area))
    return threads


def take(processes, worst):
    """Takes a sample of each process into `worst`, by process and name: [threads at once, rss, size]."""
    for label, source in processes:
        try:
            threads = sample(int(source.read_text() if isinstance(source, Path) else source))
        except (FileNotFoundError, ProcessLookupError, ValueError):
            continue  # It is being restarted.
        count = {}
        for name, size, rss in threads:
            count[name] = count.get(name, 0) + 1
            entry = worst.setdefault((label, name), [0, 0, size])
            # A restarted process may have stacks of another size; the fullest counts.
            if rss * entry[2] > entry[1] * size or not entry[1]:
                entry[1:] = rss, size
            entry[0] = max(entry[0], count[name])


def process(argument):
    """The label and the source of the pid of an argument."""
    if argument.isdecimal():
        return Path(f"/proc/{argument}/comm").read_text().strip(), argument
    return Path(argument).stem, Path(argument)


def main():
    description, _, rest = __doc__.partition("\n")
    parser = argparse.ArgumentParser(description=description, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--watch", action="store_true")
    parser.add_argument("--most", type=float, default=50, metavar="PERCENT")
    parser.add_argument("processes", nargs="+", metavar="PID|FILE")
    arguments = parser.parse_args()
    processes = [process(argument) for argument in arguments.processes]

    ended = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.append(True))
    worst, deadline = {}, time.monotonic() + arguments.seconds
    take(processes, worst)
    while not ended and (arguments.watch or time.monotonic() < deadline):
        time.sleep(INTERVAL_SECONDS)
        take(processes, worst)

    faults = [f"{label}: not seen" for label, _ in processes if not any(seen == label for seen, _ in worst)]
    print(f"{'process':<20} {'thread':<16} {'threads':>7} {'used KiB':>9} {'size KiB':>9} {'used':>5}")
    for (label, name), (count, rss, size) in sorted(worst.items()):
        share = 100 * rss / size
        is_main = name == "(main)"
        print(f"{label:<20} {name:<16} {count:>7} {rss:>9} {size:>9} {'' if is_main else f'{share:.0f} %':>5}")
        if share > arguments.most and not is_main:
            faults.append(f"{label}: {name} has used {rss} of {size} KiB of its stack")
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
