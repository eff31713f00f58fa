/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Inlined functions are DIEs (DW_TAG_inlined_subroutine) inside their caller's; each has the place of the
 * call (DWARF 5, 3.3.8.2). The line table has the line of the innermost function.
 */
#include "image/source/source_frames.h"

#include <dwarf.h>
#include <elfutils/libdw.h>

#include "image/functions/functions.h"
#include "image/functions/gopclntab.h"
#include "image/source/source_lines.h"

enum { DEPTH_MAX = 64 };

struct walk {
    Dwarf_Die *unit;
    struct source_frame *frames;
    size_t count, capacity;
    bool cut; /* there are more */
};

static const char *linkage_name(Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    const char *name = NULL;

    if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) ||
        dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute))
        name = dwarf_formstring(&attribute);
    return name ? name : dwarf_diename(die);
}

/* The number that an attribute of the DIE itself has; 0 without one. */
static Dwarf_Word number_of(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    Dwarf_Word number;

    return dwarf_attr(die, name, &attribute) && dwarf_formudata(&attribute, &number) == 0 ? number : 0;
}

/* Gives the caller the place of the call of the function that `die` is of. */
static void note_call(const struct walk *walk, Dwarf_Die *die)
{
    struct source_frame *caller = &walk->frames[walk->count - 1];
    Dwarf_Files *files;
    size_t count;

    caller->line = (unsigned)number_of(die, DW_AT_call_line);
    if (dwarf_getsrcfiles(walk->unit, &files, &count) == 0)
        caller->file = dwarf_filesrc(files, number_of(die, DW_AT_call_file), NULL, NULL);
}

/* The block or inlined function inside `scope` that has the code at `address`. */
static bool find_inner(Dwarf_Die *scope, uint64_t address, Dwarf_Die *ret_inner)
{
    if (dwarf_child(scope, ret_inner) != 0)
        return false;
    do {
        int tag = dwarf_tag(ret_inner);

        if ((tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block) &&
            dwarf_haspc(ret_inner, address) > 0)
            return true;
    } while (dwarf_siblingof(ret_inner, ret_inner) == 0);
    return false;
}

static void add_inlined(struct walk *walk, Dwarf_Die *function, uint64_t address)
{
    Dwarf_Die scope = *function, inner;

    for (int depth = 0; depth < DEPTH_MAX && find_inner(&scope, address, &inner); depth++) {
        scope = inner;
        if (dwarf_tag(&inner) != DW_TAG_inlined_subroutine)
            continue;
        note_call(walk, &inner);
        walk->cut = walk->count == walk->capacity;
        if (walk->cut)
            return;
        walk->frames[walk->count++] = (struct source_frame){.function = linkage_name(&inner)};
    }
}

static size_t dwarf_frames(struct elf_image *image, uint64_t address, struct source_frame *frames,
                           size_t capacity)
{
    Dwarf_Die unit, function;
    struct walk walk = {.unit = &unit, .frames = frames, .count = 1, .capacity = capacity};
    struct source_frame *innermost;

    frames[0] = (struct source_frame){0};
    if (source_lines_at(image, address, &unit, &function)) {
        frames[0].function = linkage_name(&function);
        add_inlined(&walk, &function, address);
    }
    innermost = &frames[walk.count - 1];
    if (walk.cut)
        return walk.count;
    return image_source_line(image, address, &innermost->file, &innermost->line) || frames[0].function
               ? walk.count
               : 0;
}

/* The table has the innermost first. */
static size_t go_frames(struct elf_image *image, uint64_t address, struct source_frame *frames,
                        size_t capacity)
{
    struct go_frame inner_first[DEPTH_MAX];
    size_t count = gopclntab_frames(image, address, inner_first, DEPTH_MAX);

    for (size_t i = 0; i < count && i < capacity; i++) {
        const struct go_frame *frame = &inner_first[count - 1 - i];

        frames[i] = (struct source_frame){frame->function, frame->file, frame->line};
    }
    return count < capacity ? count : capacity;
}

size_t image_source_frames(struct elf_image *image, uint64_t address, struct source_frame *frames,
                           size_t capacity)
{
    size_t count = capacity ? go_frames(image, address, frames, capacity) : 0;

    return count || !capacity ? count : dwarf_frames(image, address, frames, capacity);
}
