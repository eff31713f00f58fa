/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The first line is a filter's specification, the second a custom expression, the rest a function's name. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), *rest = text, *spec, *custom;
    struct filter *filter = NULL;
    struct error err = {0};

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;
    spec = strsep(&rest, "\n");
    custom = rest ? strsep(&rest, "\n") : NULL;
    /* The C library takes as long as it likes for a{1000}{1000}: its expressions are not what is tested here.
     */
    if (custom && (!*custom || strlen(custom) > 40 || strpbrk(custom, "{*+")))
        custom = NULL;
    if (filter_new(spec, custom, &filter, &err) < 0) {
        if (!err.message[0] || err.code >= 0 || filter)
            abort();
    } else {
        filter_keeps(filter, rest ? rest : spec, NULL);
        if (filter_max_body(filter) > 1000)
            abort();
        filter_free(filter);
    }
    free(text);
    return 0;
}
