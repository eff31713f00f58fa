/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which functions of which images a recording probes: --images, --functions, --exclude and --filter. What is
 * left out costs nothing. */
#ifndef TRACECTL_CLI_FUNCTION_CHOICE_H
#define TRACECTL_CLI_FUNCTION_CHOICE_H

#include <regex.h>
#include <stdbool.h>

#include "base/error.h"
#include "collector/image_table.h"
#include "image/functions.h"

struct filter;

/* All zero chooses every function. */
struct function_choice {
    bool has_only, has_exclude;
    regex_t only, exclude;
    struct filter *filter;
    char *images; /* a list of globs with commas between them, 'main' and 'all' among them; NULL: main */
};

/* Each may be given once; a later one replaces it. -EINVAL: not a regular expression, no such set. */
int function_choice_only(struct function_choice *choice, const char *expression, struct error *err);
int function_choice_exclude(struct function_choice *choice, const char *expression, struct error *err);
int function_choice_filter(struct function_choice *choice, const char *names, struct error *err);

int function_choice_images(struct function_choice *choice, const char *list, struct error *err);

/* Whether an image is to be probed; the signature is that of recorder_options.want_image. A glob without a
 * slash is matched against the file name, one with a slash against the path as the process sees it. */
bool function_choice_wants_image(void *choice, const char *path, enum image_kind kind);

/* Whether the function is to be probed; the signature is that of recorder_options.want. The expressions are
 * matched against the name as the image spells it, without "@plt", and the demangled one. */
bool function_choice_wants(void *choice, const struct image_function *function);

void function_choice_release(struct function_choice *choice);

#endif
