#!/usr/bin/env python3
"""Prints the shell lines of the README's section "By hand, with curl", so that a
test runs exactly what a reader would type.

Usage: readme_calls.py README.md
"""

import re
import sys


def main():
    with open(sys.argv[1], encoding="utf-8") as handle:
        text = handle.read()
    match = re.search(r"^#+ By hand, with curl\n.*?^```sh\n(.*?)^```", text, re.M | re.S)
    if not match:
        sys.exit("README.md has no section with the curl calls")
    print("set -e\n" + match.group(1))


if __name__ == "__main__":
    main()
