-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
-- What format version 1 got after its first stores were written. It follows schema.sql in a new store, and is added to
-- an older one when that is opened for writing; readers cope without it.

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

-- Of losses.count so many were calls, so many returns; both NULL where that is not known.
ALTER TABLE losses ADD COLUMN calls INTEGER;
ALTER TABLE losses ADD COLUMN returns INTEGER;
