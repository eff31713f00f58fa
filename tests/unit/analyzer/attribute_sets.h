/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the tests of lattice.c and similarity.c share: random sets of attributes. */
#ifndef TRACECTL_TESTS_ANALYZER_ATTRIBUTE_SETS_H
#define TRACECTL_TESTS_ANALYZER_ATTRIBUTE_SETS_H

#include "analyzer/cluster/attributes.h"

/* `count` sets of ids below `attributes`, each there with `percent` of a hundred; some sets occur twice. */
struct attribute_set *random_sets(uint64_t *seed, size_t count, uint32_t attributes, uint32_t percent);
void sets_free(struct attribute_set *sets, size_t count);

bool set_has(const struct attribute_set *set, uint32_t id);
size_t shared_count(const struct attribute_set *a, const struct attribute_set *b);

#endif
