/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where functions are declared: one pass over the compilation units of the image's own DWARF. Subprograms are
 * looked for where compilers put them, directly in the unit or in its namespaces; what lies inside functions
 * and classes is not visited. Functions that no subprogram describes (assembly) get the line of their first
 * byte.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <string.h>

#include "image/sources.h"

#define NAMESPACE_DEPTH_MAX 64

struct functions {
    struct image_function *items;
    size_t count;
};

static void cleanup_dwarf(Dwarf **debug)
{
    dwarf_end(*debug);
}

static struct image_function *function_at(const struct functions *functions, uint64_t address)
{
    size_t low = 0, high = functions->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (functions->items[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < functions->count && functions->items[low].address == address)
        return &functions->items[low];
    return NULL;
}

static int set_place(struct image_function *function, const char *file, int line)
{
    if (!file || function->file)
        return 0;
    function->file = strdup(file);
    if (!function->file)
        return -ENOMEM;
    function->line = line > 0 ? (unsigned)line : 0;
    return 0;
}

/* A function that was split has several ranges: each may be the beginning of one of ours (NAME and
 * NAME.cold). */
static int read_subprogram(const struct functions *functions, Dwarf_Die *die)
{
    Dwarf_Addr base, start, end;
    ptrdiff_t offset = 0;

    while ((offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0) {
        struct image_function *function = function_at(functions, start);
        int line = 0;

        if (!function || function->file)
            continue;
        dwarf_decl_line(die, &line);
        if (set_place(function, dwarf_decl_file(die), line) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int read_scope(const struct functions *functions, Dwarf_Die *scope, int depth)
{
    Dwarf_Die die;

    if (depth > NAMESPACE_DEPTH_MAX || dwarf_child(scope, &die) != 0)
        return 0;
    do {
        int tag = dwarf_tag(&die), r = 0;

        if (tag == DW_TAG_subprogram)
            r = read_subprogram(functions, &die);
        else if (tag == DW_TAG_namespace || tag == DW_TAG_module)
            r = read_scope(functions, &die, depth + 1);
        if (r < 0)
            return r;
    } while (dwarf_siblingof(&die, &die) == 0);
    return 0;
}

/* The line table's answer for what is left; it needs .debug_aranges, which assemblers write. */
static int read_line_table(Dwarf *debug, struct image_function *function)
{
    Dwarf_Die die;
    Dwarf_Line *line;
    int number = 0;

    if (!dwarf_addrdie(debug, function->address, &die))
        return 0;
    line = dwarf_getsrc_die(&die, function->address);
    if (!line)
        return 0;
    dwarf_lineno(line, &number);
    return set_place(function, dwarf_linesrc(line, NULL, NULL), number);
}

int lines_fill(struct elf_image *image, struct image_function *items, size_t count)
{
    const struct functions functions = {items, count};
    CLEANUP(cleanup_dwarf) Dwarf *debug = NULL;
    Dwarf_CU *unit = NULL;
    Dwarf_Die die;
    uint8_t type;

    if (!elf_image_facts(image)->has_debug_info)
        return 0;
    debug = dwarf_begin_elf(elf_image_elf(image), DWARF_C_READ, NULL);
    if (!debug)
        return 0;
    while (dwarf_get_units(debug, unit, &unit, NULL, &type, &die, NULL) == 0)
        if (type == DW_UT_compile && read_scope(&functions, &die, 0) < 0)
            return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        if (!items[i].file && !(items[i].flags & IMAGE_FUNCTION_PLT) && read_line_table(debug, &items[i]) < 0)
            return -ENOMEM;
    return 0;
}
