#!/usr/bin/env python3
"""Prints the rtc benchmark's table and writes its JSON.

Usage: rtc_table.py OUT JSON.  OUT/VCPUS has what rtc-job.sh left.
"""

import json
import os
import re
import sys

VCPUS = (1, 4)
KVM_EXIT_IO = 2
BIN = re.compile(r"\{ \w+: *(-?\d+) *\} hitcount: *(\d+)")


def read(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as handle:
        return handle.read()


def histogram(folder, name):
    """What was counted between the two marks, by key."""
    before, after = ({int(key): int(count) for key, count in BIN.findall(read(folder, name + mark))}
                     for mark in (".2", ".3"))
    return {key: count - before.get(key, 0) for key, count in after.items()}


class Run:
    def __init__(self, folder, name):
        # For ports: the clock's, and the first mark's own. A kick of the host is no part of a reading.
        self.port_exits = histogram(folder, name + ".user").get(KVM_EXIT_IO, 0) - 1
        self.threads = dict(line.split(None, 1) for line in read(folder, name + ".threads").splitlines())
        futex = histogram(folder, name + ".futex")
        self.futex = {self.threads[str(tid)]: n for tid, n in futex.items()
                      if str(tid) in self.threads and n}
        # Locks only: the clock's own thread sleeps on a condition.
        rows = json.loads(read(folder, name + ".locks"))["locks"]
        self.rtc_waits = sum(row["count"] for row in rows
                             if row["site"].startswith("devices/rtc_cmos"))
        done = re.search(r"LULL:clock-reader \w+ (\d+) (\d+) (\d+)", read(folder, name + ".log"))
        readers, reads, self.us = map(int, done.groups())
        self.reads = readers * reads

    @property
    def futex_total(self):
        return sum(self.futex.values())

    @property
    def us_per_read(self):
        return self.us / self.reads


def show(vcpus, ours, big):
    print("%d vCPUs poll, %d readings%25s %14s" % (vcpus, ours.reads, "lulld", "--big-lock"))
    for thread in sorted({*ours.futex, *big.futex}):
        print("    futex calls of %-20s %12d %14d" % (
            thread, ours.futex.get(thread, 0), big.futex.get(thread, 0)))
    print("    futex calls of the process      %15d %14d" % (ours.futex_total, big.futex_total))
    print("    waits for locks in the clock    %15d %14d" % (ours.rtc_waits, big.rtc_waits))
    print("    time of a reading (ratio)       %15.2f %14.2f" % (
        ours.us_per_read / big.us_per_read, 1))


def main():
    out, path = sys.argv[1:]
    quiet = Run(os.path.join(out, "1"), "quiet")
    per_read = quiet.port_exits / quiet.reads
    print("exits to user space of one reading by Linux: %.2f" % per_read)
    runs = {vcpus: [Run(os.path.join(out, str(vcpus)), name) for name in ("busy", "busy--big-lock")]
            for vcpus in VCPUS}
    result = {"futex_rtc_vcpu": sum(ours.rtc_waits for ours, _ in runs.values()),
              "futex_total": sum(ours.futex_total for ours, _ in runs.values()),
              "futex_total_big_lock": sum(big.futex_total for _, big in runs.values()),
              "user_exits_per_read": round(per_read, 2)}
    for vcpus, (ours, big) in runs.items():
        show(vcpus, ours, big)
        result["futex_%d" % vcpus] = ours.futex_total
        result["futex_%d_big_lock" % vcpus] = big.futex_total
        result["read_time_ratio_%d" % vcpus] = round(ours.us_per_read / big.us_per_read, 3)
    with open(path, "w", encoding="utf-8") as handle:
        json.dump(result, handle, indent=1)
        handle.write("\n")


if __name__ == "__main__":
    main()
