/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/symbols/filter_library.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "analyzer/symbols/filter_sets.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/foreign_file.h"

#define MOST_BYTES ((size_t)1 << 20) /* of a file of sets */

void filter_library_free(struct filter_library *library)
{
    if (!library)
        return;
    for (size_t i = 0; i < library->count; i++) {
        free(library->sets[i].name);
        filter_expression_release(&library->sets[i].expression);
    }
    free(library->sets);
    free(library);
}

DEFINE_CLEANUP(cleanup_library, struct filter_library *, filter_library_free)

/* Takes over what `set` has; on failure, too. */
static int add_set(struct filter_library *library, struct filter_library_set set, struct error *err)
{
    if (!set.name || array_reserve(&library->sets, &library->capacity, library->count + 1)) {
        free(set.name);
        filter_expression_release(&set.expression);
        return error_no_memory(err);
    }
    library->sets[library->count++] = set;
    return 0;
}

int filter_library_new(struct filter_library **ret_library, struct error *err)
{
    CLEANUP(cleanup_library) struct filter_library *library = calloc(1, sizeof(*library));

    if (!library)
        return error_no_memory(err);
    for (const struct filter_set *set = filter_sets; set->name; set++) {
        int r = 0;

        if (set->definition)
            r = add_set(library,
                        (struct filter_library_set){.name = strdup(set->name), .definition = set->definition},
                        err);
        if (r < 0)
            return r;
    }
    *ret_library = take_pointer(library);
    return 0;
}

/* ------------------------------------------------------------------------------------------ names */

/* Predefined sets are compiled when one is used; they use those above them, so this ends. */
static int compile_predefined(struct filter_library *library, size_t number, struct error *err)
{
    const char *definition = library->sets[number].definition;
    const struct filter_context context = {library, library->sets[number].name, number, true};
    int r = definition ? filter_expression_parse(&library->sets[number].expression, &context, definition, err)
                       : 0;

    if (r == 0)
        library->sets[number].definition = NULL;
    return r;
}

static bool is_named(const struct filter_library_set *set, const char *name, size_t length)
{
    return strlen(set->name) == length && !strncmp(set->name, name, length);
}

int filter_library_find(const struct filter_context *context, const char *name, size_t length,
                        size_t *ret_set, struct error *err)
{
    struct filter_library *library = context->library;

    for (size_t i = 0; i < context->sets; i++) {
        int r;

        if (!is_named(&library->sets[i], name, length))
            continue;
        r = compile_predefined(library, i, err);
        if (r == 0)
            *ret_set = i;
        return r;
    }
    for (const struct filter_set *set = filter_sets; set->name; set++)
        if (!set->definition && strlen(set->name) == length && !strncmp(set->name, name, length))
            return error_say(err, -EINVAL, "reading %s: '%s' is only allowed in --filter, without '!'",
                             context->where, set->name);
    return error_say(
        err, -EINVAL,
        "reading %s: there is no set '%.*s' (--help lists the predefined ones; a set of a file uses "
        "those of the lines above it)",
        context->where, (int)length, name);
}

bool filter_library_has(const struct filter_library *library, size_t set,
                        const struct filter_subject *subject)
{
    const struct filter_expression *expression = &library->sets[set].expression;

    return (!expression->has_positive || filter_expression_takes(expression, subject)) &&
           !filter_expression_drops(expression, subject);
}

/* ------------------------------------------------------------------------------------------ a file */

/* One line of the file, and where it stands. */
struct line {
    char where[300]; /* FILE:3 */
    char *text;      /* may be written to */
    unsigned number;
};

static char *trim(char *text)
{
    char *end = text + strlen(text);

    while (end > text && isspace((unsigned char)end[-1]))
        *--end = 0;
    return text + strspn(text, " \t\r\f\v");
}

static int check_name(const struct filter_library *library, const struct line *line, const char *name,
                      struct error *err)
{
    if (!isalpha((unsigned char)*name) ||
        name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")])
        return error_say(err, -EINVAL,
                         "reading %s: '%s' is not a valid set name (use letters, digits, '-' and '_')",
                         line->where, name);
    for (size_t i = 0; i < library->count; i++)
        if (!strcmp(library->sets[i].name, name))
            return library->sets[i].line
                       ? error_say(err, -EINVAL, "reading %s: line %u already defines set '%s'", line->where,
                                   library->sets[i].line, name)
                       : error_say(err, -EINVAL, "reading %s: '%s' is a predefined set (choose another name)",
                                   line->where, name);
    for (const struct filter_set *set = filter_sets; set->name; set++)
        if (!strcmp(set->name, name))
            return error_say(err, -EINVAL, "reading %s: '%s' is reserved (choose another name)", line->where,
                             name);
    return 0;
}

static int parse_line(struct filter_library *library, struct line *line, struct error *err)
{
    char *text = trim(line->text), *equals = strchr(text, '='), *name;
    struct filter_context context = {library, line->where, library->count, false};
    struct filter_library_set set = {.line = line->number};
    int r;

    if (!*text || *text == '#')
        return 0;
    if (!equals)
        return error_say(err, -EINVAL, "reading %s: there is no '=' (write NAME = SET, SET, ...)",
                         line->where);
    *equals = 0;
    name = trim(text);
    r = check_name(library, line, name, err);
    if (r == 0 && library->count >= FILTER_MOST_SETS)
        r = error_say(err, -EINVAL, "reading %s: too many sets (at most %u)", line->where, FILTER_MOST_SETS);
    if (r == 0)
        r = filter_expression_parse(&set.expression, &context, trim(equals + 1), err);
    if (r < 0) {
        filter_expression_release(&set.expression);
        return r;
    }
    set.name = strdup(name);
    return add_set(library, set, err);
}

int filter_library_parse(struct filter_library *library, const char *path, const char *text, size_t size,
                         struct error *err)
{
    AUTO_FREE char *copy = NULL;
    struct line line = {0};
    char *rest;

    if (size > MOST_BYTES || memchr(text, 0, size))
        return error_say(err, -EINVAL, "reading %s: not a list of filter sets", path);
    rest = copy = strndup(text, size);
    if (!copy)
        return error_no_memory(err);
    while ((line.text = strsep(&rest, "\n"))) {
        int r;

        snprintf(line.where, sizeof(line.where), "%.280s:%u", path, ++line.number);
        r = parse_line(library, &line, err);
        if (r < 0)
            return r;
    }
    return 0;
}

int filter_library_read(struct filter_library *library, const char *path, struct error *err)
{
    AUTO_FCLOSE FILE *file = NULL;
    AUTO_FREE char *text = malloc(MOST_BYTES + 1);
    int r = foreign_file_stream(path, "reading the filter sets of", &file, err);
    size_t size;

    if (r < 0)
        return r;
    if (!text)
        return error_no_memory(err);
    size = fread(text, 1, MOST_BYTES + 1, file);
    if (ferror(file))
        return error_set(err, errno ? -errno : -EIO, NULL, "reading the filter sets of %s", path);
    return filter_library_parse(library, path, text, size, err);
}
