/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A piece of machine code that is being written for a given address. Errors stick: they are looked at once,
 * at the end. */
#ifndef TRACECTL_COLLECTOR_ARCH_MACHINE_CODE_H
#define TRACECTL_COLLECTOR_ARCH_MACHINE_CODE_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct machine_code {
    uint8_t *bytes;   /* the caller's */
    size_t size;      /* written so far */
    size_t room;      /* of `bytes` */
    uint64_t address; /* where the first byte will be loaded */
    int error;        /* 0; -ENOSPC: does not fit; -ERANGE: a distance of more than 2 GiB */
};

/* Where the next byte will be loaded. */
static inline uint64_t machine_code_here(const struct machine_code *code)
{
    return code->address + code->size;
}

static inline void machine_code_bytes(struct machine_code *code, const void *bytes, size_t size)
{
    if (code->error || code->room - code->size < size) {
        code->error = code->error ? code->error : -ENOSPC;
        return;
    }
    memcpy(code->bytes + code->size, bytes, size);
    code->size += size;
}

/* Bytes that are the same in every stub: EMIT(code, 0x50) is push %rax. */
#define EMIT(code, ...) \
    machine_code_bytes((code), (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static inline void machine_code_u32(struct machine_code *code, uint32_t value)
{
    machine_code_bytes(code, &value, sizeof(value));
}

/* The distance to `target` from the end of the instruction, which has `behind` more bytes after the distance.
 */
static inline void machine_code_distance(struct machine_code *code, uint64_t target, size_t behind)
{
    int64_t distance = (int64_t)(target - (machine_code_here(code) + sizeof(int32_t) + behind));

    if (distance != (int32_t)distance && !code->error)
        code->error = -ERANGE;
    machine_code_u32(code, (uint32_t)distance);
}

#endif
