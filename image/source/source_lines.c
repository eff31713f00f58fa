/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where functions are declared, from the DWARF of the image or of its separate debug file. Which unit holds
 * an address is read off all units' heads when the first question comes (.debug_aranges is not enough: clang
 * writes none). A unit's functions are read when one of them is asked for. Subprograms are looked for where
 * compilers put them, directly in the unit or in its namespaces; what lies inside functions and classes is
 * not visited. Functions that no subprogram describes (assembly) get the line of their first byte.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "image/elf/debug_files.h"
#include "image/functions/gopclntab.h"
#include "image/source/source_lines.h"

#define NAMESPACE_DEPTH_MAX 64

struct place {
    uint64_t address;
    uint64_t end;     /* of the range that begins there */
    Dwarf_Off die;    /* the subprogram's */
    const char *file; /* in libdw's memory */
    unsigned line;
};

struct unit {
    Dwarf_Off offset;     /* of its first DIE */
    bool read;            /* its functions are in `places`, or none will be */
    struct place *places; /* sorted */
    size_t count, capacity;
};

struct unit_range {
    uint64_t start, end;
    size_t unit;
};

struct source_lines {
    Dwarf *debug; /* borrowed from debug_files.h; NULL: there is none */
    struct unit *units;
    size_t unit_count, unit_capacity;
    struct unit_range *ranges; /* sorted */
    size_t range_count, range_capacity;
};

static void release_lines(void *part)
{
    struct source_lines *lines = part;

    for (size_t i = 0; i < lines->unit_count; i++)
        free(lines->units[i].places);
    free(lines->units);
    free(lines->ranges);
    free(lines);
}

/* ---------------------------------------------------------------------------------------------- units */

static int compare_ranges(const void *left, const void *right)
{
    const struct unit_range *a = left, *b = right;

    return (a->start > b->start) - (a->start < b->start);
}

static int add_ranges(struct source_lines *lines, Dwarf_Die *die)
{
    Dwarf_Addr base, start, end;
    ptrdiff_t offset = 0;

    while ((offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0) {
        if (start >= end)
            continue;
        if (array_reserve(&lines->ranges, &lines->range_capacity, lines->range_count + 1) < 0)
            return -ENOMEM;
        lines->ranges[lines->range_count++] = (struct unit_range){start, end, lines->unit_count};
    }
    return 0;
}

static int read_units(struct source_lines *lines)
{
    Dwarf_CU *unit = NULL;
    Dwarf_Die die;
    uint8_t type;

    while (dwarf_get_units(lines->debug, unit, &unit, NULL, &type, &die, NULL) == 0) {
        if (type != DW_UT_compile && type != DW_UT_skeleton)
            continue;
        if (array_reserve(&lines->units, &lines->unit_capacity, lines->unit_count + 1) < 0 ||
            add_ranges(lines, &die) < 0)
            return -ENOMEM;
        /* The functions of a skeleton are in the .dwo file that it names, which libdw would open unseen. */
        lines->units[lines->unit_count++] =
            (struct unit){.offset = dwarf_dieoffset(&die), .read = type == DW_UT_skeleton};
    }
    if (lines->range_count)
        qsort(lines->ranges, lines->range_count, sizeof(*lines->ranges), compare_ranges);
    return 0;
}

/* The unit with a range that covers `address`, or NULL. */
static struct unit *unit_at(const struct source_lines *lines, uint64_t address)
{
    size_t low = 0, high = lines->range_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (lines->ranges[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low && address < lines->ranges[low - 1].end ? &lines->units[lines->ranges[low - 1].unit] : NULL;
}

/* ---------------------------------------------------------------------------------------------- functions */

/* A function that was split has several ranges: each may be the beginning of one of ours (NAME and
 * NAME.cold). */
static int read_subprogram(struct unit *unit, Dwarf_Die *die)
{
    Dwarf_Addr base, start, end;
    const char *file = NULL;
    ptrdiff_t offset = 0;
    int line = 0;

    while ((offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0) {
        if (!file)
            file = dwarf_decl_file(die);
        if (!file)
            return 0;
        if (!line && dwarf_decl_line(die, &line) != 0)
            line = 0;
        if (array_reserve(&unit->places, &unit->capacity, unit->count + 1) < 0)
            return -ENOMEM;
        unit->places[unit->count++] =
            (struct place){start, end, dwarf_dieoffset(die), file, line > 0 ? (unsigned)line : 0};
    }
    return 0;
}

static int read_scope(struct unit *unit, Dwarf_Die *scope, int depth)
{
    Dwarf_Die die;

    if (depth > NAMESPACE_DEPTH_MAX || dwarf_child(scope, &die) != 0)
        return 0;
    do {
        int tag = dwarf_tag(&die), r = 0;

        if (tag == DW_TAG_subprogram)
            r = read_subprogram(unit, &die);
        else if (tag == DW_TAG_namespace || tag == DW_TAG_module)
            r = read_scope(unit, &die, depth + 1);
        if (r < 0)
            return r;
    } while (dwarf_siblingof(&die, &die) == 0);
    return 0;
}

static int compare_places(const void *left, const void *right)
{
    const struct place *a = left, *b = right;

    return (a->address > b->address) - (a->address < b->address);
}

/* Once; a unit for which there is no memory stays without functions. */
static void read_unit(struct unit *unit, Dwarf_Die *die)
{
    if (unit->read)
        return;
    unit->read = true;
    if (read_scope(unit, die, 0) < 0)
        unit->count = 0;
    if (unit->count)
        qsort(unit->places, unit->count, sizeof(*unit->places), compare_places);
}

static bool find_subprogram(const struct unit *unit, uint64_t address, struct place *ret_place)
{
    const struct place key = {.address = address};
    const struct place *found =
        unit->count ? bsearch(&key, unit->places, unit->count, sizeof(key), compare_places) : NULL;

    if (found)
        *ret_place = *found;
    return found;
}

/* The line table's answer. */
static bool find_line(Dwarf_Die *die, uint64_t address, struct place *ret_place)
{
    Dwarf_Line *line = dwarf_getsrc_die(die, address);
    const char *file = line ? dwarf_linesrc(line, NULL, NULL) : NULL;
    int number = 0;

    if (!file)
        return false;
    dwarf_lineno(line, &number);
    *ret_place = (struct place){.address = address, .file = file, .line = number > 0 ? (unsigned)number : 0};
    return true;
}

/* ---------------------------------------------------------------------------------------------- the question
 */

static struct source_lines *lines_of(struct elf_image *image)
{
    struct source_lines *lines = elf_image_part(image, IMAGE_PART_SOURCE_LINES);

    if (lines)
        return lines;
    lines = calloc(1, sizeof(*lines));
    if (!lines)
        return NULL;
    elf_image_keep_part(image, IMAGE_PART_SOURCE_LINES, lines, release_lines);
    lines->debug = debug_files_dwarf(image);
    if (lines->debug && read_units(lines) < 0)
        lines->range_count = 0;
    return lines;
}

/* The unit with code at `address`, and its first DIE; NULL: there is none. */
static struct unit *find_unit(const struct source_lines *lines, uint64_t address, Dwarf_Die *ret_die)
{
    struct unit *unit = lines ? unit_at(lines, address) : NULL;

    return unit && dwarf_offdie(lines->debug, unit->offset, ret_die) ? unit : NULL;
}

bool source_lines_at(struct elf_image *image, uint64_t address, Dwarf_Die *ret_unit, Dwarf_Die *ret_function)
{
    struct source_lines *lines = lines_of(image);
    struct unit *unit = find_unit(lines, address, ret_unit);
    size_t low = 0, high;

    if (!unit)
        return false;
    read_unit(unit, ret_unit);
    high = unit->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (unit->places[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low && address < unit->places[low - 1].end &&
           dwarf_offdie(lines->debug, unit->places[low - 1].die, ret_function);
}

bool image_source_line(struct elf_image *image, uint64_t address, const char **ret_file, unsigned *ret_line)
{
    struct place found;
    Dwarf_Die die;

    if (gopclntab_source(image, address, ret_file, ret_line))
        return true;
    if (!find_unit(lines_of(image), address, &die) || !find_line(&die, address, &found))
        return false;
    *ret_file = found.file;
    *ret_line = found.line;
    return true;
}

bool image_function_source(struct elf_image *image, const struct image_function *function,
                           const char **ret_file, unsigned *ret_line)
{
    struct unit *unit;
    struct place found;
    Dwarf_Die die;

    if (function->flags & IMAGE_FUNCTION_PLT)
        return false;
    if (gopclntab_source(image, function->address, ret_file, ret_line))
        return true;
    unit = find_unit(lines_of(image), function->address, &die);
    if (!unit)
        return false;
    read_unit(unit, &die);
    if (!find_subprogram(unit, function->address, &found) && !find_line(&die, function->address, &found))
        return false;
    *ret_file = found.file;
    *ret_line = found.line;
    return true;
}
