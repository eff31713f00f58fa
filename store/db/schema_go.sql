-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
-- What goroutines did. It follows the other schemas in a new store, and is added to an older one when that is opened for
-- writing; readers cope without: there are no Go programs then.

-- A process whose goroutines are recorded.
CREATE TABLE go_programs (
    process_id INTEGER PRIMARY KEY REFERENCES processes ON DELETE CASCADE,
    run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    image_id INTEGER NOT NULL REFERENCES images,
    version TEXT NOT NULL,         -- "go1.22.12"
    operations INTEGER NOT NULL,   -- 0: only creation, waiting and ends are recorded
    from_start INTEGER NOT NULL,   -- 1: no goroutine is older than from_ns
    from_ns INTEGER NOT NULL
);
CREATE INDEX go_programs_by_run ON go_programs(run_id);

-- The runtime's names of what a goroutine can wait for, by the numbers that GO_EVENT_BLOCK has.
CREATE TABLE go_wait_reasons (
    process_id INTEGER NOT NULL REFERENCES processes ON DELETE CASCADE,
    number INTEGER NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (process_id, number)
) WITHOUT ROWID;

-- The events of a process, in their order. The last row of a process that is being recorded is written anew as it grows.
CREATE TABLE go_segments (
    segment_id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    process_id INTEGER NOT NULL REFERENCES processes ON DELETE CASCADE,
    first_seq INTEGER NOT NULL,
    event_count INTEGER NOT NULL,
    first_ns INTEGER NOT NULL,
    last_ns INTEGER NOT NULL,
    codec INTEGER NOT NULL,
    checksum INTEGER NOT NULL,     -- CRC-32 of data
    functions BLOB NOT NULL,       -- with the number of events that name them, as segments.functions
    data BLOB NOT NULL
);
CREATE UNIQUE INDEX go_segments_by_process ON go_segments(process_id, first_seq);
CREATE INDEX go_segments_by_run ON go_segments(run_id);

-- The places in an image where goroutines are made, communicate or synchronise; shared by runs.
CREATE TABLE go_usages (
    usage_id INTEGER PRIMARY KEY,
    image_id INTEGER NOT NULL REFERENCES images ON DELETE CASCADE,
    function TEXT NOT NULL,
    file TEXT NOT NULL,
    line INTEGER NOT NULL,
    operation INTEGER NOT NULL,    -- enum go_op
    standard INTEGER NOT NULL,     -- 1: in the standard library
    blocks INTEGER NOT NULL        -- 1: a select without a default
);
CREATE INDEX go_usages_by_image ON go_usages(image_id);

CREATE TABLE go_usage_cases (
    usage_id INTEGER NOT NULL REFERENCES go_usages ON DELETE CASCADE,
    number INTEGER NOT NULL,
    line INTEGER NOT NULL,         -- 0: not known
    sends INTEGER NOT NULL,
    PRIMARY KEY (usage_id, number)
) WITHOUT ROWID;
