-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
-- Where the threads of a run were when it ended (record --stacks, analyzer/order/kept_order.c): made in a store when the
-- first such run is kept; readers cope without.
CREATE TABLE IF NOT EXISTS main.end_nodes (
    run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    node INTEGER NOT NULL,
    parent INTEGER,                -- NULL: an outermost call
    image TEXT,
    build_id TEXT,
    function TEXT,
    file TEXT,
    line INTEGER,
    address INTEGER,
    entry INTEGER,
    flags INTEGER NOT NULL,
    depth INTEGER NOT NULL,
    PRIMARY KEY (run_id, node)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS main.end_iterations (
    run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    node INTEGER NOT NULL,
    depth INTEGER NOT NULL,
    finished INTEGER NOT NULL,
    PRIMARY KEY (run_id, node, depth)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS main.end_threads (
    run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    thread INTEGER NOT NULL,
    pid INTEGER NOT NULL,
    tid INTEGER NOT NULL,
    rank INTEGER,
    label TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    flags INTEGER NOT NULL,
    node INTEGER,
    PRIMARY KEY (run_id, thread)
) WITHOUT ROWID;
