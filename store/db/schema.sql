-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
-- The catalog: ordinary tables that any sqlite3 opens. docs/sql.md describes every column; times are nanoseconds
-- of CLOCK_REALTIME. `PRAGMA application_id` is 0x74726163 ("trac"), `PRAGMA user_version` the format's version.

-- Features that a reader must know (incompatible) or may ignore (compatible), one row each.
CREATE TABLE features (
    name TEXT PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('incompatible', 'compatible'))
) WITHOUT ROWID;
-- segments.functions in place of a table of their own, functions.name_hash in place of indexes of names.
INSERT INTO features VALUES ('function lists', 'incompatible');

CREATE TABLE runs (
    run_id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    command TEXT NOT NULL,
    host TEXT NOT NULL,
    kernel TEXT NOT NULL,
    started_ns INTEGER NOT NULL,
    ended_ns INTEGER,              -- NULL: recording, or the recorder died
    exit_status INTEGER,           -- the command's: 0..255, or 128 + signal; NULL: unknown or no command
    options TEXT NOT NULL,
    tool_version TEXT NOT NULL,
    recorder TEXT NOT NULL         -- "BOOT_ID PID START_TICKS": says whether the recorder still lives
);
CREATE INDEX runs_by_name ON runs(name);

CREATE TABLE tags (
    run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (run_id, key)
) WITHOUT ROWID;

CREATE TABLE processes (
    process_id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    pid INTEGER NOT NULL,
    parent_process_id INTEGER,
    rank INTEGER,                  -- MPI rank, NULL where the launcher set none
    exe TEXT NOT NULL,
    argv TEXT NOT NULL,
    started_ns INTEGER NOT NULL,
    ended_ns INTEGER,
    exit_status INTEGER
);
CREATE INDEX processes_by_run ON processes(run_id);

CREATE TABLE threads (
    thread_id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    process_id INTEGER NOT NULL REFERENCES processes ON DELETE CASCADE,
    tid INTEGER NOT NULL,
    label TEXT NOT NULL,           -- "P.T"
    name TEXT NOT NULL,
    started_ns INTEGER NOT NULL,
    ended_ns INTEGER,              -- NULL: its end was not seen
    returns TEXT NOT NULL CHECK (returns IN ('probed', 'inferred', 'settled', 'none'))
);
CREATE INDEX threads_by_run ON threads(run_id, label);
CREATE INDEX threads_by_process ON threads(process_id);

CREATE TABLE images (
    image_id INTEGER PRIMARY KEY,
    path TEXT NOT NULL,
    build_id TEXT NOT NULL,        -- lower-case hex, '' when the image has none
    kind TEXT NOT NULL,            -- 'main', 'library', 'import'
    UNIQUE (path, build_id, kind)
);

CREATE TABLE functions (
    function_id INTEGER PRIMARY KEY,
    image_id INTEGER NOT NULL REFERENCES images,
    name TEXT NOT NULL,            -- as the image spells it; 'NAME@plt' for a PLT stub
    demangled TEXT,                -- NULL: the same as name
    address INTEGER NOT NULL,      -- virtual address in the image's file
    size INTEGER NOT NULL,
    file TEXT,
    line INTEGER,
    name_hash INTEGER NOT NULL     -- CRC-32 of name, its lowest 23 bits
);
CREATE INDEX functions_by_name ON functions(name_hash);

CREATE TABLE segments (
    segment_id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    thread_id INTEGER NOT NULL REFERENCES threads ON DELETE CASCADE,
    first_seq INTEGER NOT NULL,
    event_count INTEGER NOT NULL,
    first_ns INTEGER,              -- NULL: the run keeps no times
    last_ns INTEGER,
    codec INTEGER NOT NULL,
    checksum INTEGER NOT NULL,     -- CRC-32 of data
    raw_bytes INTEGER NOT NULL,    -- 2 * event_count
    functions BLOB NOT NULL,       -- with their calls (docs/trace-format.md); before data, whose pages it does not need
    data BLOB NOT NULL
);
CREATE UNIQUE INDEX segments_by_thread ON segments(thread_id, first_seq);
CREATE INDEX segments_by_run ON segments(run_id);

-- What is younger than a full segment, one row a flush for all threads of a run (docs/trace-format.md).
CREATE TABLE journal (
    journal_id INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    ns INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    data BLOB NOT NULL
);
CREATE INDEX journal_by_run ON journal(run_id);

CREATE TABLE losses (
    loss_id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    thread_id INTEGER,             -- NULL: not known which
    seq INTEGER,                   -- the event of kind 'lost' in the thread's stream
    ns INTEGER NOT NULL,           -- when it was noticed; for 'unfinished': all after this is unknown
    count INTEGER,                 -- events missing, NULL: unknown
    cause TEXT NOT NULL
);
CREATE INDEX losses_by_run ON losses(run_id);

CREATE TABLE blind (
    run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    function_id INTEGER NOT NULL,
    from_ns INTEGER NOT NULL,
    to_ns INTEGER,                 -- NULL: to the end of the run
    cause TEXT NOT NULL,
    calls_per_second REAL
);
CREATE INDEX blind_by_run ON blind(run_id);
