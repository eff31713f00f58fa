/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Any bytes as code with a function in it: what may be patched there, and its stub. The first two bytes say
 * where the function begins and how long it is.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "collector/arch/stub.h"
#include "collector/displace/displace.h"
#include "image/arch/x86_64/form.h"
#include "image/flow/branch_targets.h"

#define ADDRESS 0x400000u
#define HEAD 0x10000000u
#define STUB (HEAD + 0x10000u)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* What displace.h promises of the answer. */
static void check_displacement(const struct displacement *displacement, const struct flow_map *map,
                               const struct displace_subject *subject)
{
    uint64_t patched = subject->address + displacement->offset;
    size_t end = displacement->length;

    require(displacement->count > 0 && displacement->count <= DISPLACE_INSTRUCTIONS);
    require(end <= DISPLACE_BYTES && displacement->offset + end <= subject->size);
    require(displacement->offset + DISPLACE_JUMP <= subject->room);
    require(end >= DISPLACE_JUMP || (!displacement->falls && !displacement->calls));
    require(displacement->starts[0] == 0 && displacement->starts[displacement->count - 1] < DISPLACE_JUMP);
    for (size_t i = 1; i < displacement->count; i++)
        require(displacement->starts[i] > displacement->starts[i - 1]);
    require(!branch_targets_within(map, patched + 1, patched + DISPLACE_JUMP - 1));
    require(!flow_map_loops(map, subject->address));
}

static void check_moved(const struct instruction *was, const struct instruction *is)
{
    bool is_loop = (form_of(was).opcode[0] & 0xfc) == 0xe0; /* a short branch to a long jump */

    if (was->kind == INSTRUCTION_CALL || was->kind == INSTRUCTION_CALL_INDIRECT)
        require(is->kind == INSTRUCTION_CALL); /* which a push and a jump follow */
    else if (was->kind == INSTRUCTION_JUMP || (was->kind == INSTRUCTION_BRANCH && !is_loop))
        require(is->kind == was->kind && is->target == was->target);
    else
        require(is->kind == was->kind && is->length == was->length);
}

/* Every displaced instruction is one in the stub, and refers to what it referred to. */
static void check_stub(struct disasm *disasm, const struct displace_subject *subject,
                       const struct displacement *displacement)
{
    struct stub_order order = {
        .number = 1,
        .address = STUB,
        .aside = STUB + 0x100000,
        .function = subject->address,
        .head = HEAD,
        .code = subject->code,
        .displacement = displacement,
    };
    uint8_t *bytes = malloc(stub_max), *aside = malloc(stub_aside_max);
    struct stub stub;
    int r = bytes && aside ? stub_emit(&order, bytes, stub_max, aside, &stub) : -ENOMEM;

    require(r != -ENOSPC && r != -EINVAL);

    /* Operands relative to RIP may refer to anything within 2 GiB of here, and not of the stub. */
    if (r == 0) {
        require(stub.size <= stub_max && stub.aside <= stub_aside_max);
        for (size_t i = 0; i < displacement->count; i++) {
            struct instruction was, is;
            size_t at = displacement->offset + (size_t)displacement->starts[i];

            require(disasm_decode(disasm, subject->code + at, subject->size - at, subject->address + at,
                                  &was) == 0);
            require(disasm_decode(disasm, bytes + stub.moved[i], (size_t)stub.size - stub.moved[i],
                                  STUB + stub.moved[i], &is) == 0);
            check_moved(&was, &is);
        }
    }
    free(bytes);
    free(aside);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_DISASM struct disasm *disasm = NULL;
    AUTO_FLOW_MAP struct flow_map *map = NULL;
    struct image_function function = {0};
    struct displace_subject subject;
    struct displacement displacement;
    size_t entry, room;

    if (size < 4 || disasm_new(&disasm, NULL) < 0 || flow_map_new(&map) < 0)
        return 0;
    entry = data[0] % (size - 2);
    room = size - 2 - entry;
    function.address = ADDRESS + entry;
    function.size = 1 + data[1] % room;
    subject = (struct displace_subject){data + 2 + entry, function.address, function.size, room};
    if (flow_map_add(map, data + 2, size - 2, ADDRESS) < 0 || flow_map_walk(map, &function, 1, false) < 0)
        return 0;
    branch_targets_mark(map);
    if (displace_function(disasm, map, &subject, &displacement) != DISPLACE_OK)
        return 0;
    check_displacement(&displacement, map, &subject);
    check_stub(disasm, &subject, &displacement);
    return 0;
}
