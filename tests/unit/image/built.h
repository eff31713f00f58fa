/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Programs that tests of image/ build with the real tools, in a folder that goes away with the test. */
#ifndef TRACECTL_TESTS_BUILT_H
#define TRACECTL_TESTS_BUILT_H

#include <stdbool.h>

#include "base/cleanup.h"
#include "image/functions/functions.h"

struct functions {
    struct image_function *items;
    size_t count;
};

void functions_release(struct functions *functions);
#define AUTO_FUNCTIONS CLEANUP(functions_release)

/* The function called `name`, or NULL. */
const struct image_function *functions_named(const struct functions *functions, const char *name);

/* The function that begins at `address`, or NULL. */
const struct image_function *functions_at(const struct functions *functions, uint64_t address);

/* A folder of this test's own, made when it is first asked for and deleted at the end of the process. */
const char *built_folder(void);

/* Runs a shell command in that folder; the test fails with its words when it fails. */
void built_run(const char *command, ...) __attribute__((format(printf, 1, 2)));

/* Writes `text` into the folder as `name`. */
void built_write(const char *name, const char *text);

/* Opens the image `name` of the folder. */
struct elf_image *built_open(const char *name);
struct functions built_functions(struct elf_image *image);

/* A program of which every compiler makes fragments: sources of `split.c`. The functions are work(), odd()
 * and main(), of which work() has a part that is hardly ever run. */
extern const char split_source[];

#endif
