#!/usr/bin/env python3
"""Runs vCPU threads against each other, prints the table and writes the JSON.

Usage: scaling_table.py PROGRAMS STREAM JSON.  PROGRAMS is the folder of bench-*.
"""

import itertools
import json
import os
import subprocess
import sys

import callgrind

VCPUS = (1, 2, 4, 8)
EXITS = 10000000  # of all vCPUs together
ROUNDS = 3
POINTER = 1  # instruction
REPEATABLE = "virtio_status"  # no other thread has part in those exits
DEVICES = ("private", "shared")
LOCKS = ("", "big_lock")


def measure(program, vcpus, devices, lock):
    command = [program, str(vcpus), devices, str(EXITS)] + (["big-lock"] if lock else [])
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit("bench: %s: exit status %d" % (" ".join(command), done.returncode))
    return {name: int(value) for name, value in map(str.split, done.stdout.splitlines())}


def name_of(vcpus, devices, lock):
    return "_".join(filter(None, (devices, str(vcpus), lock)))


def request_cost(program, stream):
    """
    Percent of an exit's instructions that are there for requests that are not:
    those of the run loop beyond a loop without any, and the one by which the table
    of look-ups is reached through a pointer, so that it can be poisoned.
    """
    per_exit = sum(callgrind.exits(program, "loop", stream, "stream").values())
    loop = callgrind.exits(program, "loop", stream, REPEATABLE)
    plain = callgrind.exits(program, "plain-loop", stream, REPEATABLE)
    ours = sum(cost for function, cost in loop.items() if function not in plain)
    print("an exit of the stream: %.1f instructions; the loop's own: %.1f, of one without "
          "requests %.1f" % (per_exit, ours, plain["plain_loop"]))
    return 100 * (ours - plain["plain_loop"] + POINTER) / per_exit


def rates(programs):
    """Runs by name; of each the best of some rounds, as other load only slows down."""
    runs = {}
    for _ in range(ROUNDS):
        for devices, lock, vcpus in itertools.product(DEVICES, LOCKS, VCPUS):
            run = measure(os.path.join(programs, "bench-scaling"), vcpus, devices, lock)
            run["rate"] = run["exits"] / run["us"]
            best = runs.setdefault(name_of(vcpus, devices, lock), run)
            most = max(run["waits_above_device"], best["waits_above_device"])
            if run["rate"] > best["rate"]:
                runs[name_of(vcpus, devices, lock)] = best = run
            best["waits_above_device"] = most
    one = runs["private_1"]["rate"]
    for run in runs.values():
        run["rate"] /= one
    return runs


def main():
    programs, stream, path = sys.argv[1:]
    runs = rates(programs)
    print("%-20s %8s %22s %14s %18s" % ("vCPUs", "rate", "waits above a device", "for a device",
                                        "sleeps of threads"))
    for name, run in runs.items():
        print("%-20s %8.2f %22d %14d %18d" % (name, run["rate"], run["waits_above_device"],
                                              run["waits_device"], run["voluntary_switches"]))
    result = {
        "contended_waits_8": sum(runs[name_of(8, d, "")]["waits_above_device"] for d in DEVICES),
        "contended_waits_8_big_lock": runs["private_8_big_lock"]["waits_above_device"],
        "device_waits_8_shared": runs["shared_8"]["waits_device"],
        "work_queue_cost_percent": round(request_cost(
            os.path.join(programs, "bench-dispatch"), stream), 2),
        "cores": os.cpu_count(),
    }
    for name, run in runs.items():
        result["rate_" + name] = round(run["rate"], 3)
    with open(path, "w", encoding="utf-8") as handle:
        json.dump(result, handle, indent=1)
        handle.write("\n")


if __name__ == "__main__":
    main()
