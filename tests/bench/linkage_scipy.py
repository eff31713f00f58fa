#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""usage: linkage_scipy.py DIR NAME METHOD

SciPy's linkage of a matrix that linkage_bench left: its CPU seconds, as JSON, and whether the rows are the same.
Needs python3-scipy.
"""
import json
import os
import sys
import time

import numpy
from scipy.cluster.hierarchy import linkage

folder, name, method = sys.argv[1:]
distances = numpy.fromfile(os.path.join(folder, f"{name}.distances"))
ours = numpy.fromfile(os.path.join(folder, f"{name}.{method}.rows")).reshape(-1, 4)
begun = time.process_time()
rows = linkage(distances, method)
took = time.process_time() - begun
same = bool((rows[:, [0, 1, 3]] == ours[:, [0, 1, 3]]).all() and (abs(rows[:, 2] - ours[:, 2]) <= 1e-12).all())
print(json.dumps({"seconds": round(took, 3), "same_rows": same}))
