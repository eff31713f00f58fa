/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The first line is a filter's specification, the second a custom expression, the third a function's name,
 * the rest a file of sets. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/symbols/filter.h"
#include "base/error.h"

/* The C library takes as long as it likes for a{1000}{1000} and for globs of many stars: it is not what is
 * tested here. */
static int is_harmless(const char *text)
{
    size_t stars = 0;

    for (const char *c = text; *c; c++)
        stars += *c == '*' || *c == '+' || *c == '{' || *c == '(' || *c == '[';
    return stars <= 2 && strlen(text) < 400;
}

static void check(struct filter_library *library, const char *spec, const char *custom, const char *name)
{
    const struct filter_function function = {name, "f(int)", "/lib/libc.so.6", "/x/src/net/tcp.c"};
    struct filter *filter = NULL;
    struct error err = {0};

    if (filter_new_with(library, spec, custom, &filter, &err) < 0) {
        if (!err.message[0] || err.code >= 0 || filter)
            abort();
        return;
    }
    filter_keeps(filter, &function);
    filter_asks_source(filter);
    filter_takes_image(filter, function.image);
    if (filter_max_body(filter) > 1000)
        abort();
    filter_free(filter);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), *rest = text, *spec, *custom, *name;
    struct filter_library *library = NULL;
    struct error err = {0};

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    if (filter_library_new(&library, NULL))
        abort();
    spec = strsep(&rest, "\n");
    custom = rest ? strsep(&rest, "\n") : NULL;
    name = rest ? strsep(&rest, "\n") : NULL;
    if (is_harmless(spec) && (!custom || is_harmless(custom)) && (!rest || is_harmless(rest))) {
        if (rest && filter_library_parse(library, "sets", rest, strlen(rest), &err) < 0) {
            if (!strstr(err.message, "sets") || err.code >= 0)
                abort();
        } else {
            check(library, spec, custom && *custom ? custom : NULL, name ? name : spec);
        }
    }
    filter_library_free(library);
    free(text);
    return 0;
}
