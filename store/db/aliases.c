/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/db/aliases.h"

#include <errno.h>
#include <string.h>

void aliases_free(char **names)
{
    for (char **name = names; name && *name; name++)
        free(*name);
    free(names);
}

int aliases_join(char *const *names, char **ret_text)
{
    size_t size = 0, at = 0;
    char *text;

    for (char *const *name = names; name && *name; name++)
        size += strlen(*name) + 1;
    *ret_text = NULL;
    if (!size)
        return 0;
    text = malloc(size);
    if (!text)
        return -ENOMEM;
    for (char *const *name = names; *name; name++) {
        size_t length = strlen(*name);

        memcpy(text + at, *name, length);
        text[at + length] = '\n';
        at += length + 1;
    }
    text[size - 1] = '\0';
    *ret_text = text;
    return 0;
}

int aliases_split(const char *text, char ***ret_names)
{
    AUTO_ALIASES char **names = NULL;
    size_t lines = 1;

    *ret_names = NULL;
    if (!text || !*text)
        return 0;
    for (const char *at = text; *at; at++)
        lines += *at == '\n';
    names = calloc(lines + 1, sizeof(*names));
    if (!names)
        return -ENOMEM;
    for (size_t i = 0; i < lines; i++) {
        size_t length = strcspn(text, "\n");

        names[i] = strndup(text, length);
        if (!names[i])
            return -ENOMEM;
        text += length + (text[length] == '\n');
    }
    *ret_names = take_pointer(names);
    return 0;
}
