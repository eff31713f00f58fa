/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Removing and keeping are different things in the papers: returns and stubs are removed by the two digits of
 * a code, sets are kept. A stub that a set keeps stays, whatever the digit says (11.plt.mem keeps the stubs).
 */
#include "analyzer/symbols/filter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/symbols/path_glob.h"
#include "analyzer/symbols/symbols.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/number.h"
#include "image/elf/demangle.h"

struct filter {
    struct filter_library *library, *own_library; /* the same one, or own_library is NULL */
    struct filter_expression expression;
    bool *used; /* by set: the expression uses it, or a set that it uses does */
    bool everything;
    bool keeps_returns, removes_stubs;
    bool is_for_reading;
    uint32_t max_body;
};

void filter_free(struct filter *filter)
{
    if (!filter)
        return;
    filter_expression_release(&filter->expression);
    filter_library_free(filter->own_library);
    free(filter->used);
    free(filter);
}

DEFINE_CLEANUP(cleanup_filter, struct filter *, filter_free)

/* ------------------------------------------------------------------------------------------ the papers'
 * codes */

static bool is_word(const char *word, size_t length, const char *name)
{
    return strlen(name) == length && !strncmp(word, name, length);
}

static int add_term(struct filter *filter, const char *term, size_t length, const char *where,
                    struct error *err)
{
    const struct filter_context context = {filter->library, where, filter->library->count, false};

    if (is_word(term, length, "everything")) {
        filter->everything = true;
        return 0;
    }
    return filter_expression_add(&filter->expression, &context, term, length, err);
}

/* The papers spell some sets in their own way. */
static int add_paper_term(struct filter *filter, const char *term, size_t length, const char *where,
                          struct error *err)
{
    static const struct {
        const char *paper;
        const char *name; /* NULL: said already */
    } spellings[] = {
        {"plt", "@plt"}, {"ompall", "omp"}, {"ompoll", "omp"}, {"mpiint", "mpi-internal"},
        {"cust", NULL},  {"custom", NULL},  {"ret", NULL},     {"returns", NULL},
    };

    for (size_t i = 0; i < ARRAY_SIZE(spellings); i++) {
        const char *name = spellings[i].name;

        if (is_word(term, length, spellings[i].paper))
            return name ? add_term(filter, name, strlen(name), where, err) : 0;
    }
    return add_term(filter, term, length, where, err);
}

static bool is_digit_flag(char c)
{
    return c == '0' || c == '1';
}

/* A papers' code begins with two flags and a point: no set has such a name. */
static bool is_paper_code(const char *spec)
{
    return is_digit_flag(spec[0]) && is_digit_flag(spec[1]) && spec[2] == '.';
}

/* The last part of a code: 0K10. */
static int parse_tail(struct filter *filter, const char *tail, const char *where, struct error *err)
{
    uint64_t max_body = 0;

    if (!is_digit_flag(tail[0]) || tail[1] != 'K' || !number_parse_count(tail + 2, &max_body) || !max_body ||
        max_body > 1000)
        return error_say(err, -EINVAL,
                         "reading %s: it does not end in 0K or 1K and a number from 1 to 1000 (for example "
                         "11.mem.ompcrit.cust.0K10)",
                         where);
    filter->max_body = (uint32_t)max_body;
    filter->everything |= tail[0] == '1';
    return 0;
}

static int parse_paper_code(struct filter *filter, const char *spec, const char *where, struct error *err)
{
    const char *part = spec + 3, *point;

    filter->keeps_returns = spec[0] == '0';
    filter->removes_stubs = spec[1] == '1';
    filter->is_for_reading = true;
    for (; (point = strchr(part, '.')); part = point + 1) {
        int r = add_paper_term(filter, part, (size_t)(point - part), where, err);

        if (r < 0)
            return r;
    }
    return parse_tail(filter, part, where, err);
}

/* ------------------------------------------------------------------------------------------ terms */

/* The words that say something about the whole filter. Returns false when it is none. */
static bool take_word(struct filter *filter, const char *term, size_t length)
{
    bool negative = *term == '!' || *term == '-';

    if (is_word(term, length, "plt")) {
        filter->removes_stubs = true;
        return true;
    }
    if (!is_word(term + negative, length - negative, "returns"))
        return false;
    filter->keeps_returns = negative;
    filter->is_for_reading = true;
    return true;
}

static int parse_terms(struct filter *filter, const char *spec, const char *where, struct error *err)
{
    const char *rest = *spec ? spec : NULL, *term;
    size_t length;

    while (filter_next_term(&rest, &term, &length)) {
        int r = take_word(filter, term, length) ? 0 : add_term(filter, term, length, where, err);

        if (r < 0)
            return r;
    }
    filter->everything |= !filter->expression.has_positive;
    return 0;
}

/* Marks the sets that the expression needs the answers of. A set uses those with smaller numbers only. */
static int find_used(struct filter *filter)
{
    const struct filter_library *library = filter->library;

    filter->used = calloc(library->count + 1, sizeof(*filter->used));
    if (!filter->used)
        return -ENOMEM;
    for (size_t set = library->count + 1; set-- > 0;) {
        const struct filter_expression *expression =
            set == library->count ? &filter->expression : &library->sets[set].expression;

        if (set < library->count && !filter->used[set])
            continue;
        for (size_t i = 0; i < expression->count; i++)
            if (expression->terms[i].kind == FILTER_TERM_SET)
                filter->used[expression->terms[i].set] = true;
    }
    return 0;
}

/* Takes over the library when `owned`; on failure, too. */
static int make(struct filter_library *library, bool owned, const char *spec, const char *custom,
                struct filter **ret_filter, struct error *err)
{
    CLEANUP(cleanup_filter) struct filter *filter = calloc(1, sizeof(*filter));
    char where[200];
    int r = 0;

    if (!filter) {
        if (owned)
            filter_library_free(library);
        return error_no_memory(err);
    }
    filter->library = library;
    filter->own_library = owned ? library : NULL;
    snprintf(where, sizeof(where), "filter '%.180s'", spec);
    if (custom)
        r = filter_expression_add_regex(&filter->expression, custom, err);
    if (r == 0)
        r = is_paper_code(spec) ? parse_paper_code(filter, spec, where, err)
                                : parse_terms(filter, spec, where, err);
    if (r < 0)
        return r;
    if (find_used(filter))
        return error_no_memory(err);
    *ret_filter = take_pointer(filter);
    return 0;
}

int filter_new_with(struct filter_library *library, const char *spec, const char *custom,
                    struct filter **ret_filter, struct error *err)
{
    return make(library, false, spec ? spec : "", custom, ret_filter, err);
}

int filter_new(const char *spec, const char *custom, struct filter **ret_filter, struct error *err)
{
    struct filter_library *library;
    int r = filter_library_new(&library, err);

    return r < 0 ? r : make(library, true, spec ? spec : "", custom, ret_filter, err);
}

/* ------------------------------------------------------------------------------------------ answers */

/* The names of a function, and what had to be made for them. */
struct names {
    struct filter_name one, *items; /* items: &one where there are no aliases */
    char **made;                    /* what the items borrow */
    size_t count, made_count;
};

static void names_release(struct names *names)
{
    for (size_t i = 0; i < names->made_count; i++)
        free(names->made[i]);
    free(names->made);
    if (names->items != &names->one)
        free(names->items);
}

static const char *keep_made(struct names *names, char *text)
{
    if (text)
        names->made[names->made_count++] = text;
    return text;
}

/* An item for `name`, whose bare and (if not given) demangled form may have to be made. Without memory for
 * these the name stands for itself. */
static void add_name(struct names *names, const char *name, const char *demangled, bool demangles)
{
    size_t length = symbols_bare_length(name);
    const char *bare = name[length] ? keep_made(names, strndup(name, length)) : name;

    if (demangles && !demangled && bare)
        demangled = keep_made(names, demangle(bare));
    names->items[names->count++] = (struct filter_name){name, bare ? bare : name, demangled};
}

/* -ENOMEM. */
static int names_init(struct names *names, const struct filter_function *function)
{
    size_t aliases = 0;

    while (function->aliases && function->aliases[aliases])
        aliases++;
    names->items = aliases ? calloc(aliases + 1, sizeof(*names->items)) : &names->one;
    names->made = calloc(2 * aliases + 1, sizeof(*names->made));
    if (!names->items || !names->made)
        return -ENOMEM;
    add_name(names, function->name, function->demangled, false);
    for (size_t i = 0; i < aliases; i++)
        add_name(names, function->aliases[i], NULL, true);
    return 0;
}

bool filter_keeps(const struct filter *filter, const struct filter_function *function)
{
    CLEANUP(names_release) struct names names = {0};
    bool in_set[FILTER_MOST_SETS], is_stub = function->name[symbols_bare_length(function->name)];
    struct filter_subject subject = {.image = function->image, .source = function->source, .in_set = in_set};

    if (names_init(&names, function))
        return false;
    subject.names = names.items;
    subject.name_count = names.count;
    for (size_t set = 0; set < filter->library->count; set++)
        if (filter->used[set])
            in_set[set] = filter_library_has(filter->library, set, &subject);
    if (!filter_expression_takes(&filter->expression, &subject) &&
        !(filter->everything && !(filter->removes_stubs && is_stub)))
        return false;
    return !filter_expression_drops(&filter->expression, &subject);
}

bool filter_keeps_returns(const struct filter *filter)
{
    return filter->keeps_returns;
}

bool filter_is_for_reading(const struct filter *filter)
{
    return filter->is_for_reading;
}

uint32_t filter_max_body(const struct filter *filter)
{
    return filter->max_body;
}

static bool asks_source(const struct filter_expression *expression)
{
    for (size_t i = 0; i < expression->count; i++)
        if (expression->terms[i].kind == FILTER_TERM_SOURCE)
            return true;
    return false;
}

bool filter_asks_source(const struct filter *filter)
{
    for (size_t set = 0; set < filter->library->count; set++)
        if (filter->used[set] && asks_source(&filter->library->sets[set].expression))
            return true;
    return asks_source(&filter->expression);
}

static bool takes_image(const struct filter_expression *expression, const char *path)
{
    for (size_t i = 0; i < expression->count; i++) {
        const struct filter_term *term = &expression->terms[i];

        if (term->kind == FILTER_TERM_IMAGE && !term->negative &&
            (!path || path_glob_image(term->glob, path)))
            return true;
    }
    return false;
}

bool filter_takes_image(const struct filter *filter, const char *path)
{
    for (size_t set = 0; set < filter->library->count; set++)
        if (filter->used[set] && takes_image(&filter->library->sets[set].expression, path))
            return true;
    return takes_image(&filter->expression, path);
}
