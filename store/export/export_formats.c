/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/export/export_formats.h"

#include <string.h>

extern const struct export_format export_callgrind, export_chrome, export_csv, export_dot, export_folded,
    export_json, export_otf2, export_perfetto, export_pprof, export_speedscope;

static const struct export_format no_more = {0};

const struct export_format *const export_formats[] = {
    &export_chrome, &export_perfetto, &export_speedscope, &export_pprof, &export_callgrind, &export_folded,
    &export_otf2,   &export_dot,      &export_csv,        &export_json,  &no_more};

const struct export_format *export_format_find(const char *name)
{
    for (size_t i = 0; export_formats[i]->name; i++)
        if (!strcmp(export_formats[i]->name, name))
            return export_formats[i];
    return NULL;
}

int export_write(const struct export_format *format, struct tracestore *store,
                 const struct tracestore_run *run, const struct export_options *options, FILE *out,
                 struct export_totals *ret_totals, struct error *err)
{
    return format->write(store, run, options, out, ret_totals, err);
}
