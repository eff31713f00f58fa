/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Damage that knows what an ELF file is made of: most random bytes of a program are code, and harm nobody. */
#ifndef TRACECTL_TESTS_FUZZ_ELF_MUTATOR_H
#define TRACECTL_TESTS_FUZZ_ELF_MUTATOR_H

#include <stddef.h>
#include <stdint.h>

/* Changes one to eight things in `data`: fields of headers, tables and their entries, contents of any section
 * alike. Returns the new size, at most `size`. The same seed does the same. */
size_t elf_mutate(uint8_t *data, size_t size, unsigned seed);

#endif
