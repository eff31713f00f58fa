/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/arch/x86_64/flow_length.h"

#include <errno.h>

#define LENGTH_MAX 15

/* What follows an opcode. */
enum form {
    NONE,
    BYTE,      /* an immediate or displacement of one byte */
    WORD,      /* of two bytes */
    FULL,      /* of four, with prefix 66 of two */
    WIDE,      /* of four, with 66 of two, with REX.W of eight */
    ENTER,     /* two bytes and one */
    OFFSET,    /* an address of eight bytes, with prefix 67 of four */
    BRANCH,    /* a displacement of four bytes */
    M,         /* ModRM */
    M_BYTE,    /* ModRM and one byte */
    M_WORD,    /* ModRM and two bytes */
    M_FULL,    /* ModRM and FULL */
    TEST_BYTE, /* group 3: an immediate only if ModRM.reg is 0 or 1 */
    TEST_FULL,
    REGISTERS, /* ModRM whose mod field is ignored: always registers */
    BAD,       /* no instruction in 64-bit mode; prefixes and escapes never get so far */
};

#define ARITHMETIC M, M, M, M, BYTE, FULL, BAD, BAD
#define EIGHT(form) form, form, form, form, form, form, form, form
#define SIXTEEN(form) EIGHT(form), EIGHT(form)

static const uint8_t one_byte[256] = {
    /* 00 */ ARITHMETIC,
    ARITHMETIC,
    ARITHMETIC,
    ARITHMETIC,
    ARITHMETIC,
    ARITHMETIC,
    ARITHMETIC,
    ARITHMETIC,
    /* 40 */ SIXTEEN(BAD),
    /* 50 */ SIXTEEN(NONE),
    /* 60 */ BAD,
    BAD,
    BAD,
    M,
    BAD,
    BAD,
    BAD,
    BAD,
    FULL,
    M_FULL,
    BYTE,
    M_BYTE,
    NONE,
    NONE,
    NONE,
    NONE,
    /* 70 */ SIXTEEN(BYTE),
    /* 80 */ M_BYTE,
    M_FULL,
    BAD,
    M_BYTE,
    M,
    M,
    M,
    M,
    EIGHT(M),
    /* 90 */ EIGHT(NONE),
    NONE,
    NONE,
    BAD,
    NONE,
    NONE,
    NONE,
    NONE,
    NONE,
    /* a0 */ OFFSET,
    OFFSET,
    OFFSET,
    OFFSET,
    NONE,
    NONE,
    NONE,
    NONE,
    BYTE,
    FULL,
    NONE,
    NONE,
    NONE,
    NONE,
    NONE,
    NONE,
    /* b0 */ EIGHT(BYTE),
    EIGHT(WIDE),
    /* c0 */ M_BYTE,
    M_BYTE,
    WORD,
    NONE,
    BAD,
    BAD,
    M_BYTE,
    M_FULL,
    ENTER,
    NONE,
    WORD,
    NONE,
    NONE,
    BYTE,
    BAD,
    NONE,
    /* d0 */ M,
    M,
    M,
    M,
    BAD,
    BAD,
    BAD,
    NONE,
    EIGHT(M),
    /* e0 */ EIGHT(BYTE),
    BRANCH,
    BRANCH,
    BAD,
    BYTE,
    NONE,
    NONE,
    NONE,
    NONE,
    /* f0 */ BAD,
    NONE,
    BAD,
    BAD,
    NONE,
    NONE,
    TEST_BYTE,
    TEST_FULL,
    NONE,
    NONE,
    NONE,
    NONE,
    NONE,
    NONE,
    M,
    M,
};

/* Behind 0F, and map 1 of VEX and EVEX. */
static const uint8_t two_bytes[256] = {
    /* 00 */ M,
    M,
    M,
    M,
    BAD,
    NONE,
    NONE,
    NONE,
    NONE,
    NONE,
    BAD,
    NONE,
    BAD,
    M,
    NONE,
    M_BYTE,
    /* 10 */ SIXTEEN(M),
    /* 20 */ REGISTERS,
    REGISTERS,
    REGISTERS,
    REGISTERS,
    BAD,
    BAD,
    BAD,
    BAD,
    EIGHT(M),
    /* 30 */ NONE,
    NONE,
    NONE,
    NONE,
    NONE,
    NONE,
    BAD,
    NONE,
    EIGHT(BAD),
    /* 40 */ SIXTEEN(M),
    /* 50 */ SIXTEEN(M),
    /* 60 */ SIXTEEN(M),
    /* 70 */ M_BYTE,
    M_BYTE,
    M_BYTE,
    M_BYTE,
    M,
    M,
    M,
    NONE,
    M,
    M,
    BAD,
    BAD,
    M,
    M,
    M,
    M,
    /* 80 */ SIXTEEN(BRANCH),
    /* 90 */ SIXTEEN(M),
    /* a0 */ NONE,
    NONE,
    NONE,
    M,
    M_BYTE,
    M,
    BAD,
    BAD,
    NONE,
    NONE,
    NONE,
    M,
    M_BYTE,
    M,
    M,
    M,
    /* b0 */ EIGHT(M),
    M,
    M,
    M_BYTE,
    M,
    M,
    M,
    M,
    M,
    /* c0 */ M,
    M,
    M_BYTE,
    M,
    M_BYTE,
    M_BYTE,
    M_BYTE,
    M,
    EIGHT(NONE),
    /* d0 */ SIXTEEN(M),
    /* e0 */ SIXTEEN(M),
    /* f0 */ SIXTEEN(M),
};

struct cursor {
    const uint8_t *code;
    size_t at, end;
    bool operand_size, address_size, wide;
    bool repeat_ne; /* F2 */
};

static bool skip(struct cursor *cursor, size_t bytes)
{
    cursor->at += bytes;
    return cursor->at <= cursor->end;
}

/* Legacy prefixes and REX; a REX counts only directly before the opcode. */
static void read_prefixes(struct cursor *cursor)
{
    for (; cursor->at < cursor->end; cursor->at++) {
        switch (cursor->code[cursor->at]) {
        case 0x66:
            cursor->operand_size = true;
            break;
        case 0x67:
            cursor->address_size = true;
            break;
        case 0xf2:
            cursor->repeat_ne = true;
            break;
        case 0x26:
        case 0x2e:
        case 0x36:
        case 0x3e:
        case 0x64:
        case 0x65:
        case 0xf0:
        case 0xf3:
            break;
        case 0x40 ... 0x4f:
            cursor->wide = cursor->code[cursor->at++] & 8;
            return;
        default:
            return;
        }
    }
}

/* ModRM with SIB and displacement. */
static bool skip_modrm(struct cursor *cursor)
{
    uint8_t modrm, mod, base;

    if (cursor->at >= cursor->end)
        return false;
    modrm = cursor->code[cursor->at++];
    mod = modrm >> 6;
    base = modrm & 7;
    if (mod == 3)
        return true;
    if (base == 4) {
        if (cursor->at >= cursor->end)
            return false;
        base = cursor->code[cursor->at++] & 7;
    }
    if (mod == 1)
        return skip(cursor, 1);
    return skip(cursor, mod == 2 || base == 5 ? 4 : 0);
}

static size_t full_size(const struct cursor *cursor)
{
    return cursor->operand_size && !cursor->wide ? 2 : 4;
}

static bool skip_test(struct cursor *cursor, size_t immediate)
{
    bool has_immediate = cursor->at < cursor->end && (cursor->code[cursor->at] & 0x30) == 0;

    return skip_modrm(cursor) && skip(cursor, has_immediate ? immediate : 0);
}

static bool skip_form(struct cursor *cursor, enum form form)
{
    switch (form) {
    case NONE:
        return true;
    case BYTE:
        return skip(cursor, 1);
    case WORD:
        return skip(cursor, 2);
    case FULL:
        return skip(cursor, full_size(cursor));
    case WIDE:
        return skip(cursor, cursor->wide ? 8 : full_size(cursor));
    case ENTER:
        return skip(cursor, 3);
    case OFFSET:
        return skip(cursor, cursor->address_size ? 4 : 8);
    case BRANCH:
        return (!cursor->operand_size || cursor->wide) && skip(cursor, 4);
    case M:
        return skip_modrm(cursor);
    case M_BYTE:
        return skip_modrm(cursor) && skip(cursor, 1);
    case M_WORD:
        return skip_modrm(cursor) && skip(cursor, 2);
    case M_FULL:
        return skip_modrm(cursor) && skip(cursor, full_size(cursor));
    case TEST_BYTE:
        return skip_test(cursor, 1);
    case TEST_FULL:
        return skip_test(cursor, full_size(cursor));
    case REGISTERS:
        return skip(cursor, 1);
    case BAD:
        break;
    }
    return false;
}

/* Behind 0F. */
static enum form form_of_two_bytes(const struct cursor *cursor, uint8_t opcode)
{
    if (opcode == 0x78 && (cursor->operand_size || cursor->repeat_ne))
        return M_WORD; /* extrq, insertq */
    return two_bytes[opcode];
}

/* Behind 0F: another escape or an opcode. */
static bool skip_two_bytes(struct cursor *cursor)
{
    uint8_t opcode;

    if (cursor->at >= cursor->end)
        return false;
    opcode = cursor->code[cursor->at++];
    if (opcode == 0x38 || opcode == 0x3a)
        return skip(cursor, 1) && skip_form(cursor, opcode == 0x38 ? M : M_BYTE);
    return skip_form(cursor, form_of_two_bytes(cursor, opcode));
}

/* Map numbers of VEX, EVEX (1 to 6) and XOP (8 to 10). */
static enum form form_in_map(unsigned map, uint8_t opcode)
{
    switch (map) {
    case 1:
        return two_bytes[opcode];
    case 2:
    case 5:
    case 6:
    case 9:
        return M;
    case 3:
    case 8:
        return M_BYTE;
    case 10:
        return M_FULL;
    default:
        return BAD;
    }
}

/* `payload` bytes behind the escape byte, the first of which holds the map. */
static bool skip_vector(struct cursor *cursor, size_t payload, unsigned map)
{
    cursor->operand_size = false;
    if (!skip(cursor, 1 + payload) || cursor->at >= cursor->end)
        return false;
    return skip_form(cursor, form_in_map(map, cursor->code[cursor->at++]));
}

static bool skip_instruction(struct cursor *cursor)
{
    uint8_t opcode, next;

    read_prefixes(cursor);
    if (cursor->at >= cursor->end)
        return false;
    opcode = cursor->code[cursor->at];
    next = cursor->at + 1 < cursor->end ? cursor->code[cursor->at + 1] : 0;
    if (opcode == 0xc5)
        return skip_vector(cursor, 1, 1);
    if (opcode == 0xc4)
        return skip_vector(cursor, 2, next & 0x1f);
    if (opcode == 0x62)
        return skip_vector(cursor, 3, next & 7);
    if (opcode == 0x8f && (next & 0x38))
        return skip_vector(cursor, 2, next & 0x1f);
    cursor->at++;
    return opcode == 0x0f ? skip_two_bytes(cursor) : skip_form(cursor, one_byte[opcode]);
}

int flow_length(const uint8_t *code, size_t size)
{
    struct cursor cursor = {.code = code, .end = size < LENGTH_MAX ? size : LENGTH_MAX};

    return skip_instruction(&cursor) ? (int)cursor.at : -EILSEQ;
}

bool flow_has_modrm(uint8_t first, uint8_t second)
{
    enum form form = first == 0x0f ? two_bytes[second] : one_byte[first];

    return form >= M && form <= REGISTERS;
}
