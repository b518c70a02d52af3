#!/usr/bin/env python3
"""Copies an ELF vmlinux with its PVH note made unknown, so that a VMM boots it
by the 64-bit Linux protocol.

Usage: strip_pvh_note.py VMLINUX COPY
"""

import struct
import sys

PT_NOTE = 4
XEN_ELFNOTE_PHYS32_ENTRY = 18


def main():
    with open(sys.argv[1], "rb") as handle:
        image = bytearray(handle.read())
    phoff, = struct.unpack_from("<Q", image, 32)
    phentsize, phnum = struct.unpack_from("<HH", image, 54)
    changed = 0
    for index in range(phnum):
        at = phoff + index * phentsize
        kind, = struct.unpack_from("<I", image, at)
        offset, = struct.unpack_from("<Q", image, at + 8)
        size, = struct.unpack_from("<Q", image, at + 32)
        end = offset + size
        while kind == PT_NOTE and offset + 12 <= end:
            namesz, descsz, note = struct.unpack_from("<III", image, offset)
            name = bytes(image[offset + 12:offset + 12 + namesz])
            if name == b"Xen\0" and note == XEN_ELFNOTE_PHYS32_ENTRY:
                struct.pack_into("<I", image, offset + 8, 0x7fffffff)
                changed += 1
            offset += 12 + (namesz + 3 & ~3) + (descsz + 3 & ~3)
    if not changed:
        sys.exit("%s has no PVH note" % sys.argv[1])
    with open(sys.argv[2], "wb") as handle:
        handle.write(image)


if __name__ == "__main__":
    main()
