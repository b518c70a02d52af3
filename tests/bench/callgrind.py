"""Instruction counts of a program's functions, by valgrind's callgrind.

Callgrind runs threads one at a time and emulates user space only: what the
kernel executes does not count, nor is there a vDSO, so that reading a clock is
a system call.
"""

import glob
import os
import re
import subprocess
import sys
import tempfile

POSITION = re.compile(r"[0-9+*-]")
NAME = re.compile(r"\((\d+)\)(?: (.*))?")


def functions(path):
    """Instructions of each function itself, those that it calls left out."""
    names, costs, function, skip = {}, {}, None, False
    with open(path, encoding="utf-8") as handle:
        for line in handle:
            if line.startswith(("fn=", "cfn=")):
                number, name = NAME.match(line.split("=", 1)[1].strip()).groups()
                if name:
                    names[number] = name
                if line.startswith("fn="):
                    function = names[number]
            elif line.startswith("calls="):
                skip = True  # the next line is what the called function cost
            elif POSITION.match(line):
                if not skip:
                    costs[function] = costs.get(function, 0) + int(line.split()[1])
                skip = False
    return costs


def run(command, marker):
    """functions() of the one thread that ran `marker`."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            ["valgrind", "-q", "--tool=callgrind", "--separate-threads=yes",
             "--callgrind-out-file=" + os.path.join(folder, "out"), *command],
            stdout=subprocess.DEVNULL, check=False)
        if done.returncode:
            sys.exit("bench: %s: exit status %d" % (" ".join(command), done.returncode))
        threads = [functions(path) for path in glob.glob(os.path.join(folder, "out-*"))]
    threads = [t for t in threads if marker in t]
    if len(threads) != 1:
        sys.exit("bench: %d threads of %s ran %s" % (len(threads), command[0], marker))
    return threads[0]


def per_round(command, few, many, marker):
    """
    Instructions of each function for one round: what the program does `few` and
    `many` times, given as its last argument. Starting, ending and warming up are
    in both runs and so in neither result.
    """
    small = run([*command, str(few)], marker)
    large = run([*command, str(many)], marker)
    costs = {name: (cost - small.get(name, 0)) / (many - few) for name, cost in large.items()}
    return {name: cost for name, cost in costs.items() if abs(cost) >= 0.005}


# ---- bench-dispatch ------------------------------------------------------------------

WARM_UP, COUNTED = 20000, 60000  # exits, at least; whole rounds of the stream


def of_stream(program, what, stream, name, marker):
    """Instructions by function for one exit of that class, what replays it left out."""
    command = [program, what, stream, name]
    there_are = int(subprocess.run([*command, "0"], stdout=subprocess.PIPE, check=True).stdout)
    few = -(-WARM_UP // there_are) * there_are
    many = few + -(-COUNTED // there_are) * there_are
    costs = per_round(command, few, many, marker)
    return {f: cost for f, cost in costs.items() if not f.startswith("replay_")}


def exits(program, what, stream, name):
    return of_stream(program, what, stream, name, "vcpu_handle_exit")


def lookup(program, stream):
    return of_stream(program, "lookup", stream, "known", "bench_lookup")["bench_lookup"]
