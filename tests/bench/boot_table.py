#!/usr/bin/env python3
"""Prints the boot benchmark's table and writes its JSON.

Usage: boot_table.py OUT JSON.  OUT has lulld.txt and qemu.txt, lines "NAME VALUE".
"""

import json
import os
import sys


def read(path):
    with open(path, encoding="utf-8") as handle:
        return {name: int(value) for name, value in
                (line.rsplit(None, 1) for line in handle if line.strip())}


def main():
    ours = read(os.path.join(sys.argv[1], "lulld.txt"))
    peer = read(os.path.join(sys.argv[1], "qemu.txt"))
    print("%-28s %10s %14s" % ("to /init", "lulld", "QEMU microvm"))
    names = [n for n in ours if n.startswith(("exits_to_init", "user_exits_to_init"))]
    for name in names:
        print("%-28s %10d %14s" % (name, ours[name], peer.get(name, "-")))
    ratio = ours["us_to_init"] / peer["us_to_init"]
    print("%-28s %10.2f %14.2f   (ratio, same run)" % ("time", ratio, 1))
    for name in ("vmm_kib", "vmm_private_kib", "vmm_shared_kib", "threads", "binary_kib"):
        print("%-28s %10d" % (name, ours[name]))
    result = {name: ours[name] for name in (
        "exits_to_init", "user_exits_to_init", "vmm_kib", "binary_kib", "threads")}
    result["time_to_init_ratio_qemu_microvm"] = round(ratio, 3)
    result["qemu_exits_to_init"] = peer["exits_to_init"]
    result["qemu_user_exits_to_init"] = peer["user_exits_to_init"]
    with open(sys.argv[2], "w", encoding="utf-8") as handle:
        json.dump(result, handle, indent=1)
        handle.write("\n")


if __name__ == "__main__":
    main()
