/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/serve/page.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/picture/markup.h"
#include "analyzer/report/html.h"
#include "base/cleanup.h"

void page_text(FILE *out, const char *text)
{
    markup_escape(out, text);
}

void page_begin(FILE *out, const char *format, ...)
{
    AUTO_FREE char *title = NULL;
    va_list values;

    va_start(values, format);
    if (vasprintf(&title, format, values) < 0)
        title = NULL;
    va_end(values);
    fputs(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\">\n"
        "<link rel=\"icon\" href=\"/assets/icon.svg\">\n<link rel=\"stylesheet\" href=\"/assets/style.css\">\n"
        "<script src=\"/assets/serve.js\" defer></script>\n<title>",
        out);
    page_text(out, title ? title : "");
    fputs(
        " - tracectl</title>\n</head>\n<body>\n<a class=\"skip\" href=\"#content\">To the content</a>\n"
        "<nav class=\"top\" aria-label=\"Pages\"><a href=\"/\">Runs</a><a href=\"/live\">Live</a>"
        "<a href=\"/sql\">SQL</a><a href=\"/api/v1/openapi.json\">API</a><a href=\"/metrics\">Metrics</a></nav>\n"
        "<main id=\"content\">\n<h1>",
        out);
    page_text(out, title ? title : "");
    fputs("</h1>\n", out);
}

void page_end(FILE *out)
{
    fputs("</main>\n</body>\n</html>\n", out);
}

void page_error(FILE *out, const char *reason)
{
    page_begin(out, "Not shown");
    fputs("<p class=\"summary\" role=\"alert\">", out);
    page_text(out, reason);
    fputs("</p>\n", out);
    page_end(out);
}

void page_count_cell(FILE *out, uint64_t count)
{
    char text[32];

    fprintf(out, "<td class=\"right\">%s</td>", html_count(count, text));
}

void page_time_cell(FILE *out, int64_t ns)
{
    if (ns < 0)
        fputs("<td class=\"right\">?</td>", out);
    else
        fprintf(out, "<td class=\"right\">%.3f ms</td>", (double)ns / 1e6);
}

/* As the value of a parameter in an address. */
static void put_encoded(FILE *out, const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at; at++)
        if ((*at < 0x80 && isalnum(*at)) || strchr("-_.~", *at))
            fputc(*at, out);
        else
            fprintf(out, "%%%02X", *at);
}

void page_function_link(FILE *out, const char *run, const char *name)
{
    fprintf(out, "<a href=\"/runs/%s/function?q=", run);
    put_encoded(out, name);
    fputs("\">", out);
    page_text(out, name);
    fputs("</a>", out);
}

void page_frame(FILE *out, const char *title, const char *address)
{
    fputs("<div class=\"table\" tabindex=\"0\"><iframe loading=\"lazy\" title=\"", out);
    page_text(out, title);
    fputs("\" src=\"", out);
    page_text(out, address);
    fputs("\"></iframe></div>\n", out);
}

const char *page_member(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

int64_t page_number(const json_t *object, const char *key, int64_t otherwise)
{
    const json_t *value = json_object_get(object, key);

    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

void metrics_put(FILE *out, const char *name, const char *type, const char *help, uint64_t value)
{
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n%s %" PRIu64 "\n", name, help, name, type, name, value);
}
