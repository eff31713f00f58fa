#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""usage: tests/golden/make_linkage.py >tests/golden/linkage.txt      (needs python3-scipy)

What SciPy's linkage says of some distance matrices, most of them with many equal distances. A matrix is
    NAME OBJECTS SCALE
    the distances of all pairs in SciPy's order, each to be divided by SCALE
    METHOD, and its rows one after the other: A B DISTANCE SIZE         (a line for each of the seven methods)
"""
import numpy
import scipy
from scipy.cluster.hierarchy import linkage

METHODS = ["single", "complete", "average", "weighted", "centroid", "median", "ward"]
random = numpy.random.default_rng(1)


def pairs(count):
    return count * (count - 1) // 2


def plane(count):
    """Points of a grid, so that distances are Euclidean ones, and equal ones frequent."""
    points = random.integers(0, 6, (count, 2))
    apart = ((points[:, None] - points[None]) ** 2).sum(2)[numpy.triu_indices(count, 1)]
    return numpy.rint(numpy.sqrt(apart) * 1000).astype(int)


def alike(count, kinds):
    """Objects of a few kinds: those of a kind are 0 apart, as threads that do the same are."""
    kind = random.integers(0, kinds, count)
    between = random.integers(1, 8, (kinds, kinds))
    between = numpy.triu(between, 1) + numpy.triu(between, 1).T
    return between[kind[:, None], kind[None]][numpy.triu_indices(count, 1)]


MATRICES = [
    *((f"random_{n}", n, 999983, random.integers(0, 999983, pairs(n))) for n in (2, 3, 4, 10, 50)),
    *((f"zero_or_one_{n}", n, 1, random.integers(0, 2, pairs(n))) for n in (3, 10, 40)),
    *((f"small_integers_{n}", n, 1, random.integers(0, 5, pairs(n))) for n in (5, 10, 40)),
    *((f"sevenths_{n}", n, 7, random.integers(0, 8, pairs(n))) for n in (6, 25, 50)),
    *((f"all_equal_{n}", n, 10, numpy.full(pairs(n), 7)) for n in (2, 3, 10, 33)),
    ("all_zero_12", 12, 1, numpy.zeros(pairs(12), int)),
    *((f"grid_{n}", n, 1000, plane(n)) for n in (10, 45)),
    *((f"alike_{n}", n, 9, alike(n, 5)) for n in (10, 50)),
]

print(f"# made by tests/golden/make_linkage.py with SciPy {scipy.__version__}")
for name, objects, scale, distances in MATRICES:
    print(name, objects, scale)
    print(*distances)
    for method in METHODS:
        rows = linkage(distances / scale, method)
        print(method, *(f"{a:.0f} {b:.0f} {apart!r} {size:.0f}" for a, b, apart, size in rows.tolist()))
