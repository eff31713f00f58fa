-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
-- An index of the names of functions by what is inside them, for the virtual table function_names. It follows the
-- other two schemas in a new store, and is added to an older one when that is opened for writing; readers cope without.

-- FTS5's trigrams, without positions (detail = none: a third of the size) and without copies of the names.
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
