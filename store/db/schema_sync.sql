-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
-- What threads do to each other (record --sync). It follows the other schemas in a new store, and is added to an older one
-- when that is opened for writing; readers cope without: there are no such events then.

-- A process whose doing is recorded.
CREATE TABLE sync_processes (
    process_id INTEGER PRIMARY KEY REFERENCES processes ON DELETE CASCADE,
    run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    from_ns INTEGER NOT NULL,
    from_start INTEGER NOT NULL,   -- 1: nothing is from before from_ns
    library TEXT,                  -- the C library whose locks are seen; NULL: futexes only,
    why_not TEXT                   -- for this reason
);

-- One end of a connection, or a file (struct sync_channel).
CREATE TABLE sync_channels (
    run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    channel INTEGER NOT NULL,      -- from 1 in each run
    kind INTEGER NOT NULL,         -- enum sync_channel_kind
    name TEXT NOT NULL,            -- path of a file, '': not known
    local TEXT NOT NULL,
    remote TEXT NOT NULL,          -- the other end's `local`
    device INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    net INTEGER NOT NULL,          -- network namespace, 0: none
    from_start INTEGER NOT NULL,
    PRIMARY KEY (run_id, channel)
) WITHOUT ROWID;

-- Functions that were declared as sinks and the like.
CREATE TABLE sync_functions (
    run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    number INTEGER NOT NULL,
    role TEXT NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (run_id, number)
) WITHOUT ROWID;

-- The events of a process, in their order. The last row of a process that is being recorded is written anew as it grows.
CREATE TABLE sync_segments (
    segment_id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    process_id INTEGER NOT NULL REFERENCES processes ON DELETE CASCADE,
    first_seq INTEGER NOT NULL,
    event_count INTEGER NOT NULL,
    first_ns INTEGER NOT NULL,
    last_ns INTEGER NOT NULL,
    codec INTEGER NOT NULL,
    checksum INTEGER NOT NULL,     -- CRC-32 of data
    data BLOB NOT NULL
);
CREATE UNIQUE INDEX sync_segments_by_process ON sync_segments(process_id, first_seq);
CREATE INDEX sync_segments_by_run ON sync_segments(run_id);
