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

int function_choice_images(struct function_choice *choice, const char *list, struct error *err)
{
    char *copy = strdup(list);

    if (!copy)
        return error_no_memory(err);
    free(choice->images);
    choice->images = copy;
    return *list ? 0 : error_say(err, -EINVAL, "--images names no image");
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

static bool matches(const regex_t *regex, const char *name, const char *demangled)
{
    return !regexec(regex, name, 0, NULL, 0) || (demangled && !regexec(regex, demangled, 0, NULL, 0));
}

bool function_choice_wants(void *context, const struct image_function *function)
{
    const struct function_choice *choice = context;
    AUTO_FREE char *name = NULL;
    char *suffix;

    if (!choice->has_only && !choice->has_exclude && !choice->filter)
        return true;
    name = strdup(function->name);
    if (!name)
        return false;
    suffix = function->flags & IMAGE_FUNCTION_PLT ? strstr(name, "@plt") : NULL;
    if (suffix)
        *suffix = '\0';
    if (choice->has_only && !matches(&choice->only, name, function->demangled))
        return false;
    if (choice->has_exclude && matches(&choice->exclude, name, function->demangled))
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
    *choice = (struct function_choice){0};
}
