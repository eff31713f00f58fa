/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <string.h>

#include "base/array.h"
#include "image/elf/debug_files.h"
#include "image/go/go_offsets.h"

static const struct {
    const char *structure;
    const char *member;
    enum go_offset offset;
} fields[] = {
    {"runtime.g", "stackguard0", GO_G_STACKGUARD0},
    {"runtime.g", "m", GO_G_M},
    {"runtime.g", "atomicstatus", GO_G_ATOMICSTATUS},
    {"runtime.g", "goid", GO_G_GOID},
    {"runtime.g", "waitreason", GO_G_WAITREASON},
    {"runtime.g", "preempt", GO_G_PREEMPT},
    {"runtime.g", "parentGoid", GO_G_PARENT_GOID},
    {"runtime.m", "g0", GO_M_G0},
    {"runtime.m", "curg", GO_M_CURG},
    {"runtime.m", "locks", GO_M_LOCKS},
    {"runtime.m", "mallocing", GO_M_MALLOCING},
};

static void read_member(const char *structure, Dwarf_Die *member, int32_t *offsets)
{
    const char *name = dwarf_diename(member);
    Dwarf_Attribute attribute;
    Dwarf_Word offset;

    for (size_t i = 0; name && i < ARRAY_SIZE(fields); i++)
        if (!strcmp(fields[i].structure, structure) && !strcmp(fields[i].member, name) &&
            dwarf_attr(member, DW_AT_data_member_location, &attribute) &&
            dwarf_formudata(&attribute, &offset) == 0 && offset <= INT32_MAX)
            offsets[fields[i].offset] = (int32_t)offset;
}

static bool read_structure(Dwarf_Die *structure, int32_t *offsets)
{
    const char *name = dwarf_diename(structure);
    Dwarf_Die member;

    if (dwarf_tag(structure) != DW_TAG_structure_type || !name ||
        (strcmp(name, "runtime.g") != 0 && strcmp(name, "runtime.m") != 0) ||
        dwarf_child(structure, &member) != 0)
        return false;
    do {
        if (dwarf_tag(&member) == DW_TAG_member)
            read_member(name, &member, offsets);
    } while (dwarf_siblingof(&member, &member) == 0);
    return true;
}

static unsigned read_unit(Dwarf_Die *unit, int32_t *offsets)
{
    unsigned found = 0;
    Dwarf_Die die;

    if (dwarf_child(unit, &die) != 0)
        return 0;
    do {
        found += read_structure(&die, offsets);
    } while (found < 2 && dwarf_siblingof(&die, &die) == 0);
    return found;
}

/* The types of the runtime are in its unit, which is called after the package. */
bool go_offsets_from_dwarf(struct elf_image *image, int32_t offsets[GO_OFFSETS])
{
    Dwarf *debug = debug_files_dwarf(image);
    Dwarf_CU *unit = NULL;
    unsigned found = 0;
    Dwarf_Die die;

    while (debug && found < 2 && dwarf_get_units(debug, unit, &unit, NULL, NULL, &die, NULL) == 0) {
        const char *name = dwarf_diename(&die);

        if (name && !strcmp(name, "runtime"))
            found += read_unit(&die, offsets);
    }
    return found == 2;
}
