/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which functions of which images a recording probes: --images, --functions, --exclude, --filter and
 * --source. What is left out costs nothing. */
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
    char *sources; /* a list of globs with commas between them; NULL: wherever the source lies */
    char *images;  /* a list of globs with commas between them, 'main' and 'all' among them; NULL: main */
};

/* Each may be given once; a later one replaces it. -EINVAL: not a regular expression, no such set. */
int function_choice_only(struct function_choice *choice, const char *expression, struct error *err);
int function_choice_exclude(struct function_choice *choice, const char *expression, struct error *err);
int function_choice_filter(struct function_choice *choice, const char *names, struct error *err);

int function_choice_images(struct function_choice *choice, const char *list, struct error *err);

/* A glob is matched against the source file's path, or against any folder or file at its end: "src/net"
 * matches
 * "/build/x/src/net/tcp.c". Functions whose source is not known match nothing. */
int function_choice_sources(struct function_choice *choice, const char *list, struct error *err);

/* Whether an image is to be probed; the signature is that of recorder_options.want_image. A glob without a
 * slash is matched against the file name, one with a slash against the path as the process sees it. */
bool function_choice_wants_image(void *choice, const char *path, enum image_kind kind);

/* Whether the function is to be probed; the signature is that of recorder_options.want. The expressions are
 * matched against the name as the image spells it, with "@plt" and without, and the demangled one. */
bool function_choice_wants(void *choice, struct elf_image *image, const struct image_function *function);

void function_choice_release(struct function_choice *choice);

#endif
