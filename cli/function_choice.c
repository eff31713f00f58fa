/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/function_choice.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/filter.h"
#include "analyzer/path_glob.h"
#include "base/cleanup.h"
#include "cli/filter_file.h"

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
    return compile(&choice->has_only, &choice->only, expression, err);
}

int function_choice_exclude(struct function_choice *choice, const char *expression, struct error *err)
{
    return compile(&choice->has_exclude, &choice->exclude, expression, err);
}

static void release_filter(struct function_choice *choice)
{
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
            "reading filter '%s': a recording has no use for what it says about returns or K (name "
            "the sets alone; --returns says how returns are known)",
            spec);
    return r;
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
    return keep_list(&choice->images, list, "--images", err);
}

int function_choice_sources(struct function_choice *choice, const char *list, struct error *err)
{
    return keep_list(&choice->sources, list, "--source", err);
}

static bool matches_source(const struct function_choice *choice, struct elf_image *image,
                           const struct image_function *function)
{
    AUTO_FREE char *list = strdup(choice->sources);
    char *rest = list, *pattern;
    const char *file;
    unsigned line;

    if (!image_function_source(image, function, &file, &line))
        return false;
    while ((pattern = strsep(&rest, ",")))
        if (path_glob_source(pattern, file))
            return true;
    return false;
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
    const struct function_choice *choice = context;
    AUTO_FREE char *list = NULL;
    char *rest, *pattern;

    if (!choice->images)
        return kind == IMAGE_MAIN || filter_takes_image(choice->filter, path);
    list = strdup(choice->images);
    rest = list;

    while ((pattern = strsep(&rest, ",")))
        if (matches_image(pattern, path, kind))
            return true;
    return false;
}

/* Whether an expression matches one of a function's names: `bare` is the mangled one without "@plt". */
static bool matches(const regex_t *regex, const struct image_function *function, const char *bare)
{
    return !regexec(regex, bare, 0, NULL, 0) || !regexec(regex, function->name, 0, NULL, 0) ||
           (function->demangled && !regexec(regex, function->demangled, 0, NULL, 0));
}

static bool matches_filter(const struct filter *filter, struct elf_image *image,
                           const struct image_function *function)
{
    struct filter_function asked = {function->name, function->demangled, elf_image_name(image), NULL};
    unsigned line;

    if (filter_asks_source(filter) && !image_function_source(image, function, &asked.source, &line))
        asked.source = NULL;
    return filter_keeps(filter, &asked);
}

bool function_choice_wants(void *context, struct elf_image *image, const struct image_function *function)
{
    const struct function_choice *choice = context;
    AUTO_FREE char *name = NULL;
    char *suffix;

    if (choice->sources && !matches_source(choice, image, function))
        return false;
    if (!choice->has_only && !choice->has_exclude && !choice->filter)
        return true;
    name = strdup(function->name);
    if (!name)
        return false;
    suffix = function->flags & IMAGE_FUNCTION_PLT ? strstr(name, "@plt") : NULL;
    if (suffix)
        *suffix = '\0';
    if (choice->has_only && !matches(&choice->only, function, name))
        return false;
    if (choice->has_exclude && matches(&choice->exclude, function, name))
        return false;
    return !choice->filter || matches_filter(choice->filter, image, function);
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
    *choice = (struct function_choice){0};
}
