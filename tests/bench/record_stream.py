#!/usr/bin/env python3
"""Turns a trace of KVM's events into a stream of exits to user space.

Usage: record_stream.py TRACE STREAM.  TRACE is tracefs's text of kvm_pio and kvm_mmio,
of a guest with one vCPU. An access is an exit unless KVM has the device itself, or a
doorbell there; a write that KVM may have batched for the VMM is one too.
"""

import re
import sys

HEAD = """\
# Every exit to user space of a Debian cloud kernel's boot, from its first
# instruction to the power-off: {kernel}, 1 vCPU, PVH, its whole log
# on the serial console, a drive, a network interface and entropy, each of which
# it uses, and the clock. {count} exits, recorded by tests/bench/record; writes that
# KVM may batch for the VMM are among them.
#
#   i PORT WIDTH VALUE...     reads of a port, and what they gave
#   o PORT WIDTH VALUE...     writes
#   r ADDRESS WIDTH VALUE...  reads of memory-mapped registers
#   w ADDRESS WIDTH VALUE...  writes
#   c BYTE...                 for each: "i 3fd 1 60", "o 3f8 1 BYTE" (a character
#                             of the kernel's log)
#
# One exit a value; numbers are hexadecimal. Where WIDTH is WIDTH*COUNT each value
# is that of the first item of a string instruction.
"""
VALUES = 32  # a line

PIO = re.compile(r"kvm_pio: pio_(read|write) at 0x([0-9a-f]+) size (\d) count (\d+) val 0x([0-9a-f]+)")
MMIO = re.compile(r"kvm_mmio: mmio (read|write) len (\d) gpa 0x([0-9a-f]+) val 0x([0-9a-f]+)")
PIC_AND_PIT = {0x20, 0x21, 0xa0, 0xa1, 0x4d0, 0x4d1, 0x40, 0x41, 0x42, 0x43, 0x61}
DEVICES = range(0xc0000000, 0xfec00000)  # the IOAPIC and the local APIC lie above
QUEUE_NOTIFY = 0x050


def accesses(lines):
    """(operation, address, width, value) of each exit."""
    for line in lines:
        if match := PIO.search(line):
            if int(match[2], 16) not in PIC_AND_PIT:
                width = match[3] + ("*" + match[4] if match[4] != "1" else "")
                yield "i" if match[1] == "read" else "o", match[2], width, match[5]
        elif match := MMIO.search(line):
            address = int(match[3], 16)
            if address in DEVICES and not (match[1] == "write" and address & 0xfff == QUEUE_NOTIFY):
                yield "r" if match[1] == "read" else "w", match[3], match[2], match[4]


def lines_of(stream):
    """The stream's lines: equal registers in a row share one."""
    words = []
    i = 0
    while i < len(stream):
        if stream[i] == ("i", "3fd", "1", "60") and stream[i + 1:i + 2] \
                and stream[i + 1][:3] == ("o", "3f8", "1"):
            key, value, step = ("c",), stream[i + 1][3], 2
        else:
            key, value, step = stream[i][:3], stream[i][3], 1
        if tuple(words[:len(key)]) == key and len(words) - len(key) < VALUES:
            words.append(value)
        else:
            if words:
                yield " ".join(words)
            words = [*key, value]
        i += step
    yield " ".join(words)


def main():
    with open(sys.argv[1], encoding="utf-8") as handle:
        stream = list(accesses(handle))
    text = bytes(int(value, 16) for op, address, _, value in stream if (op, address) == ("o", "3f8"))
    kernel = re.search(rb"Linux version (\S+)", text)[1].decode()
    with open(sys.argv[2], "w", encoding="utf-8") as handle:
        handle.write(HEAD.format(kernel=kernel, count=len(stream)))
        for line in lines_of(stream):
            handle.write(line + "\n")
    print("%s: %d exits" % (sys.argv[2], len(stream)))


if __name__ == "__main__":
    main()
