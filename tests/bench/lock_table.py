#!/usr/bin/env python3
"""Counts the instructions of a lock, prints them and writes the JSON.

Usage: lock_table.py PROGRAM JSON
"""

import json
import sys

import callgrind

KINDS = {
    "off": "the profiler off",
    "on": "the profiler on",
    "bare": "the same without a profiler",
    "mutex": "libc's mutex",
}


def main():
    program, path = sys.argv[1:]
    cost = {kind: round(sum(callgrind.per_round([program, kind], 1000, 11000, "main").values()))
            for kind in KINDS}
    print("instructions of an uncontended take and release, with the benchmark's own call:")
    for kind, text in KINDS.items():
        print("    %4d  %s" % (cost[kind], text))
    result = {"extra_instructions_off": cost["off"] - cost["bare"],
              "extra_instructions_on": cost["on"] - cost["bare"],
              "extra_instructions_off_over_libc": cost["off"] - cost["mutex"],
              "extra_instructions_on_over_libc": cost["on"] - cost["mutex"]}
    for name, value in result.items():
        print("%-34s %4d" % (name, value))
    with open(path, "w", encoding="utf-8") as handle:
        json.dump(result, handle, indent=1)
        handle.write("\n")


if __name__ == "__main__":
    main()
