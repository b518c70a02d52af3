#!/usr/bin/env python3
"""Counts the instructions of exits, prints them by function and writes the JSON.

Usage: dispatch_table.py PROGRAMS STREAM JSON.  PROGRAMS is the folder of bench-*.
"""

import json
import os
import subprocess
import sys

import callgrind

# What is measured, of which exits, and how they are replayed. An exit that finds
# an index of the clock in the ring of coalesced writes does the work of two.
CLASSES = (
    ("rtc", "rtc", "each-loop"),
    ("rtc_coalesced", "rtc", "loop"),
    ("serial", "serial", "loop"),
    ("virtio_status", "virtio_status", "loop"),
    ("unknown_port", "unknown_port", "loop"),
    ("stream", "stream", "loop"),
)
RUNS = 3
SHOWN = 0.05  # instructions an exit: functions with less are not in the table


def show(title, costs):
    print("%s: %.1f instructions" % (title, sum(costs.values())))
    for function, cost in sorted(costs.items(), key=lambda item: -item[1]):
        if cost >= SHOWN:
            print("    %8.1f  %s" % (cost, function))


def median_of_runs(program, how, stream, exits):
    """How often the serial port's thread must be woken is not the same in every run."""
    runs = [callgrind.exits(program, how, stream, exits) for _ in range(RUNS)]
    return sorted(runs, key=lambda costs: sum(costs.values()))[RUNS // 2]


def clock_read(program):
    """Of libc and the vDSO, by single steps; -1 where processes may not be traced."""
    done = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=False)
    return int(done.stdout) if done.returncode == 0 else -1


def main():
    programs, stream, path = sys.argv[1:]
    program = os.path.join(programs, "bench-dispatch")
    look_up = callgrind.lookup(program, stream)
    print("lookup hit: %.1f instructions" % look_up)
    result = {"lookup_instructions": round(look_up, 1)}
    for name, exits, how in CLASSES:
        costs = median_of_runs(program, how, stream, exits)
        show(name + " exit", costs)
        result[name + "_exit_instructions"] = round(sum(costs.values()), 1)
    result["clock_gettime_instructions"] = clock_read(os.path.join(programs, "bench-clock-steps"))
    print("a clock read, which is not in these: %d instructions"
          % result["clock_gettime_instructions"])
    with open(path, "w", encoding="utf-8") as handle:
        json.dump(result, handle, indent=1)
        handle.write("\n")


if __name__ == "__main__":
    main()
