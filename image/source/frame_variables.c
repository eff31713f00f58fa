/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/source/frame_variables.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "image/source/source_lines.h"

/* Blocks in blocks, and typedefs of typedefs: deeper is no program. */
#define DEPTH_MAX 64

struct reader {
    uint64_t address;
    Dwarf_Op frame_base; /* atom 0: not one operation */
    struct frame_variable *items;
    size_t count, capacity;
};

/* The one operation that says where something is at `address`. */
static bool one_operation(Dwarf_Die *die, unsigned name, uint64_t address, Dwarf_Op *ret_operation)
{
    Dwarf_Attribute attribute;
    Dwarf_Op *operations;
    size_t length;

    if (!dwarf_attr_integrate(die, name, &attribute) ||
        dwarf_getlocation_addr(&attribute, address, &operations, &length, 1) != 1 || length != 1)
        return false;
    *ret_operation = operations[0];
    return true;
}

/* Whether the type is an integer of 4 or 8 bytes. */
static bool is_integer(Dwarf_Die *variable, struct frame_variable *ret_variable)
{
    Dwarf_Attribute attribute;
    Dwarf_Word encoding;
    Dwarf_Die type;
    int size;

    if (!dwarf_formref_die(dwarf_attr_integrate(variable, DW_AT_type, &attribute), &type) ||
        dwarf_peel_type(&type, &type) != 0 || dwarf_tag(&type) != DW_TAG_base_type)
        return false;
    size = dwarf_bytesize(&type);
    if ((size != 4 && size != 8) ||
        dwarf_formudata(dwarf_attr_integrate(&type, DW_AT_encoding, &attribute), &encoding) != 0 ||
        (encoding != DW_ATE_signed && encoding != DW_ATE_unsigned))
        return false;
    ret_variable->size = (uint8_t)size;
    ret_variable->is_signed = encoding == DW_ATE_signed;
    return true;
}

/* What an operation of a variable, or the frame's base and an offset, name. */
static bool find_base(const struct reader *reader, const Dwarf_Op *operation, struct frame_variable *variable)
{
    const Dwarf_Op *base = &reader->frame_base;

    variable->offset = (int64_t)operation->number;
    if (operation->atom >= DW_OP_reg0 && operation->atom <= DW_OP_reg15) {
        variable->base = FRAME_VARIABLE_REGISTER;
        variable->number = operation->atom - DW_OP_reg0;
        return true;
    }
    if (operation->atom >= DW_OP_breg0 && operation->atom <= DW_OP_breg15) {
        variable->base = FRAME_VARIABLE_NEAR;
        variable->number = operation->atom - DW_OP_breg0;
        return true;
    }
    if (operation->atom != DW_OP_fbreg)
        return false;
    if (base->atom == DW_OP_call_frame_cfa) {
        variable->base = FRAME_VARIABLE_CFA;
        return true;
    }
    if (base->atom < DW_OP_reg0 || base->atom > DW_OP_reg15)
        return false;
    variable->base = FRAME_VARIABLE_NEAR;
    variable->number = base->atom - DW_OP_reg0;
    return true;
}

static int read_variable(struct reader *reader, Dwarf_Die *die)
{
    struct frame_variable variable = {.name = dwarf_diename(die)};
    Dwarf_Op operation;

    if (!variable.name || !is_integer(die, &variable) ||
        !one_operation(die, DW_AT_location, reader->address, &operation) ||
        !find_base(reader, &operation, &variable))
        return 0;
    if (array_reserve(&reader->items, &reader->capacity, reader->count + 1) < 0)
        return -ENOMEM;
    reader->items[reader->count++] = variable;
    return 0;
}

static int read_block(struct reader *reader, Dwarf_Die *block, int depth)
{
    Dwarf_Die die;
    int r = 0;

    if (depth > DEPTH_MAX || dwarf_child(block, &die) != 0)
        return 0;
    do {
        switch (dwarf_tag(&die)) {
        case DW_TAG_variable:
        case DW_TAG_formal_parameter:
            r = read_variable(reader, &die);
            break;
        case DW_TAG_lexical_block:
        case DW_TAG_inlined_subroutine:
            r = read_block(reader, &die, depth + 1);
            break;
        default:
            break;
        }
    } while (r == 0 && dwarf_siblingof(&die, &die) == 0);
    return r;
}

int image_frame_variables(struct elf_image *image, uint64_t address, struct frame_variable **ret_variables,
                          size_t *ret_count)
{
    struct reader reader = {.address = address};
    Dwarf_Die unit, function;
    int r = 0;

    if (source_lines_at(image, address, &unit, &function)) {
        if (!one_operation(&function, DW_AT_frame_base, address, &reader.frame_base))
            reader.frame_base.atom = 0;
        r = read_block(&reader, &function, 0);
    }
    if (r < 0) {
        free(reader.items);
        return r;
    }
    *ret_variables = reader.items;
    *ret_count = reader.count;
    return 0;
}
