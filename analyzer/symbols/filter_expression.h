/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The language of filters: terms with commas between them, each of which names functions.
 *
 *   mpi             a set: predefined (filter_sets.h) or of the user's file (filter_library.h)
 *   everything      all functions
 *   @plt            stubs of library calls
 *   /^CPU_/         functions whose name matches a POSIX extended expression; it ends at the first slash that
 *                   a comma or the end follows
 *   image:libc*     functions of an image, by its file name or, with a slash, by its path
 *   source:src/net  functions whose source lies there (path_glob.h); unknown sources match nothing
 *   !mem, -mem      not these
 *
 * A function is in the expression when one of the terms has it, or there are only terms with a '!', and none
 * of the terms with a '!' has it. The order of the terms does not matter.
 */
#ifndef TRACECTL_ANALYZER_SYMBOLS_FILTER_EXPRESSION_H
#define TRACECTL_ANALYZER_SYMBOLS_FILTER_EXPRESSION_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

struct error;

struct filter_library;

enum filter_term_kind {
    FILTER_TERM_SET,
    FILTER_TERM_EVERYTHING,
    FILTER_TERM_STUBS,
    FILTER_TERM_REGEX,
    FILTER_TERM_IMAGE,
    FILTER_TERM_SOURCE,
};

struct filter_term {
    enum filter_term_kind kind;
    bool negative;
    size_t set;    /* FILTER_TERM_SET: its number in the library */
    char *glob;    /* FILTER_TERM_IMAGE, FILTER_TERM_SOURCE */
    regex_t regex; /* FILTER_TERM_REGEX */
    bool bare;     /* FILTER_TERM_REGEX: of a predefined set, for the mangled name without "@plt" alone */
};

/* An expression of zeros is empty: everything. */
struct filter_expression {
    struct filter_term *terms;
    size_t count, capacity;
    bool has_positive;
};

void filter_expression_release(struct filter_expression *expression);

/* Where a text comes from and what it may use. */
struct filter_context {
    struct filter_library *library;
    const char *where; /* for the error line: "filter 'mpi'", "FILE:3" */
    size_t sets;       /* the sets of the library that it may use: those with smaller numbers */
    bool predefined;
};

/* The next term of a text, without the blanks around it; false at the end. An empty text has no terms, and a
 * comma always stands between two. */
bool filter_next_term(const char **text, const char **ret_term, size_t *ret_length);

/* Adds one term. -EINVAL: it is none. */
int filter_expression_add(struct filter_expression *expression, const struct filter_context *context,
                          const char *term, size_t length, struct error *err);

/* Adds the functions that match a regular expression of the user's. */
int filter_expression_add_regex(struct filter_expression *expression, const char *regex, struct error *err);

/* Adds all terms of a text, of which there must be one. */
int filter_expression_parse(struct filter_expression *expression, const struct filter_context *context,
                            const char *text, struct error *err);

/* One of the names of a function. */
struct filter_name {
    const char *name, *bare, *demangled; /* bare: without "@plt"; demangled may be NULL */
};

/* What is asked about. A term that is about names has the function when it has one of them. */
struct filter_subject {
    const struct filter_name *names;
    size_t name_count;          /* at least one */
    const char *image, *source; /* paths; NULL or "": unknown */
    const bool *in_set;         /* by number: the answers for the sets that the expression uses */
};

/* Whether a term without a '!' has the function, and whether one with a '!' has it. */
bool filter_expression_takes(const struct filter_expression *expression,
                             const struct filter_subject *subject);
bool filter_expression_drops(const struct filter_expression *expression,
                             const struct filter_subject *subject);

#endif
