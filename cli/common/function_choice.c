/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/common/function_choice.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/symbols/filter.h"
#include "analyzer/symbols/path_glob.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "cli/common/filter_file.h"
#include "image/functions/function_names.h"

static int compile(bool *has, regex_t *regex, const char *expression, struct error *err)
{
    char why[128];
    int code;

    if (*has)
        regfree(regex);
    *has = false;
    code = regcomp(regex, expression, REG_EXTENDED | REG_NOSUB);
    if (code) {
        regerror(code, regex, why, sizeof(why));
        return error_say(err, -EINVAL, "'%s' is not a regular expression: %s", expression, why);
    }
    *has = true;
    return 0;
}

int function_choice_only(struct function_choice *choice, const char *expression, struct error *err)
{
    const char *option = choice->only_option ? choice->only_option : "--functions";
    int r = compile(&choice->has_only, &choice->only, expression, err);

    return r ? r : asked_expression(&choice->asked, option, expression, err);
}

int function_choice_exclude(struct function_choice *choice, const char *expression, struct error *err)
{
    return compile(&choice->has_exclude, &choice->exclude, expression, err);
}

static void release_filter(struct function_choice *choice)
{
    asked_filter(&choice->asked, "--filter", "", NULL, NULL);
    filter_free(take_pointer(choice->filter));
    filter_library_free(take_pointer(choice->library));
}

int function_choice_filter(struct function_choice *choice, const char *spec, const char *file,
                           struct error *err)
{
    int r;

    release_filter(choice);
    r = filter_file_read(file, &choice->library, err);
    if (r == 0)
        r = filter_new_with(choice->library, spec, NULL, &choice->filter, err);
    if (r == 0 && filter_is_for_reading(choice->filter))
        return error_say(
            err, -EINVAL,
            "reading filter '%s': returns and K do not apply to recordings (name only sets; --returns "
            "selects how returns are detected)",
            spec);
    return r ? r : asked_filter(&choice->asked, "--filter", spec ? spec : "", choice->library, err);
}

static int keep_list(char **kept, const char *list, const char *option, struct error *err)
{
    char *copy = strdup(list);

    if (!copy)
        return error_no_memory(err);
    free(*kept);
    *kept = copy;
    return *list ? 0 : error_say(err, -EINVAL, "%s names nothing", option);
}

int function_choice_images(struct function_choice *choice, const char *list, struct error *err)
{
    int r = keep_list(&choice->images, list, "--images", err);

    return r ? r : asked_globs(&choice->asked, "--images", list, err);
}

int function_choice_sources(struct function_choice *choice, const char *list, struct error *err)
{
    int r = keep_list(&choice->sources, list, "--source", err);

    return r ? r : asked_globs(&choice->asked, "--source", list, err);
}

static bool matches_source(struct function_choice *choice, struct elf_image *image,
                           const struct image_function *function)
{
    bool matches = false;
    const char *file;
    unsigned line;

    if (!image_function_source(image, function, &file, &line))
        return false;
    for (size_t i = 0; i < choice->asked.count; i++) {
        struct asked_piece *piece = &choice->asked.pieces[i];

        if (strcmp(piece->option, "--source") != 0 || !path_glob_source(piece->text, file))
            continue;
        piece->met = true;
        matches = true;
    }
    return matches;
}

static bool matches_image(const char *pattern, const char *path, enum image_kind kind)
{
    if (!strcmp(pattern, "main"))
        return kind == IMAGE_MAIN;
    return !strcmp(pattern, "all") || path_glob_image(pattern, path);
}

bool function_choice_has_images(const struct function_choice *choice)
{
    return choice->images || (choice->filter && filter_takes_image(choice->filter, NULL));
}

bool function_choice_wants_image(void *context, const char *path, enum image_kind kind)
{
    struct function_choice *choice = context;
    bool matches = false;

    if (!choice->images)
        return kind == IMAGE_MAIN || filter_takes_image(choice->filter, path);
    for (size_t i = 0; i < choice->asked.count; i++) {
        struct asked_piece *piece = &choice->asked.pieces[i];

        if (strcmp(piece->option, "--images") != 0 || !matches_image(piece->text, path, kind))
            continue;
        piece->met = true;
        matches = true;
    }
    return matches;
}

static struct filter_function as_filters_see(const struct filter *filter, struct elf_image *image,
                                             const struct image_function *function)
{
    struct filter_function asked = {.name = function->name,
                                    .demangled = function->demangled,
                                    .image = elf_image_name(image),
                                    .aliases = function->aliases};
    unsigned line;

    if (filter_asks_source(filter) && !image_function_source(image, function, &asked.source, &line))
        asked.source = NULL;
    return asked;
}

static bool matches_filter(const struct filter *filter, struct elf_image *image,
                           const struct image_function *function)
{
    const struct filter_function asked = as_filters_see(filter, image, function);

    return filter_keeps(filter, &asked);
}

/* Notes which pieces of the expression and of the filter ask for the function. */
static void meet(struct function_choice *choice, struct elf_image *image,
                 const struct image_function *function)
{
    for (size_t i = 0; i < choice->asked.count; i++) {
        struct asked_piece *piece = &choice->asked.pieces[i];

        if (!piece->met && piece->has_regex)
            piece->met = image_function_matching_name(function, &piece->regex);
        else if (!piece->met && piece->filter)
            piece->met = matches_filter(piece->filter, image, function);
    }
}

bool function_choice_wants(void *context, struct elf_image *image, const struct image_function *function)
{
    struct function_choice *choice = context;

    if (choice->sources && !matches_source(choice, image, function))
        return false;
    if (choice->has_only && !image_function_matching_name(function, &choice->only))
        return false;
    meet(choice, image, function);
    if (choice->has_exclude && image_function_matching_name(function, &choice->exclude))
        return false;
    return !choice->filter || matches_filter(choice->filter, image, function);
}

const char *function_choice_name(void *context, struct elf_image *image,
                                 const struct image_function *function)
{
    const struct function_choice *choice = context;
    const char *name = choice->has_only ? image_function_matching_name(function, &choice->only) : NULL;
    struct filter_function asked;

    if (name || !choice->filter || !function->aliases)
        return name ? name : function->name;
    asked = as_filters_see(choice->filter, image, function);
    asked.aliases = NULL;
    if (filter_keeps(choice->filter, &asked))
        return function->name;
    asked.demangled = NULL;
    for (char **alias = function->aliases; *alias; alias++) {
        asked.name = *alias;
        if (filter_keeps(choice->filter, &asked))
            return *alias;
    }
    return function->name;
}

void function_choice_parse(int (*add)(struct function_choice *, const char *, struct error *),
                           struct function_choice *choice, const char *text, const struct argp_state *state)
{
    struct error err = {0};

    if (add(choice, text, &err))
        argp_error(state, "%s", err.message);
}

void function_choice_release(struct function_choice *choice)
{
    if (choice->has_only)
        regfree(&choice->only);
    if (choice->has_exclude)
        regfree(&choice->exclude);
    release_filter(choice);
    free(choice->images);
    free(choice->sources);
    asked_release(&choice->asked);
    *choice = (struct function_choice){0};
}
