/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* FNV-1a: one number of many bytes, where nobody gains by two texts having the same one. */
#ifndef TRACECTL_BASE_FNV_H
#define TRACECTL_BASE_FNV_H

#include <stddef.h>
#include <stdint.h>

#define FNV_START UINT64_C(0xcbf29ce484222325)

/* Adds bytes to `hash`, which begins as FNV_START. */
static inline uint64_t fnv_add(uint64_t hash, const void *data, size_t size)
{
    const uint8_t *bytes = data;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

#endif
