/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "image/functions/function_names.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "image/elf/demangle.h"

static const char stub_suffix[] = "@plt";

/* The name without the suffix of a stub. NULL: no memory. */
static char *bare_name(const char *name, bool is_stub)
{
    const char *suffix = is_stub ? strstr(name, stub_suffix) : NULL;

    return suffix ? strndup(name, (size_t)(suffix - name)) : strdup(name);
}

int image_function_demangle(const char *name, bool is_stub, char **ret_demangled)
{
    AUTO_FREE char *bare = bare_name(name, is_stub);
    AUTO_FREE char *demangled = bare ? demangle(bare) : NULL;

    *ret_demangled = NULL;
    if (!bare)
        return -ENOMEM;
    if (demangled && is_stub && asprintf(ret_demangled, "%s%s", demangled, stub_suffix) < 0) {
        *ret_demangled = NULL; /* undefined after a failure */
        return -ENOMEM;
    }
    if (!is_stub)
        *ret_demangled = take_pointer(demangled);
    return 0;
}

int image_function_show_as(struct image_function *function, const char *alias)
{
    char *shown;

    if (image_function_demangle(alias, function->flags & IMAGE_FUNCTION_PLT, &shown) < 0)
        return -ENOMEM;
    if (!shown)
        shown = strdup(alias);
    if (!shown)
        return -ENOMEM;
    free(function->demangled);
    function->demangled = shown;
    return 0;
}

static bool matches(const regex_t *regex, const char *text)
{
    return text && !regexec(regex, text, 0, NULL, 0);
}

static bool matches_name(const regex_t *regex, const char *name, bool is_stub)
{
    AUTO_FREE char *bare = is_stub ? bare_name(name, is_stub) : NULL;
    AUTO_FREE char *demangled = NULL;

    if (matches(regex, name) || matches(regex, bare))
        return true;
    return image_function_demangle(name, is_stub, &demangled) == 0 && matches(regex, demangled);
}

const char *image_function_matching_name(const struct image_function *function, const regex_t *regex)
{
    bool is_stub = function->flags & IMAGE_FUNCTION_PLT;

    if (matches_name(regex, function->name, is_stub) || matches(regex, function->demangled))
        return function->name;
    for (char **alias = function->aliases; alias && *alias; alias++)
        if (matches_name(regex, *alias, is_stub))
            return *alias;
    return NULL;
}
