/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/symbols/filter_expression.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "analyzer/symbols/filter_library.h"
#include "analyzer/symbols/path_glob.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"

static void term_release(struct filter_term *term)
{
    if (term->kind == FILTER_TERM_REGEX)
        regfree(&term->regex);
    free(term->glob);
}

void filter_expression_release(struct filter_expression *expression)
{
    for (size_t i = 0; i < expression->count; i++)
        term_release(&expression->terms[i]);
    free(expression->terms);
    *expression = (struct filter_expression){0};
}

/* ------------------------------------------------------------------------------------------ words */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Where the term that begins at `term` ends: at a comma, in a regular expression at one behind a slash. */
static const char *term_end(const char *term)
{
    const char *slash = term + (*term == '!' || *term == '-');

    if (*slash == '/')
        while ((slash = strchr(slash + 1, '/'))) {
            const char *behind = slash + 1 + strspn(slash + 1, " \t");

            if (!*behind || *behind == ',')
                return behind;
        }
    return term + strcspn(term, ",");
}

bool filter_next_term(const char **text, const char **ret_term, size_t *ret_length)
{
    const char *term = *text, *end;

    if (!term)
        return false;
    term += strspn(term, " \t");
    end = term_end(term);
    *text = *end ? end + 1 : NULL;
    while (end > term && is_blank(end[-1]))
        end--;
    *ret_term = term;
    *ret_length = (size_t)(end - term);
    return true;
}

/* ------------------------------------------------------------------------------------------ terms */

static int compile(regex_t *regex, const char *expression, struct error *err)
{
    char reason[120];
    int code = regcomp(regex, expression, REG_EXTENDED | REG_NOSUB);

    if (!code)
        return 0;
    regerror(code, regex, reason, sizeof(reason));
    for (char *c = reason; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return error_say(err, code == REG_ESPACE ? -ENOMEM : -EINVAL,
                     "reading the regular expression '%s': %s (write a POSIX extended expression)",
                     expression, reason);
}

static int append(struct filter_expression *expression, const struct filter_term *term, struct error *err)
{
    if (array_reserve(&expression->terms, &expression->capacity, expression->count + 1))
        return error_no_memory(err);
    expression->terms[expression->count++] = *term;
    expression->has_positive |= !term->negative;
    return 0;
}

static int parse_regex(struct filter_term *term, const struct filter_context *context, const char *word,
                       size_t length, struct error *err)
{
    AUTO_FREE char *expression = NULL;
    struct error why = {0};
    int r;

    if (length < 3 || word[length - 1] != '/')
        return error_say(err, -EINVAL, "reading %s: '%.*s' does not end in a slash (write /EXPRESSION/)",
                         context->where, (int)length, word);
    expression = strndup(word + 1, length - 2);
    if (!expression)
        return error_no_memory(err);
    term->bare = context->predefined;
    r = compile(&term->regex, expression, &why);
    if (r < 0)
        return error_say(err, r, "reading %s: %s", context->where, why.message);
    term->kind = FILTER_TERM_REGEX;
    return 0;
}

/* "image:GLOB", "source:GLOB". Returns 1 when the word is neither. */
static int parse_glob(struct filter_term *term, const struct filter_context *context, const char *word,
                      size_t length, struct error *err)
{
    static const struct {
        const char *prefix;
        enum filter_term_kind kind;
    } kinds[] = {{"image:", FILTER_TERM_IMAGE}, {"source:", FILTER_TERM_SOURCE}};

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        size_t prefix = strlen(kinds[i].prefix);

        if (strncmp(word, kinds[i].prefix, prefix) != 0)
            continue;
        if (length <= prefix)
            return error_say(err, -EINVAL, "reading %s: a glob is missing after '%s' (for example %s)",
                             context->where, kinds[i].prefix, i ? "source:src/net/" : "image:libc*");
        term->glob = strndup(word + prefix, length - prefix);
        if (!term->glob)
            return error_no_memory(err);
        term->kind = kinds[i].kind;
        return 0;
    }
    return 1;
}

static bool is_word(const char *word, size_t length, const char *name)
{
    return strlen(name) == length && !strncmp(word, name, length);
}

static int parse_name(struct filter_term *term, const struct filter_context *context, const char *word,
                      size_t length, struct error *err)
{
    if (is_word(word, length, "everything")) {
        term->kind = FILTER_TERM_EVERYTHING;
        return 0;
    }
    if (is_word(word, length, "@plt")) {
        term->kind = FILTER_TERM_STUBS;
        return 0;
    }
    term->kind = FILTER_TERM_SET;
    return filter_library_find(context, word, length, &term->set, err);
}

static int parse_term(struct filter_term *term, const struct filter_context *context, const char *word,
                      size_t length, struct error *err)
{
    int r;

    if (!length)
        return error_say(err, -EINVAL, "reading %s: a term is missing (separate terms by single commas)",
                         context->where);
    if (*word == '/')
        return parse_regex(term, context, word, length, err);
    r = parse_glob(term, context, word, length, err);
    return r <= 0 ? r : parse_name(term, context, word, length, err);
}

int filter_expression_add(struct filter_expression *expression, const struct filter_context *context,
                          const char *word, size_t length, struct error *err)
{
    struct filter_term term = {.negative = length && (*word == '!' || *word == '-')};
    int r = parse_term(&term, context, word + term.negative, length - term.negative, err);

    if (r == 0)
        r = append(expression, &term, err);
    if (r < 0)
        term_release(&term);
    return r;
}

int filter_expression_add_regex(struct filter_expression *expression, const char *regex, struct error *err)
{
    struct filter_term term = {.kind = FILTER_TERM_REGEX};
    int r = compile(&term.regex, regex, err);

    if (r < 0)
        return r;
    r = append(expression, &term, err);
    if (r < 0)
        term_release(&term);
    return r;
}

int filter_expression_parse(struct filter_expression *expression, const struct filter_context *context,
                            const char *text, struct error *err)
{
    const char *term;
    size_t length;
    int r = 0;

    while (r == 0 && filter_next_term(&text, &term, &length))
        r = filter_expression_add(expression, context, term, length, err);
    return r;
}

/* ------------------------------------------------------------------------------------------ answers */

static bool matches(const regex_t *regex, const char *name)
{
    return name && !regexec(regex, name, 0, NULL, 0);
}

static bool matches_any(const struct filter_term *term, const struct filter_subject *subject)
{
    for (size_t i = 0; i < subject->name_count; i++) {
        const struct filter_name *name = &subject->names[i];

        if (matches(&term->regex, name->bare) ||
            (!term->bare && (matches(&term->regex, name->name) || matches(&term->regex, name->demangled))))
            return true;
    }
    return false;
}

static bool term_has(const struct filter_term *term, const struct filter_subject *subject)
{
    switch (term->kind) {
    case FILTER_TERM_SET:
        return subject->in_set[term->set];
    case FILTER_TERM_EVERYTHING:
        return true;
    case FILTER_TERM_STUBS:
        return strlen(subject->names->bare) != strlen(subject->names->name);
    case FILTER_TERM_REGEX:
        return matches_any(term, subject);
    case FILTER_TERM_IMAGE:
        return subject->image && *subject->image && path_glob_image(term->glob, subject->image);
    case FILTER_TERM_SOURCE:
        return subject->source && *subject->source && path_glob_source(term->glob, subject->source);
    }
    return false;
}

static bool any_has(const struct filter_expression *expression, const struct filter_subject *subject,
                    bool negative)
{
    for (size_t i = 0; i < expression->count; i++)
        if (expression->terms[i].negative == negative && term_has(&expression->terms[i], subject))
            return true;
    return false;
}

bool filter_expression_takes(const struct filter_expression *expression, const struct filter_subject *subject)
{
    return any_has(expression, subject, false);
}

bool filter_expression_drops(const struct filter_expression *expression, const struct filter_subject *subject)
{
    return any_has(expression, subject, true);
}
