#!/usr/bin/env python3
"""Gates that a compiler does not have: who may include what, how long a file
and a function may be, that a file says what it is, no #if in a function body.

Usage: check_style.py ROOT.  Prints one line per violation; exit status 1 if any.
"""

import os
import re
import subprocess
import sys

MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 100

# The layer table of docs/architecture.md: folder -> prefixes it may include.
DEVICE_CORE = [
    "vmm/%s.h" % name
    for name in (
        "device bus irq doorbell guest_mem event_loop device_thread metrics config limits"
    ).split()
]
API_CORE = ["vmm/%s.h" % name for name in "control config limits metrics event_loop topology".split()]
ALLOWED = {
    "vmm/base": ["vmm/base/"],
    "vmm": ["vmm/"],
    "devices": ["devices/", "vmm/base/"] + DEVICE_CORE,
    "arch-x86": ["arch-x86/", "vmm/"],
    "arch-arm64": ["arch-arm64/", "vmm/"],
    "api": ["api/", "vmm/base/"] + API_CORE,
}
FORBIDDEN = {"arch-x86": ["vmm/control.h"], "arch-arm64": ["vmm/control.h"]}
# File -> prefixes it may include beyond its folder's.
EXCEPTIONS = {
    "vmm/main.c": ["api/", "devices/", "arch-x86/", "arch-arm64/"],
    "arch-x86/board.c": ["devices/"],
    "arch-arm64/board.c": ["devices/"],
}
# Outside header -> where it may be included.
CONFINED = [
    ("linux/kvm.h", r"vmm/kvm[^/]*|vmm/vcpu[^/]*|arch-[^/]*/.*"),
    ("event2/", r"vmm/event_loop\.c|api/server[^/]*\.c"),
    ("json-c/", r"api/.*"),
    ("liburing.h", r"devices/virtio/blk_uring[^/]*\.c"),
]


def tracked(root):
    out = subprocess.run(
        ["git", "-C", root, "ls-files", "-co", "--exclude-standard"],
        capture_output=True, text=True, check=False)
    if out.returncode == 0:
        return [f for f in out.stdout.splitlines() if os.path.isfile(os.path.join(root, f))]
    found = []
    for folder, _, files in os.walk(root):
        found += [os.path.relpath(os.path.join(folder, f), root) for f in files]
    return found


def layer_of(path):
    for folder in sorted(ALLOWED, key=len, reverse=True):
        if path.startswith(folder + "/"):
            return folder
    return None


def check_includes(path, lines):
    layer = layer_of(path)
    for number, line in enumerate(lines, 1):
        match = re.match(r'\s*#\s*include\s+([<"])([^>"]+)', line)
        if not match:
            continue
        kind, name = match.groups()
        for header, where in CONFINED:
            if name.startswith(header) and not re.fullmatch(where, path) \
                    and not path.startswith("tests/"):
                yield number, "%s may not be included here" % name
        if kind == "<" or layer is None:
            continue
        allowed = ALLOWED[layer] + EXCEPTIONS.get(path, [])
        if not any(name.startswith(prefix) for prefix in allowed) \
                or name in FORBIDDEN.get(layer, []):
            yield number, 'layer %s may not include "%s"' % (layer, name)


def check_lengths(path, lines):
    if len(lines) > MAX_FILE_LINES:
        yield len(lines), "%d lines, more than %d" % (len(lines), MAX_FILE_LINES)
    if not path.endswith(".c"):
        return
    start = None
    for number, line in enumerate(lines, 1):
        if line.startswith("{"):
            start = number
        elif line.startswith("}") and start is not None:
            if number - start - 1 > MAX_FUNCTION_LINES:
                yield start, "function of %d lines, more than %d" % (
                    number - start - 1, MAX_FUNCTION_LINES)
            start = None


def check_head(path, lines):
    if path.endswith((".c", ".h")) and not (lines and lines[0].startswith("/*")):
        yield 1, "does not say at its top what it is"


def check_conditionals(path, lines):
    """No #if inside a function body."""
    if not path.endswith(".c") or layer_of(path) is None:
        return
    inside = False
    for number, line in enumerate(lines, 1):
        if line.startswith("{"):
            inside = True
        elif line.startswith("}"):
            inside = False
        elif inside and re.match(r"\s*#\s*if", line):
            yield number, "#if inside a function body"


def main():
    root = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else ".")
    violations = 0
    for path in sorted(tracked(root)):
        try:
            with open(os.path.join(root, path), encoding="utf-8") as handle:
                lines = handle.read().splitlines()
        except (UnicodeDecodeError, OSError):
            continue
        found = []
        is_source = path.endswith((".c", ".h", ".py", ".sh")) or (
            lines and lines[0].startswith("#!"))
        if path.endswith((".c", ".h")):
            found += check_includes(path, lines)
            found += check_head(path, lines)
            found += check_conditionals(path, lines)
        if is_source:
            found += check_lengths(path, lines)
        for number, text in found:
            print("%s:%d: %s" % (path, number, text))
        violations += len(found)
    print("style: %d violations" % violations)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
