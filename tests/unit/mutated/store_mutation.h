/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Stores that are damaged, or were changed by somebody who wants a reader to fail; the same number makes the
 * same one. */
#ifndef TESTS_MUTATED_STORE_MUTATION_H
#define TESTS_MUTATED_STORE_MUTATION_H

#include <stdint.h>

/* Changes the store at `path`, which nobody has open, in one of a number of ways: bytes, pages, the file's
 * length, values of any type in any column, payloads whose checksum is right, the schema. */
void store_mutate(const char *path, uint64_t number);

#endif
