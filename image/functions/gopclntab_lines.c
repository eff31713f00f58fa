/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Lines of functions and of instructions, and what was inlined there. */
#include "image/functions/gopclntab.h"

#include "image/functions/gopclntab_inline.h"

/* The distance of the function's first instruction that was not inlined into it: only there the tables speak
 * of the function itself. 0 when nothing is known. */
static uint64_t first_own_code(const struct gopclntab *table, const struct go_function *function)
{
    struct go_walk walk;
    uint64_t offset;

    if (table->layout < GO_1_18 || !go_table_pc_table(table, function, GO_PCDATA_INLINE_TREE, &offset))
        return 0;
    walk = go_walk_begin(table, offset);
    while (go_walk_next(table, &walk))
        if (walk.value < 0 && walk.from < walk.until)
            return walk.from;
    return 0;
}

bool gopclntab_source(struct elf_image *image, uint64_t address, const char **ret_file, unsigned *ret_line)
{
    const struct gopclntab *table = gopclntab_of(image);
    struct go_function function;
    uint64_t declared = 0;

    if (!table || !go_table_find(table, address, &function) || function.entry != address ||
        !go_table_line(table, &function, first_own_code(table, &function), ret_file, ret_line))
        return false;
    if (table->layout == GO_1_20 && go_table_field(table, &function, GO_FIELD_LINE, &declared) && declared &&
        declared <= INT32_MAX)
        *ret_line = (unsigned)declared;
    return true;
}

size_t gopclntab_frames(struct elf_image *image, uint64_t address, struct go_frame *frames, size_t capacity)
{
    struct gopclntab *table = gopclntab_of(image);
    struct go_function function;
    uint64_t distance;
    size_t count = 0;

    if (!table || !go_table_find(table, address, &function) || address >= function.end)
        return 0;
    distance = address - function.entry;
    while (count < capacity) {
        struct go_frame *frame = &frames[count];
        uint64_t call_site = distance;
        const char *name = NULL;
        bool inlined = go_inline_at(image, table, &function, distance, &name, &call_site);

        if (!inlined)
            name = go_table_name(table, &function);
        if (!name || !go_table_line(table, &function, distance, &frame->file, &frame->line))
            return count;
        frame->function = name;
        count++;
        if (!inlined)
            break;
        distance = call_site;
    }
    return count;
}
