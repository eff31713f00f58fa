-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
-- The other names of a function's address, a line each; NULL: there are none. Added to a store as schema_additions.sql is.
ALTER TABLE functions ADD COLUMN aliases TEXT;
