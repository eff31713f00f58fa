/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/function_choice.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/filter.h"
#include "base/cleanup.h"

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

int function_choice_filter(struct function_choice *choice, const char *names, struct error *err)
{
    filter_free(choice->filter);
    choice->filter = NULL;
    return filter_new(names, NULL, &choice->filter, err);
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

/* Whether a glob matches the path or something at its end, as a whole or as a folder that the rest lies in.
 */
static bool matches_path(const char *pattern, const char *path)
{
    if (!fnmatch(pattern, path, FNM_PATHNAME | FNM_LEADING_DIR))
        return true;
    for (const char *part = strchr(path, '/'); part; part = strchr(part, '/'))
        if (!fnmatch(pattern, ++part, FNM_PATHNAME | FNM_LEADING_DIR))
            return true;
    return false;
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
        if (matches_path(pattern, file))
            return true;
    return false;
}

static bool matches_image(const char *pattern, const char *path, enum image_kind kind)
{
    const char *slash = strrchr(path, '/');

    if (!strcmp(pattern, "main"))
        return kind == IMAGE_MAIN;
    if (!strcmp(pattern, "all"))
        return true;
    return !fnmatch(pattern, strchr(pattern, '/') || !slash ? path : slash + 1, 0);
}

bool function_choice_wants_image(void *context, const char *path, enum image_kind kind)
{
    const struct function_choice *choice = context;
    AUTO_FREE char *list = strdup(choice->images);
    char *rest = list, *pattern;

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
    return !choice->filter || filter_keeps(choice->filter, function->name, function->demangled);
}

void function_choice_release(struct function_choice *choice)
{
    if (choice->has_only)
        regfree(&choice->only);
    if (choice->has_exclude)
        regfree(&choice->exclude);
    filter_free(choice->filter);
    free(choice->images);
    free(choice->sources);
    *choice = (struct function_choice){0};
}
