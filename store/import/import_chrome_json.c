/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "store/import/import_chrome_json.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"

static int fail(struct chrome_json *json, FILE *in, const char *why)
{
    if (ferror(in))
        return error_say(json->err, -EIO, "importing %s: it cannot be read to its end", json->path);
    return error_say(json->err, -EBADMSG, "importing %s: behind event %llu: %s", json->path,
                     (unsigned long long)json->events, why);
}

/* The next character that is no white space, or EOF. */
static int next(FILE *in)
{
    int c;

    do
        c = getc(in);
    while (c == ' ' || c == '\t' || c == '\n' || c == '\r');
    return c;
}

/* A string behind its first quote; as much of it as there is room for, with escapes as they stand. */
static bool take_string(FILE *in, char *text, size_t size)
{
    size_t length = 0;
    int c;

    while ((c = getc(in)) != '"') {
        if (c == EOF)
            return false;
        if (length + 1 < size)
            text[length++] = (char)c;
        if (c == '\\' && getc(in) == EOF)
            return false;
    }
    if (size)
        text[length] = '\0';
    return true;
}

/* A value that nobody asked for, with its first character. */
static bool skip_value(FILE *in, int c)
{
    size_t depth = 0;

    if (c == EOF || c == ',' || c == '}' || c == ']' || c == ':')
        return false;
    for (;; c = getc(in)) {
        if (c == EOF || (c == '"' && !take_string(in, NULL, 0)))
            return false;
        if (!depth && (c == ',' || c == '}')) { /* behind a number or a word */
            ungetc(c, in);
            return true;
        }
        depth += c == '[' || c == '{';
        depth -= c == ']' || c == '}';
        if (!depth && (c == '"' || c == ']' || c == '}'))
            return true;
    }
}

/* An object behind its first brace, which is put back. */
static int visit_object(struct chrome_json *json, FILE *in, int (*visit)(void *, const json_t *))
{
    json_error_t why;
    json_t *object;
    int r;

    ungetc('{', in);
    object = json_loadf(in, JSON_DISABLE_EOF_CHECK, &why);
    if (!object)
        return json_error_code(&why) == json_error_out_of_memory ? error_no_memory(json->err)
                                                                 : fail(json, in, why.text);
    r = visit(json->context, object);
    json_decref(object);
    return r;
}

/* Events behind the bracket, with the bracket at the end. `may_end`: programs that die leave it out. */
static int read_events(struct chrome_json *json, FILE *in, bool may_end)
{
    bool separated = true;

    for (;;) {
        int c = next(in), r;

        if (c == ']' || (c == EOF && may_end && !ferror(in)))
            return 0;
        if (c == ',' && !separated) {
            separated = true;
            continue;
        }
        if (c != '{' || !separated)
            return fail(json, in, c == EOF ? "the file ends too early" : "an event or the end is expected");
        separated = false;
        r = visit_object(json, in, json->event);
        if (r)
            return r;
        json->events++;
    }
}

/* A member of the outermost object, behind its name's first quote. */
static int read_member(struct chrome_json *json, FILE *in)
{
    char name[32];
    int c;

    if (!take_string(in, name, sizeof(name)) || next(in) != ':')
        return fail(json, in, "a name is expected");
    c = next(in);
    if (c == '[' && !strcmp(name, "traceEvents"))
        return read_events(json, in, false);
    if (c == '{' && !strcmp(name, "otherData"))
        return visit_object(json, in, json->other);
    return skip_value(in, c) ? 0 : fail(json, in, "a value is expected");
}

static int read_members(struct chrome_json *json, FILE *in)
{
    int c = next(in);

    if (c == '}')
        return 0;
    for (;; c = next(in)) {
        int r = c == '"' ? read_member(json, in) : fail(json, in, "a name is expected");

        if (r)
            return r;
        c = next(in);
        if (c == '}')
            return 0;
        if (c != ',')
            return fail(json, in, c == EOF ? "the file ends too early" : "a comma is expected");
    }
}

int chrome_json_read(struct chrome_json *json, FILE *in)
{
    int c = next(in), r;

    json->events = 0;
    if (c != '[' && c != '{')
        return fail(json, in, "neither an array nor an object begins here");
    r = c == '[' ? read_events(json, in, true) : read_members(json, in);
    if (!r && next(in) != EOF)
        r = fail(json, in, "unexpected data after the end");
    return r;
}
