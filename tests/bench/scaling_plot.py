#!/usr/bin/env python3
"""Draws the scaling benchmark's rates as an SVG, for light and dark pages.

Usage: scaling_plot.py JSON SVG
"""

import json
import math
import sys

VCPUS = (1, 2, 4, 8)
SERIES = (  # name in the JSON, suffix, class, label
    ("private", "", "ours", "lull, a device each"),
    ("shared", "", "ours shared", "lull, one device"),
    ("private", "_big_lock", "big", "big lock, a device each"),
    ("shared", "_big_lock", "big shared", "big lock, one device"),
)
WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 56, 196, 64, 52
LABEL_HEIGHT = 17

STYLE = """
.page, .dot { fill: #ffffff; }
text { font: 13px system-ui, sans-serif; fill: #59636e; }
text.title { font-size: 16px; font-weight: 600; fill: #1f2328; }
.grid { stroke: #d1d9e0; }
.line { fill: none; stroke-width: 2.5; stroke-linejoin: round; }
.dot { stroke-width: 2.5; }
.shared { stroke-dasharray: 6 5; }
.ours { stroke: #0969da; }
.big { stroke: #bc4c00; }
text.ours { fill: #0969da; stroke: none; }
text.big { fill: #bc4c00; stroke: none; }
@media (prefers-color-scheme: dark) {
  .page, .dot { fill: #0d1117; }
  text { fill: #9198a1; }
  text.title { fill: #f0f6fc; }
  .grid { stroke: #3d444d; }
  .ours { stroke: #58a6ff; }
  .big { stroke: #f0883e; }
  text.ours { fill: #58a6ff; }
  text.big { fill: #f0883e; }
}
"""


def x_of(vcpus):
    return LEFT + (WIDTH - LEFT - RIGHT) * math.log2(vcpus) / math.log2(VCPUS[-1])


def y_of(rate, top):
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * rate / top


def apart(labels):
    """Moves labels, given as (y, text), so that none covers the next."""
    labels = sorted(labels)
    for i in range(1, len(labels)):
        labels[i][0] = max(labels[i][0], labels[i - 1][0] + LABEL_HEIGHT)
    over = labels[-1][0] - (HEIGHT - BOTTOM)
    for label in labels if over > 0 else []:
        label[0] -= over
    return labels


def draw(result):
    rates = {s[:2]: [result["rate_%s_%d%s" % (s[0], n, s[1])] for n in VCPUS] for s in SERIES}
    top = math.ceil(max(map(max, rates.values())) * 2) / 2
    yield '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img">' % (WIDTH, HEIGHT)
    yield "<title>Exits a second against vCPU threads, lull and a big lock</title>"
    yield "<style>%s</style>" % STYLE
    yield '<rect class="page" width="%d" height="%d" rx="8"/>' % (WIDTH, HEIGHT)
    yield '<text class="title" x="%d" y="28">Exits a second, by vCPU threads</text>' % LEFT
    yield ('<text x="%d" y="47">of virtio registers over a replaying KVM; 1 = one vCPU of lull; '
           'a machine with %d cores</text>' % (LEFT, result["cores"]))
    for step in range(int(top * 2) + 1):
        y = y_of(step / 2, top)
        yield '<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>' % (LEFT, WIDTH - RIGHT, y, y)
        yield '<text x="%d" y="%.1f" text-anchor="end">%g</text>' % (LEFT - 10, y + 4, step / 2)
    for n in VCPUS:
        yield '<text x="%.1f" y="%d" text-anchor="middle">%d</text>' % (x_of(n), HEIGHT - BOTTOM + 22, n)
    yield '<text x="%.1f" y="%d" text-anchor="middle">vCPU threads</text>' % (
        (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10)
    labels = []
    for name, suffix, kind, label in SERIES:
        points = [(x_of(n), y_of(r, top)) for n, r in zip(VCPUS, rates[name, suffix])]
        yield '<polyline class="line %s" points="%s"/>' % (
            kind, " ".join("%.1f,%.1f" % p for p in points))
        for x, y in points:
            yield '<circle class="dot %s" cx="%.1f" cy="%.1f" r="4"/>' % (kind.split()[0], x, y)
        labels.append([points[-1][1] + 4, kind.split()[0], "%s %.2f" % (label, rates[name, suffix][-1])])
    for y, kind, text in apart(labels):
        yield '<text class="%s" x="%d" y="%.1f">%s</text>' % (kind, WIDTH - RIGHT + 12, y, text)
    yield "</svg>"


def main():
    with open(sys.argv[1], encoding="utf-8") as handle:
        result = json.load(handle)
    with open(sys.argv[2], "w", encoding="utf-8") as handle:
        handle.write("\n".join(draw(result)) + "\n")


if __name__ == "__main__":
    main()
