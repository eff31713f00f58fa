/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/go/go_wrappers.h"

#include <errno.h>
#include <string.h>

#include "image/functions/gopclntab_table.h"
#include "image/go/go_code.h"

enum { NESTED_MAX = 4, FRAMES_MAX = 16 };

/* What a function is to the runtime (abi.FuncID), in its record behind the fields; 0: an ordinary one. */
static uint8_t read_mark(const struct gopclntab *table, const struct go_function *function)
{
    uint64_t fields = 4 * (uint64_t)(go_table_fields(table) - 1), mark;
    bool known = go_table_number(table, function->record + go_table_entry_width(table) + fields, 1, &mark);

    return known ? (uint8_t)mark : 0;
}

/* The numbers differ from version to version; that of wrappers is the last one, after that of
 * runtime.systemstack_switch. */
static uint8_t find_mark(struct elf_image *image, const struct go_symbol *symbols, size_t count)
{
    const struct gopclntab *table = gopclntab_of(image);
    struct go_function function;

    for (size_t i = 0; table && i < count; i++) {
        uint8_t mark;

        if (strcmp(symbols[i].name, "runtime.systemstack_switch") != 0 ||
            !go_table_find(table, symbols[i].address, &function))
            continue;
        mark = read_mark(table, &function);
        if (mark)
            return (uint8_t)(mark + 1);
    }
    return 0;
}

struct go_functions go_functions_of(struct elf_image *image, const struct go_symbol *symbols, size_t count)
{
    return (struct go_functions){image, symbols, count, find_mark(image, symbols, count)};
}

static bool is_of_runtime(const char *name)
{
    return !strncmp(name, "runtime.", strlen("runtime."));
}

/* What the wrapper does at `instruction`, if that is not the runtime's: it calls the function, or what was
 * inlined of it calls something. */
static bool leads_to(struct elf_image *image, const struct gopclntab *table,
                     const struct go_function *wrapper, const struct instruction *instruction,
                     struct go_written *written)
{
    struct go_frame frames[FRAMES_MAX];
    size_t count = gopclntab_frames(image, instruction->address, frames, FRAMES_MAX);
    struct go_function callee;
    const char *name;

    if (count > 1) {
        *written = (struct go_written){frames[count - 2].function, wrapper->entry};
        return true;
    }
    if ((instruction->kind != INSTRUCTION_CALL && instruction->kind != INSTRUCTION_JUMP) ||
        !go_table_find(table, instruction->target, &callee) || callee.entry != instruction->target ||
        callee.entry == wrapper->entry)
        return false;
    name = go_table_name(table, &callee);
    if (!name || is_of_runtime(name))
        return false;
    *written = (struct go_written){name, callee.entry};
    return true;
}

static int look_behind(struct elf_image *image, const struct gopclntab *table,
                       const struct go_function *wrapper, struct go_written *written)
{
    CLEANUP(go_code_release) struct go_code code = {0};

    if (go_code_read(image, wrapper->entry, wrapper->end - wrapper->entry, &code) == -ENOMEM)
        return -ENOMEM;
    for (size_t i = 0; i < code.count; i++)
        if (leads_to(image, table, wrapper, &code.items[i], written))
            break;
    return 0;
}

/* ------------------------------------------------------------------------------------ function literals */

static size_t maker_length(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot ? (size_t)(dot + 1 - name) : 0;
}

/* Whether `name` is a function literal of the function whose name, with a dot, is the first `length` bytes of
 * `maker`: "main.main.func1", "main.main.func1.2". */
static bool is_literal_in(const char *name, const char *maker, size_t length)
{
    const char *rest = name + length;

    if (strncmp(name, maker, length) != 0)
        return false;
    if (!strncmp(rest, "func", strlen("func")))
        rest += strlen("func");
    return *rest && rest[strspn(rest, "0123456789")] == '\0';
}

/* A wrapper of a function literal that captures variables calls it by its closure. The literal is written in
 * the go statement itself: it is the one that begins in the line, if there is one alone. */
static void find_literal(const struct go_functions *functions, const struct go_function *wrapper,
                         struct go_written *written)
{
    const struct gopclntab *table = gopclntab_of(functions->image);
    size_t length = maker_length(written->name);
    const char *file, *other_file;
    const struct go_symbol *found = NULL;
    struct go_function function;
    unsigned line, other_line;

    if (!length || !gopclntab_source(functions->image, wrapper->entry, &file, &line))
        return;
    for (size_t i = 0; i < functions->count; i++) {
        const struct go_symbol *symbol = &functions->symbols[i];

        if (!is_literal_in(symbol->name, written->name, length) ||
            !gopclntab_source(functions->image, symbol->address, &other_file, &other_line) ||
            other_line != line || strcmp(other_file, file) != 0 ||
            !go_table_find(table, symbol->address, &function) ||
            read_mark(table, &function) == functions->wrapper_mark)
            continue;
        if (found)
            return;
        found = symbol;
    }
    if (found)
        *written = (struct go_written){found->name, found->address};
}

int go_written_function(const struct go_functions *functions, uint64_t address,
                        struct go_written *ret_written)
{
    struct elf_image *image = functions->image;
    uint8_t mark = functions->wrapper_mark;
    const struct gopclntab *table = gopclntab_of(image);
    struct go_written written = {0};
    struct go_function function;

    if (table && go_table_find(table, address, &function))
        written = (struct go_written){go_table_name(table, &function), function.entry};
    for (unsigned i = 0; mark && i < NESTED_MAX && written.name; i++) {
        uint64_t before = written.address;

        if (!go_table_find(table, before, &function) || read_mark(table, &function) != mark)
            break;
        if (look_behind(image, table, &function, &written))
            return -ENOMEM;
        if (written.address == before && written.name == go_table_name(table, &function))
            find_literal(functions, &function, &written);
        if (written.address == before)
            break;
    }
    *ret_written = written;
    return 0;
}
