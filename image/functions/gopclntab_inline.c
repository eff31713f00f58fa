/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/functions/gopclntab_inline.h"

#include <string.h>

#include "image/elf/pointers.h"

enum {
    MODULEDATA_WORDS = 80,
    SAMPLES_MAX = 64,
    TREE_MAX = 1 << 20,  /* nodes: more are only in crafted files */
    NO_FUNCDATA = -1,    /* as 32 bits */
    NODE_SIZE_1_17 = 20, /* {parent, function id, file, line, name, call site} */
    NODE_SIZE_1_20 = 16, /* {function id, name, call site, line} */
    NODE_NAME_1_17 = 12, /* where the name's offset is; the call site's distance follows */
    NODE_NAME_1_20 = 4,
};

/* The address of the function's inline tree, or 0. */
static uint64_t tree_of(struct elf_image *image, const struct gopclntab *table,
                        const struct go_function *function)
{
    uint64_t tables, numbers, place, value;

    if (table->layout < GO_1_16 || !go_table_field(table, function, GO_FIELD_PC_TABLES, &tables) ||
        !go_table_field(table, function, go_table_fields(table) - 1, &numbers) ||
        (numbers >> 24) <= GO_FUNCDATA_INLINE_TREE)
        return 0;
    place = function->record + go_table_entry_width(table) + 4 * (go_table_fields(table) + tables);
    if (table->layout == GO_1_16) { /* pointers, aligned in memory */
        place += -(table->address + place) & (GO_WORD - 1);
        return image_pointer_at(image, table->address + place + GO_FUNCDATA_INLINE_TREE * GO_WORD, &value)
                   ? value
                   : 0;
    }
    if (!go_table_number(table, place + 4 * GO_FUNCDATA_INLINE_TREE, 4, &value) ||
        value == (uint32_t)NO_FUNCDATA)
        return 0;
    return table->funcdata + value;
}

/* Node `index` of the tree at `tree`. */
static bool node_at(struct elf_image *image, const struct gopclntab *table, uint64_t tree, int32_t index,
                    const char **ret_name, uint64_t *ret_call_site)
{
    bool short_node = table->layout == GO_1_20;
    size_t size = short_node ? NODE_SIZE_1_20 : NODE_SIZE_1_17, available;
    const uint8_t *bytes;
    uint32_t fields[2];
    const char *name;

    if (index < 0 || index > TREE_MAX)
        return false;
    bytes = elf_image_bytes(image, tree + size * (uint64_t)index, &available);
    if (!bytes || available < size)
        return false;
    memcpy(fields, bytes + (short_node ? NODE_NAME_1_20 : NODE_NAME_1_17), sizeof(fields));
    if (table->names + fields[0] >= table->units)
        return false;
    name = go_table_string(table, table->names + fields[0]);
    if (!name || !*name || (fields[0] && name[-1]))
        return false;
    *ret_name = name;
    *ret_call_site = fields[1];
    return true;
}

/* ---------------------------------------------------------------------------------------------- funcdata */

struct sample {
    struct go_function function;
    int32_t node;
};

/* Functions with an inlined instruction, spread over the table. */
static size_t take_samples(const struct gopclntab *table, struct sample *samples)
{
    uint64_t step = table->count / (4 * SAMPLES_MAX) + 1;
    size_t count = 0;

    for (uint64_t i = 0; i < table->count && count < SAMPLES_MAX; i += step) {
        struct sample *sample = &samples[count];
        struct go_walk walk;
        uint64_t offset;

        if (!go_table_function(table, i, &sample->function) ||
            !go_table_pc_table(table, &sample->function, GO_PCDATA_INLINE_TREE, &offset))
            continue;
        walk = go_walk_begin(table, offset);
        while (go_walk_next(table, &walk) && walk.value < 0)
            ;
        sample->node = walk.value;
        count += walk.value >= 0;
    }
    return count;
}

/* Whether all samples have a tree that makes sense when funcdata begin at `funcdata`. */
static bool fits(struct elf_image *image, struct gopclntab *table, uint64_t funcdata,
                 const struct sample *samples, size_t count)
{
    table->funcdata = funcdata;
    for (size_t i = 0; i < count; i++) {
        const struct go_function *function = &samples[i].function;
        uint64_t tree = tree_of(image, table, function), call_site;
        const char *name;

        if (!tree || !node_at(image, table, tree, samples[i].node, &name, &call_site) ||
            call_site >= function->end - function->entry)
            return false;
    }
    return true;
}

/* moduledata begins with pointers to the table and to its names. */
static void find_funcdata(struct elf_image *image, struct gopclntab *table)
{
    struct sample samples[SAMPLES_MAX];
    size_t count;
    uint64_t moduledata = 0, word;

    table->looked_for_funcdata = true;
    if (table->layout < GO_1_18)
        return;
    count = take_samples(table, samples);
    while (count && (moduledata = image_pointer_to(image, table->address, moduledata))) {
        if (!image_pointer_at(image, moduledata + GO_WORD, &word) || word != table->address + table->names)
            continue;
        for (unsigned i = 2; i < MODULEDATA_WORDS; i++)
            if (image_pointer_at(image, moduledata + i * GO_WORD, &word) && word &&
                fits(image, table, word, samples, count))
                return;
    }
    table->funcdata = 0;
}

bool go_inline_at(struct elf_image *image, struct gopclntab *table, const struct go_function *function,
                  uint64_t distance, const char **ret_name, uint64_t *ret_call_site)
{
    uint64_t offset, tree;
    int32_t node;

    if (!table->looked_for_funcdata)
        find_funcdata(image, table);
    if ((table->layout >= GO_1_18 && !table->funcdata) ||
        !go_table_pc_table(table, function, GO_PCDATA_INLINE_TREE, &offset) ||
        !go_table_value(table, offset, distance, &node) || node < 0)
        return false;
    tree = tree_of(image, table, function);
    return tree && node_at(image, table, tree, node, ret_name, ret_call_site);
}
