-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
-- Views for people (docs/sql.md). Temporary: each connection that has the virtual tables makes them for itself, so
-- that a store stays readable by an sqlite3 without them.

-- Functions by thread, from what segments and journal say about themselves: nothing is decoded.
CREATE TEMP VIEW IF NOT EXISTS call_counts AS
SELECT c.run_id AS run_id, t.label AS thread, c.thread_id AS thread_id, c.function_id AS function_id,
    coalesce(f.demangled, f.name) AS name, c.calls AS calls
FROM function_calls c
JOIN main.threads t ON t.thread_id = c.thread_id
JOIN main.functions f ON f.function_id = c.function_id;

-- Who called whom. caller is NULL for calls with nothing around them.
CREATE TEMP VIEW IF NOT EXISTS call_graph AS
SELECT e.run_id AS run_id, coalesce(caller.demangled, caller.name) AS caller,
    coalesce(callee.demangled, callee.name) AS callee, sum(e.calls) AS calls,
    e.caller_id AS caller_id, e.function_id AS callee_id
FROM call_edges e
LEFT JOIN main.functions caller ON caller.function_id = e.caller_id
LEFT JOIN main.functions callee ON callee.function_id = e.function_id
GROUP BY e.run_id, e.caller_id, e.function_id;

-- What every thread was inside at the end, outermost call first. Threads whose returns were not recorded are not
-- here: nothing is known of them.
CREATE TEMP VIEW IF NOT EXISTS open_calls AS
SELECT c.run_id AS run_id, t.label AS thread, c.thread_id AS thread_id, c.depth AS depth,
    coalesce(f.demangled, f.name) AS name, c.state AS state, c.function_id AS function_id, c.seq AS seq, c.ns AS ns
FROM main.threads t
CROSS JOIN calls c ON c.thread_id = t.thread_id AND c.state <> 'returned' -- in this order
LEFT JOIN main.functions f ON f.function_id = c.function_id
WHERE t.returns <> 'none'
ORDER BY c.run_id, CAST(t.label AS INTEGER), CAST(ltrim(substr(t.label, instr(t.label, '.') + 1), 'g') AS INTEGER),
    t.label, c.depth;

-- Where each call comes from, for threads recorded with call sites. A constraint on function_id, the function called,
-- finds its segments; one on name has to look at all events.
CREATE TEMP VIEW IF NOT EXISTS event_sites AS
SELECT e.run_id AS run_id, e.thread_id AS thread_id, e.seq AS seq, e.ns AS ns, e.depth AS depth,
    e.function_id AS function_id, coalesce(f.demangled, f.name) AS name,
    s.function_id AS caller_id, coalesce(c.demangled, c.name) AS caller, s.file AS file, s.line AS line,
    i.path AS image, s.address AS address, e.call_site AS site_id
FROM events e
LEFT JOIN main.functions f ON f.function_id = e.function_id
LEFT JOIN call_sites s ON s.site_id = e.call_site
LEFT JOIN main.functions c ON c.function_id = s.function_id
LEFT JOIN main.images i ON i.image_id = s.image_id
WHERE e.kind = 'call';
