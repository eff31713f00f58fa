-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
-- Tables as earlier versions of tracectl wrote them where schema.sql has them otherwise, for schema_check.c alone.

-- Before returns could be settled.
CREATE TABLE threads (
    thread_id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    process_id INTEGER NOT NULL REFERENCES processes ON DELETE CASCADE,
    tid INTEGER NOT NULL,
    label TEXT NOT NULL,
    name TEXT NOT NULL,
    started_ns INTEGER NOT NULL,
    ended_ns INTEGER,
    returns TEXT NOT NULL CHECK (returns IN ('probed', 'inferred', 'none'))
);

-- Before the feature 'function lists'.
CREATE TABLE functions (
    function_id INTEGER PRIMARY KEY,
    image_id INTEGER NOT NULL REFERENCES images,
    name TEXT NOT NULL,
    demangled TEXT,
    address INTEGER NOT NULL,
    size INTEGER NOT NULL,
    file TEXT,
    line INTEGER,
    UNIQUE (image_id, address, name)
);
-- SQLite adds a column in front of constraints.
CREATE TABLE functions (
    function_id INTEGER PRIMARY KEY,
    image_id INTEGER NOT NULL REFERENCES images,
    name TEXT NOT NULL,
    demangled TEXT,
    address INTEGER NOT NULL,
    size INTEGER NOT NULL,
    file TEXT,
    line INTEGER,
    aliases TEXT,
    UNIQUE (image_id, address, name)
);
CREATE INDEX functions_by_name ON functions(name);

CREATE TABLE segments (
    segment_id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    thread_id INTEGER NOT NULL REFERENCES threads ON DELETE CASCADE,
    first_seq INTEGER NOT NULL,
    event_count INTEGER NOT NULL,
    first_ns INTEGER,
    last_ns INTEGER,
    codec INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    raw_bytes INTEGER NOT NULL,
    data BLOB NOT NULL
);
CREATE TABLE segment_functions (
    segment_id INTEGER NOT NULL REFERENCES segments ON DELETE CASCADE,
    function_id INTEGER NOT NULL,
    calls INTEGER NOT NULL,
    PRIMARY KEY (segment_id, function_id)
) WITHOUT ROWID;

-- What SQLite makes itself: for AUTOINCREMENT, and for the table of FTS5.
CREATE TABLE sqlite_sequence(name, seq);
CREATE TABLE 'function_trigrams_data'(id INTEGER PRIMARY KEY, block BLOB);
CREATE TABLE 'function_trigrams_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID;
CREATE TABLE 'function_trigrams_config'(k PRIMARY KEY, v) WITHOUT ROWID;
