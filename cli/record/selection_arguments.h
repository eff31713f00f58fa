/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The options of `tracectl record` that select which functions of which images are probed. */
#ifndef TRACECTL_CLI_RECORD_SELECTION_ARGUMENTS_H
#define TRACECTL_CLI_RECORD_SELECTION_ARGUMENTS_H

#include <argp.h>
#include <stdbool.h>

#include "collector/images/image_table.h"

struct elf_image;
struct image_function;

/* Parses into a struct record_arguments. */
extern const struct argp selection_argp;

/* Whether a function is probed: it was chosen, or opens windows. `arguments`: a struct record_arguments; the
 * signatures are those of recorder_options.want, asked_name and want_image. */
bool record_arguments_wants(void *arguments, struct elf_image *image, const struct image_function *function);

/* The name by which a function was asked for, as function_choice_name(). */
const char *record_arguments_name(void *arguments, struct elf_image *image,
                                  const struct image_function *function);
bool record_arguments_wants_image(void *arguments, const char *path, enum image_kind kind);

#endif
