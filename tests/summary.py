#!/usr/bin/env python3
"""Counts single tests in what `meson test` recorded.

Usage: summary.py BUILD.  Reads BUILD/meson-logs/testlog.json, prints each test
program that did not pass with the end of its output, then one line
`N passed, N failed, N skipped`.  A program that reports no single tests counts
as one; a program that ends badly counts at least one failure.
"""

import json
import os
import re
import sys


def count(text):
    """Single tests passed, failed and skipped that a program's output reports."""
    passed = sum(int(n) for n in re.findall(r"^\[  PASSED  \] (\d+) test", text, re.M))
    failed = sum(int(n) for n in re.findall(r"^\[  FAILED  \] (\d+) test", text, re.M))
    skipped = sum(int(n) for n in re.findall(r"^\[  SKIPPED \] (\d+) test", text, re.M))
    for ran, detail in re.findall(r"^Ran (\d+) tests? in .*\n\n(?:OK|FAILED)(?: \((.*)\))?",
                                  text, re.M):
        kinds = dict(re.findall(r"(\w+)=(\d+)", detail or ""))
        bad = int(kinds.get("failures", 0)) + int(kinds.get("errors", 0))
        skip = int(kinds.get("skipped", 0))
        passed += int(ran) - bad - skip
        failed += bad
        skipped += skip
    return passed, failed, skipped


def main():
    log = os.path.join(sys.argv[1], "meson-logs", "testlog.json")
    total = [0, 0, 0]
    with open(log, encoding="utf-8") as handle:
        for line in handle:
            test = json.loads(line)
            text = test.get("stdout", "") + "\n" + test.get("stderr", "")
            numbers = list(count(text))
            if sum(numbers) == 0:
                numbers = {"OK": [1, 0, 0], "SKIP": [0, 0, 1]}.get(test["result"], [0, 1, 0])
            elif test["result"] not in ("OK", "SKIP", "EXPECTEDFAIL") and numbers[1] == 0:
                numbers[1] = 1
            if numbers[1]:
                print("--- %s: %s" % (test["name"], test["result"]))
                print("\n".join(text.splitlines()[-40:]))
            if numbers[2]:
                reasons = re.findall(r"^.*skipped.*$", text, re.M | re.I)[:5]
                print("--- %s: skipped: %s" % (test["name"], "; ".join(reasons)))
            total = [a + b for a, b in zip(total, numbers)]
    print("%d passed, %d failed, %d skipped" % tuple(total))


if __name__ == "__main__":
    main()
