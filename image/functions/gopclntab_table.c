/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/functions/gopclntab_table.h"

#include <string.h>

#define NAME_MAX_BYTES 65536 /* generic functions' names have thousands */
#define PIECES_MAX (1 << 18) /* of a pc table: more than the largest functions have */

/* ---------------------------------------------------------------------------------------------- records */

bool go_table_number(const struct gopclntab *table, uint64_t offset, size_t width, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (offset > table->size || table->size - offset < width)
        return false;
    memcpy(&value, table->data + offset, width);
    *ret_value = value;
    return true;
}

const char *go_table_string(const struct gopclntab *table, uint64_t offset)
{
    size_t left;

    if (offset >= table->size)
        return NULL;
    left = table->size - offset;
    if (!memchr(table->data + offset, '\0', left < NAME_MAX_BYTES ? left : NAME_MAX_BYTES))
        return NULL;
    return (const char *)table->data + offset;
}

size_t go_table_entry_width(const struct gopclntab *table)
{
    return table->layout >= GO_1_18 ? 4 : GO_WORD;
}

bool go_table_function(const struct gopclntab *table, uint64_t index, struct go_function *ret_function)
{
    size_t width = go_table_entry_width(table);
    uint64_t place =
        table->funcs + (table->layout == GO_1_2 ? GO_HEADER_SIZE + GO_WORD : 0) + index * 2 * width;
    uint64_t entry, record, end;

    if (index >= table->count || !go_table_number(table, place, width, &entry) ||
        !go_table_number(table, place + width, width, &record) ||
        !go_table_number(table, place + 2 * width, width, &end))
        return false;
    *ret_function = (struct go_function){table->text + entry, table->text + end, table->funcs + record};
    return true;
}

bool go_table_find(const struct gopclntab *table, uint64_t address, struct go_function *ret_function)
{
    uint64_t low = 0, high = table->count;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        struct go_function function;

        if (!go_table_function(table, middle, &function))
            return false;
        if (function.entry <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low && go_table_function(table, low - 1, ret_function);
}

bool go_table_field(const struct gopclntab *table, const struct go_function *function, unsigned field,
                    uint64_t *ret_value)
{
    return go_table_number(table, function->record + go_table_entry_width(table) + 4 * (uint64_t)field, 4,
                           ret_value);
}

const char *go_table_name(const struct gopclntab *table, const struct go_function *function)
{
    uint64_t offset;

    return go_table_field(table, function, GO_FIELD_NAME, &offset)
               ? go_table_string(table, table->names + offset)
               : NULL;
}

unsigned go_table_fields(const struct gopclntab *table)
{
    return table->layout == GO_1_20 ? 10 : 9;
}

bool go_table_pc_table(const struct gopclntab *table, const struct go_function *function, unsigned index,
                       uint64_t *ret_offset)
{
    uint64_t tables;

    return table->layout >= GO_1_16 && go_table_field(table, function, GO_FIELD_PC_TABLES, &tables) &&
           tables > index && go_table_field(table, function, go_table_fields(table) + index, ret_offset) &&
           *ret_offset != 0;
}

/* ---------------------------------------------------------------------------------------------- pc tables */

static bool unsigned_leb128_at(const struct gopclntab *table, uint64_t *offset, uint32_t *ret_value)
{
    uint32_t value = 0;

    for (unsigned shift = 0; shift < 35; shift += 7) {
        uint64_t byte;

        if (!go_table_number(table, (*offset)++, 1, &byte))
            return false;
        if (shift < 32)
            value |= (uint32_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *ret_value = value;
            return true;
        }
    }
    return false;
}

struct go_walk go_walk_begin(const struct gopclntab *table, uint64_t offset)
{
    return (struct go_walk){.offset = table->pcs + offset, .value = -1};
}

bool go_walk_next(const struct gopclntab *table, struct go_walk *walk)
{
    uint32_t step, length;

    if (walk->pieces == PIECES_MAX || !unsigned_leb128_at(table, &walk->offset, &step) ||
        (step == 0 && walk->pieces > 0) || !unsigned_leb128_at(table, &walk->offset, &length))
        return false;
    walk->pieces++;
    walk->value = (int32_t)((uint32_t)walk->value + (step & 1 ? ~(step >> 1) : step >> 1));
    walk->from = walk->until;
    walk->until += length;
    return true;
}

bool go_table_value(const struct gopclntab *table, uint64_t offset, uint64_t distance, int32_t *ret_value)
{
    struct go_walk walk = go_walk_begin(table, offset);

    while (go_walk_next(table, &walk)) {
        if (distance < walk.until) {
            *ret_value = walk.value;
            return true;
        }
    }
    return false;
}

/* The file that number `number` of the function's unit stands for, or NULL. */
static const char *go_table_file(const struct gopclntab *table, const struct go_function *function,
                                 int32_t number)
{
    uint64_t unit = 0, offset;

    if (table->layout == GO_1_2) {
        uint64_t files; /* its offset lies behind the last function's end */

        if (number <= 0 ||
            !go_table_number(table, GO_HEADER_SIZE + GO_WORD + (2 * table->count + 1) * GO_WORD, 4, &files) ||
            !go_table_number(table, files + 4 * (uint64_t)number, 4, &offset))
            return NULL;
        return go_table_string(table, offset);
    }
    if (number < 0 || !go_table_field(table, function, GO_FIELD_UNIT, &unit) ||
        !go_table_number(table, table->units + 4 * (unit + (uint64_t)number), 4, &offset))
        return NULL;
    return go_table_string(table, table->files + offset);
}

bool go_table_line(const struct gopclntab *table, const struct go_function *function, uint64_t distance,
                   const char **ret_file, unsigned *ret_line)
{
    uint64_t files, lines;
    int32_t number, line;
    const char *file;

    if (!go_table_field(table, function, GO_FIELD_PC_FILE, &files) ||
        !go_table_field(table, function, GO_FIELD_PC_LINE, &lines) ||
        !go_table_value(table, files, distance, &number) || !go_table_value(table, lines, distance, &line))
        return false;
    file = go_table_file(table, function, number);
    if (!file)
        return false;
    *ret_file = file;
    *ret_line = line > 0 ? (unsigned)line : 0;
    return true;
}
