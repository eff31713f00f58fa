/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Private to gopclntab*.c: the table's parts, and reading them. Every function that reads is told by its
 * result where the table ends before, or says what cannot be: the bytes are untrusted.
 *
 * A function's record (struct _func) is its entry, 4-byte fields (below), {function id, flag, two bytes, of
 * which the last is the number of funcdata}, the offsets of its pc tables, and its funcdata.
 */
#ifndef TRACECTL_IMAGE_FUNCTIONS_GOPCLNTAB_TABLE_H
#define TRACECTL_IMAGE_FUNCTIONS_GOPCLNTAB_TABLE_H

#include "image/functions/sources.h"

enum { GO_HEADER_SIZE = 8, GO_WORD = 8 };

enum go_table_layout { GO_1_2, GO_1_16, GO_1_18, GO_1_20 };

enum go_field {
    GO_FIELD_NAME = 0,
    GO_FIELD_PC_FILE = 4,
    GO_FIELD_PC_LINE = 5,
    GO_FIELD_PC_TABLES = 6, /* their number */
    GO_FIELD_UNIT = 7,
    GO_FIELD_LINE = 8, /* since 1.20 */
};

/* runtime.PCDATA_InlTreeIndex (abi.PCDATA_InlTreeIndex since go 1.21) and FUNCDATA_InlTree */
enum { GO_PCDATA_INLINE_TREE = 2, GO_FUNCDATA_INLINE_TREE = 3 };

struct gopclntab {
    const uint8_t *data;
    size_t size;
    uint64_t address;
    enum go_table_layout layout;
    uint64_t count;                           /* functions */
    uint64_t text;                            /* what entries are relative to: 0 before 1.18 */
    uint64_t names, units, files, pcs, funcs; /* offsets of the parts */
    uint64_t funcdata;                        /* what offsets of funcdata are relative to; 0: not known */
    bool looked_for_funcdata;
};

struct go_function {
    uint64_t entry;
    uint64_t end;
    uint64_t record; /* offset of its struct _func in the table */
};

/* The image's table, looked for once. Borrowed; NULL: there is none that makes sense. */
struct gopclntab *gopclntab_of(struct elf_image *image);

/* The number of `width` bytes at `offset`; false where the table ends before. */
bool go_table_number(const struct gopclntab *table, uint64_t offset, size_t width, uint64_t *ret_value);

/* NULL: none that ends. */
const char *go_table_string(const struct gopclntab *table, uint64_t offset);

/* Bytes of an entry in the list of functions. */
size_t go_table_entry_width(const struct gopclntab *table);

bool go_table_function(const struct gopclntab *table, uint64_t index, struct go_function *ret_function);

/* The last function that begins at or before `address`: empty ones come before. */
bool go_table_find(const struct gopclntab *table, uint64_t address, struct go_function *ret_function);

bool go_table_field(const struct gopclntab *table, const struct go_function *function, unsigned field,
                    uint64_t *ret_value);

const char *go_table_name(const struct gopclntab *table, const struct go_function *function);

/* Offset in a record of what follows the 4-byte fields, as a number of such fields. */
unsigned go_table_fields(const struct gopclntab *table);

/* The offset of pc table `index` (PCDATA_...); false: the function has none. */
bool go_table_pc_table(const struct gopclntab *table, const struct go_function *function, unsigned index,
                       uint64_t *ret_offset);

/* A walk over a pc table: pairs of a zigzag step of the value and a distance, which end with a 0. */
struct go_walk {
    uint64_t offset;
    int32_t value;
    uint64_t from, until; /* distances from the function's entry for which the value holds */
    unsigned pieces;
};

struct go_walk go_walk_begin(const struct gopclntab *table, uint64_t offset);
bool go_walk_next(const struct gopclntab *table, struct go_walk *walk);

/* The value that the pc table at `offset` has at `distance` from the entry. */
bool go_table_value(const struct gopclntab *table, uint64_t offset, uint64_t distance, int32_t *ret_value);

/* File and line of the instruction at `distance` from the function's entry. */
bool go_table_line(const struct gopclntab *table, const struct go_function *function, uint64_t distance,
                   const char **ret_file, unsigned *ret_line);

#endif
