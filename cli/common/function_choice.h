/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which functions of which images a recording probes: --images, --functions, --exclude, --filter and
 * --source. Functions that are not selected cost nothing. */
#ifndef TRACECTL_CLI_COMMON_FUNCTION_CHOICE_H
#define TRACECTL_CLI_COMMON_FUNCTION_CHOICE_H

#include <argp.h>
#include <regex.h>
#include <stdbool.h>

#include "cli/common/asked.h"
#include "collector/images/image_table.h"
#include "image/functions/functions.h"

struct error;

struct filter;
struct filter_library;

/* All zero chooses every function. */
struct function_choice {
    bool has_only, has_exclude;
    regex_t only, exclude;
    struct filter_library *library; /* of the filter */
    struct filter *filter;
    char *sources; /* a list of globs with commas between them; NULL: wherever the source lies */
    char *images;  /* a list of globs with commas between them, 'main' and 'all' among them; NULL: main */
    const char *only_option; /* what the user calls `only`; NULL: --functions */
    struct asked asked; /* what all of them ask for, and what the functions and images that were asked about
                           have met of it */
};

/* A later one replaces the one before. -EINVAL: not a regular expression. */
int function_choice_only(struct function_choice *choice, const char *expression, struct error *err);
int function_choice_exclude(struct function_choice *choice, const char *expression, struct error *err);

/* The sets are the predefined ones and those of `file`, or of the default file where that is NULL
 * (filter_file.h). -EINVAL: no such set, or the filter has terms about returns or K, which a recording
 * has no use for; else the file cannot be read. */
int function_choice_filter(struct function_choice *choice, const char *spec, const char *file,
                           struct error *err);

int function_choice_images(struct function_choice *choice, const char *list, struct error *err);

/* Globs are those of analyzer/symbols/path_glob.h. Functions whose source is not known match nothing. */
int function_choice_sources(struct function_choice *choice, const char *list, struct error *err);

/* Whether images other than the programs themselves may be probed: --images names some, or the filter does
 * (image:libc*) and --images is not given. */
bool function_choice_has_images(const struct function_choice *choice);

/* Whether an image is to be probed, which meets globs; the signature is that of recorder_options.want_image.
 * Globs are those of analyzer/symbols/path_glob.h, for the path as the process sees it. */
bool function_choice_wants_image(void *choice, const char *path, enum image_kind kind);

/* Whether the function is to be probed, which meets what asks for it; the signature is that of
 * recorder_options.want. The expressions are matched against all of its names as the image spells them, with
 * "@plt" and without, and the demangled ones. */
bool function_choice_wants(void *choice, struct elf_image *image, const struct image_function *function);

/* The name by which a wanted function was asked for: the first one that --functions or, without it, --filter
 * matches, else its own. It is the function's name or one of its aliases. */
const char *function_choice_name(void *choice, struct elf_image *image,
                                 const struct image_function *function);

/* An option's argument for one of the above; a usage error when it is refused. */
void function_choice_parse(int (*add)(struct function_choice *, const char *, struct error *),
                           struct function_choice *choice, const char *text, const struct argp_state *state);

void function_choice_release(struct function_choice *choice);

#endif
