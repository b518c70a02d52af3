#!/usr/bin/env python3
"""Counts the instructions of exits, prints them by function and writes the JSON.

Usage: dispatch_table.py PROGRAM STREAM JSON
"""

import json
import subprocess
import sys

import callgrind

CLASSES = ("rtc", "serial", "virtio_status", "unknown_port", "stream")
WARM_UP, COUNTED = 20000, 60000  # exits, at least; whole rounds of what there is
SHOWN = 0.05  # instructions an exit: functions with less are not in the table


def count(program, stream, name, marker):
    """Instructions by function for one exit of this class."""
    there_are = int(subprocess.run([program, stream, name, "0"], stdout=subprocess.PIPE,
                                   check=True).stdout)
    few = -(-WARM_UP // there_are) * there_are
    many = few + -(-COUNTED // there_are) * there_are
    costs = callgrind.per_round([program, stream, name], few, many, marker)
    return {f: cost for f, cost in costs.items() if not f.startswith("replay_")}


def show(title, costs):
    print("%s: %.1f instructions" % (title, sum(costs.values())))
    for function, cost in sorted(costs.items(), key=lambda item: -item[1]):
        if cost >= SHOWN:
            print("    %8.1f  %s" % (cost, function))


def main():
    program, stream, path = sys.argv[1:]
    look_up = count(program, stream, "lookup", "bench_lookup")["bench_lookup"]
    print("lookup hit: %.1f instructions" % look_up)
    result = {"lookup_instructions": round(look_up, 1)}
    for name in CLASSES:
        costs = count(program, stream, name, "vcpu_handle_exit")
        show(name + " exit", costs)
        result[name + "_exit_instructions"] = round(sum(costs.values()), 1)
    with open(path, "w", encoding="utf-8") as handle:
        json.dump(result, handle, indent=1)
        handle.write("\n")


if __name__ == "__main__":
    main()
