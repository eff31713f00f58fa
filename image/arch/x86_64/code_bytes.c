/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/arch/code_bytes.h"

#include <string.h>

enum {
    INT3 = 0xcc,
    RET = 0xc3,
    NOP = 0x90,
    NOP_END = 0, /* of those of several bytes: a displacement of 0 */
    CALL_REL32 = 0xe8,
    JMP_REL32 = 0xe9,
    INDIRECT = 0xff, /* what it does is in bits 3 to 5 of its second byte */
    TWO_BYTES = 0x0f,
    XBEGIN = 0xc7,
    XBEGIN_MODRM = 0xf8,
    LEA = 0x8d,
};

bool code_is_trap(const uint8_t *code)
{
    return *code == INT3;
}

bool code_is_call(const uint8_t *code)
{
    return *code == CALL_REL32;
}

bool code_is_jump(const uint8_t *code)
{
    return *code == JMP_REL32;
}

uint64_t code_call_target(const uint8_t *code, uint64_t address)
{
    return code_distance_target(code + 1, address + 1);
}

bool code_ends_with_indirect_call(const uint8_t *code)
{
    for (size_t i = 0; i + 1 < CODE_CALL_LONGEST; i++)
        if (code[i] == INDIRECT && (code[i + 1] >> 3 & 7) == 2)
            return true;
    return false;
}

bool code_ends_function(const uint8_t *code)
{
    return *code == INT3 || *code == RET || *code == NOP || *code == NOP_END;
}

/* ---------------------------------------------------------------------------------------------- distances */

uint64_t code_distance_target(const uint8_t *code, uint64_t address)
{
    int32_t distance;

    memcpy(&distance, code, sizeof(distance));
    return address + sizeof(distance) + (uint64_t)(int64_t)distance;
}

enum code_reference code_reference(const uint8_t *code, size_t before, size_t *ret_lead)
{
    size_t ignored = 0, *lead = ret_lead ? ret_lead : &ignored;

    *lead = 1;
    if (before >= 1 && code[-1] == CALL_REL32)
        return CODE_REFERENCE_CALL;
    if (before >= 1 && code[-1] == JMP_REL32)
        return CODE_REFERENCE_JUMP;
    *lead = 2;
    if (before >= 2 && code[-2] == TWO_BYTES && (code[-1] & 0xf0) == 0x80)
        return CODE_REFERENCE_BRANCH;
    return before >= 1 && (code[-1] & 0xc7) == 0x05 ? CODE_REFERENCE_POINTER : CODE_NO_REFERENCE; /* of RIP */
}

size_t code_branch_lead(const uint8_t *code)
{
    if (code[0] == CALL_REL32 || code[0] == JMP_REL32)
        return 1;
    if (code[0] == TWO_BYTES)
        return (code[1] & 0xf0) == 0x80 ? 2 : 0;
    return code[0] == XBEGIN && code[1] == XBEGIN_MODRM ? 2 : 0;
}

bool code_distance_is_padding(const uint8_t *code, size_t before)
{
    static const uint8_t zeros[CODE_DISTANCE_BYTES];

    return !memcmp(code, zeros, sizeof(zeros)) && !(before >= 2 && code[-2] == LEA);
}

bool code_loads_argument(const uint8_t *code, unsigned argument, uint32_t value)
{
    static const uint8_t loads[] = {0xbf, 0xbe}; /* mov $VALUE, %edi and %esi */

    return *code == loads[argument & 1] && !memcmp(code + 1, &value, sizeof(value));
}
