/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where probes go that see functions which synchronise.
 *
 * A function is probed at the cheapest place of its entry block (collector/plan/site.h) up to which the
 * registers of its arguments have not changed; where that is not certain, at its first instruction. Where its
 * result counts, its RET instructions are probed, and those of the functions that it ends with a jump to: a
 * return is matched with its beginning by where the return address lies.
 */
#ifndef TRACECTL_COLLECTOR_SYNC_TARGETS_H
#define TRACECTL_COLLECTOR_SYNC_TARGETS_H

#include "collector/sync/functions.h"
#include "image/elf/elf_image.h"

struct sync_targets {
    unsigned long *offsets; /* in the file */
    uint64_t *cookies;      /* of struct wire_sync */
    bool *refused;          /* by the kernel */
    size_t count;
    size_t found; /* functions that have a place */
    char *missed; /* names of those that have none although the image has them; NULL: none */
};

/* Finds those of `wanted` that the image has, none if it has no function `beside` (NULL: whatever it has).
 * -ENOMEM, or the image cannot be read. The targets are to be
 * released in any case. */
int sync_targets_find(struct elf_image *image, const struct sync_function_spec *wanted, size_t count,
                      const char *beside, struct sync_targets *ret_targets, struct error *err);
void sync_targets_release(struct sync_targets *targets);

#endif
