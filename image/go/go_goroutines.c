/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/go/go_goroutines.h"

#include <errno.h>

#include "image/functions/gopclntab_table.h"
#include "image/go/go_code.h"
#include "image/go/go_offsets.h"

enum {
    WORDS_MAX = 64, /* of memory that runtime.allgadd reads or writes: twenty where it was looked at */

    FIELD_PC_STACK = 3, /* pcsp of struct _func */
    FLAG_TOP_FRAME = 1,
    FLAG_WRITES_STACK = 2, /* abi.FuncFlagTopFrame, abi.FuncFlagSPWrite */
};

/* ---------------------------------------------------------------------------------------------- the list */

/* The address of the 64-bit word that an instruction loads or stores, if it lies at a fixed distance. */
static bool word_at(const struct instruction *instruction, uint64_t *ret_address)
{
    enum machine_register other;
    struct memory_operand memory;

    return (instruction_loads(instruction, true, &other, &memory) ||
            instruction_stores(instruction, true, &other, &memory)) &&
           instruction_fixed_memory(instruction, ret_address);
}

static bool is_among(const uint64_t *words, size_t count, uint64_t word)
{
    for (size_t i = 0; i < count; i++)
        if (words[i] == word)
            return true;
    return false;
}

/* A slice is appended to by all of its three words; no other neighbours are touched so. */
static int find_slice(const struct go_code *code, uint64_t *ret_address)
{
    uint64_t words[WORDS_MAX];
    size_t count = 0;

    for (size_t i = 0; i < code->count && count < WORDS_MAX; i++)
        count += word_at(&code->items[i], &words[count]);
    for (size_t i = 0; i < count; i++) {
        if (!is_among(words, count, words[i] + GO_WORD) || !is_among(words, count, words[i] + 2 * GO_WORD))
            continue;
        *ret_address = words[i];
        return 0;
    }
    return -ENOENT;
}

int go_goroutines_find(struct elf_image *image, uint64_t *ret_allgs)
{
    CLEANUP(go_code_release) struct go_code code = {0};
    AUTO_FREE struct go_symbol *symbols = NULL;
    struct go_entry_place place;
    size_t count;
    int r = gopclntab_symbols(image, &symbols, &count);

    if (r < 0)
        return r;
    place = go_place_of(image, symbols, count, "runtime.allgadd");
    if (!place.name)
        return -ENOENT;
    r = go_code_read(image, place.address, place.size, &code);
    return r < 0 ? r : find_slice(&code, ret_allgs);
}

/* ---------------------------------------------------------------------------------------------- frames */

/* The record's flags, behind the function's id. */
static bool read_flags(const struct gopclntab *table, const struct go_function *function, uint64_t *ret_flags)
{
    uint64_t ids =
        function->record + go_table_entry_width(table) + 4 * (uint64_t)(go_table_fields(table) - 1);

    return go_table_number(table, ids + 1, 1, ret_flags);
}

enum go_stack_rule go_stack_rule(struct elf_image *image, uint64_t address, uint64_t *ret_size)
{
    const struct gopclntab *table = gopclntab_of(image);
    struct go_function function;
    uint64_t flags, offset;
    int32_t size;

    if (!table || table->layout < GO_1_16 || !go_table_find(table, address, &function) ||
        address >= function.end || !read_flags(table, &function, &flags))
        return GO_STACK_UNKNOWN;
    if (flags & FLAG_TOP_FRAME)
        return GO_STACK_TOP;
    if (flags & FLAG_WRITES_STACK || !go_table_field(table, &function, FIELD_PC_STACK, &offset) || !offset ||
        !go_table_value(table, offset, address - function.entry, &size) || size < 0)
        return GO_STACK_SWITCHES;
    *ret_size = (uint64_t)size;
    return GO_STACK_CALLER;
}
