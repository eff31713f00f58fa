-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
-- What recording with a budget needs; added to a store as schema_additions.sql is.

-- Calls that were not recorded although they were seen; NULL: nobody counted them.
ALTER TABLE blind ADD COLUMN calls_missed INTEGER;
CREATE INDEX blind_by_function ON blind(run_id, function_id, from_ns);

-- The functions that a recording with a budget has left out at its end, by binary: the next one begins with them left
-- out.
CREATE TABLE budget_plans (
    build_id TEXT NOT NULL,
    address INTEGER NOT NULL,      -- virtual address in the image's file
    calls_per_second REAL NOT NULL,
    PRIMARY KEY (build_id, address)
) WITHOUT ROWID;
