-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
-- All tables of a store, format version 1 (docs/trace-format.md): docs/sql.md describes every column; times are
-- nanoseconds of CLOCK_REALTIME. schema_check.c compares the tables of a store with these statements, so a change of
-- them, but for comments and white space, is a new format version.
PRAGMA application_id = 0x74726163; -- "trac"
PRAGMA user_version = 1;            -- the format's version

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
    name_hash INTEGER NOT NULL,    -- CRC-32 of name, its lowest 23 bits
    aliases TEXT                   -- the other names of the address, one per line; NULL: there are none
);
CREATE INDEX functions_by_name ON functions(name_hash);

-- An index of the names of functions by what is inside them, for the virtual table function_names: FTS5's trigrams,
-- without positions (detail = none: a third of the size) and without copies of the names.
CREATE VIRTUAL TABLE function_trigrams USING fts5(
    name, demangled, content = 'functions', content_rowid = 'function_id',
    tokenize = 'trigram', detail = none, columnsize = 0
);

-- One row. Functions with greater numbers are not in the index yet: they get there when a run ends (name_index.c), and
-- readers look at each of them until then.
CREATE TABLE indexed_functions (
    up_to INTEGER NOT NULL
);
INSERT INTO indexed_functions VALUES (0);

-- Places that functions are called from, by the return address; shared by runs.
CREATE TABLE call_sites (
    site_id INTEGER PRIMARY KEY,
    image_id INTEGER NOT NULL REFERENCES images ON DELETE CASCADE,
    address INTEGER NOT NULL,      -- virtual address in the image's file: of the instruction behind the call
    function_id INTEGER,           -- the function that it lies in, NULL: unknown
    file TEXT,
    line INTEGER,
    UNIQUE (image_id, address)
);

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
    cause TEXT NOT NULL,
    calls INTEGER,                 -- of count: the calls, and the returns; both NULL: not known
    returns INTEGER
);
CREATE INDEX losses_by_run ON losses(run_id);

CREATE TABLE blind (
    run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    function_id INTEGER NOT NULL,
    from_ns INTEGER NOT NULL,
    to_ns INTEGER,                 -- NULL: to the end of the run
    cause TEXT NOT NULL,
    calls_per_second REAL,
    calls_missed INTEGER           -- calls that were seen and not recorded, NULL: not counted
);
CREATE INDEX blind_by_run ON blind(run_id);
CREATE INDEX blind_by_function ON blind(run_id, function_id, from_ns);

-- The functions that were excluded when a recording with a budget ended, by binary: the next one begins with them
-- excluded.
CREATE TABLE budget_plans (
    build_id TEXT NOT NULL,
    address INTEGER NOT NULL,      -- virtual address in the image's file
    calls_per_second REAL NOT NULL,
    PRIMARY KEY (build_id, address)
) WITHOUT ROWID;

-- ------------------------------------------------------------------------------------------ process events

-- The events of a process that are not calls, in their order: one sequence for each stream. The last row of a process that
-- is being recorded is written anew as it grows.
CREATE TABLE process_segments (
    segment_id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    process_id INTEGER NOT NULL REFERENCES processes ON DELETE CASCADE,
    stream INTEGER NOT NULL,       -- enum process_stream: 1 goroutines, 2 synchronisation
    first_seq INTEGER NOT NULL,
    event_count INTEGER NOT NULL,
    first_ns INTEGER NOT NULL,
    last_ns INTEGER NOT NULL,
    codec INTEGER NOT NULL,
    checksum INTEGER NOT NULL,     -- CRC-32 of data
    names BLOB NOT NULL,           -- ids of functions (stream 1) or call sites (2), with the number of events that name
                                   -- them, as segments.functions
    data BLOB NOT NULL
);
CREATE UNIQUE INDEX process_segments_by_process ON process_segments(process_id, stream, first_seq);
CREATE INDEX process_segments_by_run ON process_segments(run_id);

-- ------------------------------------------------------------------------------------------ goroutines

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

-- ------------------------------------------------------------------------------------------ synchronisation

-- A process whose synchronisation is recorded (record --sync).
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

-- ------------------------------------------------------------------------------------------ stacks at the end

-- Where the threads of a run were when it ended (record --stacks, analyzer/order/kept_order.c).
CREATE TABLE end_nodes (
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

CREATE TABLE end_iterations (
    run_id INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    node INTEGER NOT NULL,
    depth INTEGER NOT NULL,
    finished INTEGER NOT NULL,
    PRIMARY KEY (run_id, node, depth)
) WITHOUT ROWID;

CREATE TABLE end_threads (
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
