/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The papers give names and examples, not expressions; those here are ours, and docs/analysis.md lists them.
 *
 * Removing and keeping are different things in the papers: returns and stubs are removed by the two digits of
 * a code, sets are kept. A stub that a set keeps stays, whatever the digit says (11.plt.mem keeps the stubs).
 */
#include "analyzer/filter.h"

#include <ctype.h>
#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/symbols.h"
#include "base/array.h"
#include "base/cleanup.h"

#define MPI_COLLECTIVES \
    "([Bb]arrier|[Bb]cast|[Rr]educe|[Rr]educe_scatter|[Rr]educe_scatter_block|[Aa]llreduce|[Gg]atherv?|" \
    "[Ss]catterv?|[Aa]llgatherv?|[Aa]lltoall[vw]?|[Ss]can|[Ee]xscan|[Nn]eighbor_allgatherv?|" \
    "[Nn]eighbor_alltoall[vw]?)"

enum { SET_RETURNS, SET_PLT, SET_AT_PLT, SET_EVERYTHING, SET_FIRST_REGULAR };

const struct filter_set filter_sets[] = {
    [SET_RETURNS] = {"returns", NULL, "remove returns (the default, see --with-returns)"},
    [SET_PLT] = {"plt", NULL, "remove stubs of library calls, unless a set keeps them"},
    [SET_AT_PLT] = {"@plt", NULL, "keep stubs of library calls"},
    [SET_EVERYTHING] = {"everything", NULL, "keep all functions"},
    {"mpi", "^(MPI_|mpi_[a-z0-9_]+_$)", "MPI calls, from C and Fortran"},
    {"mpiall", "MPI|^mpi_[a-z0-9_]+_$", "names with MPI in them: MPI_, PMPI_, MPID_, ..."},
    {"mpicol", "^MPI_I?" MPI_COLLECTIVES "(_init)?(_c)?$", "MPI collectives"},
    {"mpisr", "^MPI_(Send|Isend|Recv|Irecv|Wait)$", "MPI_Send, MPI_Isend, MPI_Recv, MPI_Irecv, MPI_Wait"},
    {"mpi-internal", "^(PMPI|MPID|MPIDI|MPIR|MPIC|MPIU|MPII|MPL|ompi|opal|orte|mca|ucp|ucs|uct|fi)_",
     "functions inside MPI libraries"},
    {"omp", "^(GOMP|omp|__kmpc)_", "OpenMP: GOMP_, omp_, __kmpc_"},
    {"ompcrit", "^(GOMP_critical_(name_)?(start|end)|__kmpc_(end_)?critical(_with_hint)?)$",
     "OpenMP critical sections"},
    {"ompmutex",
     "^(omp_(init|destroy|set|unset|test)_(nest_)?lock(_with_hint)?|gomp_mutex_.*|GOMP_atomic_(start|end))$",
     "OpenMP locks and atomic sections"},
    {"mem",
     "mem(p?cpy|ccpy|move|set|cmp|r?chr|mem|chk|align)|[aA]lloc|^(c?free|mmap(64)?|munmap|mremap|s?brk)$|"
     "^_Z(n[wa]|d[la])",
     "memory: memcpy, memset, malloc, free, new, mmap, ..."},
    {"net",
     "^_*(socket(pair)?|bind|listen|accept4?|connect|shutdown|(get|set)sockopt|send(to|m?msg|file)?|"
     "recv(from|m?msg)?|get(addr|name)info|gethostby.*)$|network|tcp|udp|sched",
     "network: sockets, tcp, sched, ..."},
    {"poll", "poll|yield|sched|^_*p?select$", "waiting: poll, epoll, select, yield, sched, ..."},
    {"str",
     "^_*(str|stp|wcs|wcp)n?(case)?(len|cpy|cat|cmp|coll|xfrm|r?chr|c?spn|pbrk|str|tok|sep|dup|to|error)",
     "strings: strlen, strcpy, strcmp, ..."},
    {"pthread", "^_*(pthread|thrd|mtx|cnd|sem)_", "POSIX and C threads"},
    {"alloc",
     "^_*(libc_)?(m|c|re|v|pv|aligned_|reallocarray|posix_mem|mem)(alloc|align)$|^(reallocarray|c?free)$|"
     "^_Z(n[wa]|d[la])",
     "allocation: malloc, calloc, realloc, free, new, delete, ..."},
    {"go-runtime", "^runtime[./]", "the Go runtime"},
    {"cxx-std", "^_ZT?h?[0-9n_]*N?K?(St|S[absiod]|9__gnu_cxx)", "the C++ standard library"},
    {NULL, NULL, NULL},
};

#define SET_COUNT (ARRAY_SIZE(filter_sets) - 1)

struct filter {
    bool chosen[SET_COUNT];
    regex_t compiled[SET_COUNT]; /* of the chosen sets that have an expression */
    regex_t custom;
    bool has_custom;
    bool keeps_returns, removes_stubs;
    uint32_t max_body;
};

void filter_free(struct filter *filter)
{
    if (!filter)
        return;
    for (size_t i = SET_FIRST_REGULAR; i < SET_COUNT; i++)
        if (filter->chosen[i])
            regfree(&filter->compiled[i]);
    if (filter->has_custom)
        regfree(&filter->custom);
    free(filter);
}

DEFINE_CLEANUP(cleanup_filter, struct filter *, filter_free)

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

static int choose(struct filter *filter, size_t set, struct error *err)
{
    int r = 0;

    if (filter->chosen[set])
        return 0;
    if (filter_sets[set].expression)
        r = compile(&filter->compiled[set], filter_sets[set].expression, err);
    if (r >= 0)
        filter->chosen[set] = true;
    return r;
}

static int choose_named(struct filter *filter, const char *name, size_t length, const char *spec,
                        struct error *err)
{
    for (size_t i = 0; i < SET_COUNT; i++)
        if (strlen(filter_sets[i].name) == length && !strncmp(filter_sets[i].name, name, length))
            return choose(filter, i, err);
    return error_say(err, -EINVAL, "reading filter '%s': there is no set '%.*s' (--help lists the sets)",
                     spec, (int)length, name);
}

/* The papers spell some sets in their own way. */
static int choose_paper(struct filter *filter, const char *name, size_t length, const char *spec,
                        struct error *err)
{
    static const struct {
        const char *paper;
        const char *name; /* NULL: nothing to choose */
    } spellings[] = {
        {"plt", "@plt"}, {"ompall", "omp"}, {"ompoll", "omp"},  {"mpiint", "mpi-internal"},
        {"cust", NULL},  {"custom", NULL},  {"ret", "returns"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(spellings); i++)
        if (strlen(spellings[i].paper) == length && !strncmp(spellings[i].paper, name, length))
            return spellings[i].name
                       ? choose_named(filter, spellings[i].name, strlen(spellings[i].name), spec, err)
                       : 0;
    return choose_named(filter, name, length, spec, err);
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
static int parse_tail(struct filter *filter, const char *tail, const char *spec, struct error *err)
{
    char *end = NULL;
    unsigned long max_body = 0;

    if (is_digit_flag(tail[0]) && tail[1] == 'K' && isdigit((unsigned char)tail[2]))
        max_body = strtoul(tail + 2, &end, 10);
    if (!end || *end || !max_body || max_body > 1000)
        return error_say(
            err, -EINVAL,
            "reading filter '%s': it does not end in 0K or 1K and a number from 1 to 1000 (write "
            "a code as in 11.mem.ompcrit.cust.0K10)",
            spec);
    filter->max_body = (uint32_t)max_body;
    return tail[0] == '1' ? choose(filter, SET_EVERYTHING, err) : 0;
}

static int parse_paper_code(struct filter *filter, const char *spec, struct error *err)
{
    const char *part = spec + 3, *point;

    filter->keeps_returns = spec[0] == '0';
    filter->removes_stubs = spec[1] == '1';
    for (; (point = strchr(part, '.')); part = point + 1) {
        int r = choose_paper(filter, part, (size_t)(point - part), spec, err);

        if (r < 0)
            return r;
    }
    return parse_tail(filter, part, spec, err);
}

static int parse_names(struct filter *filter, const char *spec, struct error *err)
{
    const char *name = spec;
    bool keeps = false;

    while (*name) {
        size_t length = strcspn(name, ",");
        int r = choose_named(filter, name, length, spec, err);

        if (r < 0)
            return r;
        name += length + (name[length] == ',');
    }
    filter->removes_stubs = filter->chosen[SET_PLT];
    for (size_t i = SET_AT_PLT; i < SET_COUNT; i++)
        keeps |= filter->chosen[i];
    return keeps || filter->has_custom ? 0 : choose(filter, SET_EVERYTHING, err);
}

int filter_new(const char *spec, const char *custom, struct filter **ret_filter, struct error *err)
{
    CLEANUP(cleanup_filter) struct filter *filter = calloc(1, sizeof(*filter));
    int r;

    if (!filter)
        return error_no_memory(err);
    if (custom) {
        r = compile(&filter->custom, custom, err);
        if (r < 0)
            return r;
        filter->has_custom = true;
    }
    if (!spec)
        spec = "";
    r = is_paper_code(spec) ? parse_paper_code(filter, spec, err) : parse_names(filter, spec, err);
    if (r < 0)
        return r;
    *ret_filter = take_pointer(filter);
    return 0;
}

static bool matches(const regex_t *regex, const char *name)
{
    return name && !regexec(regex, name, 0, NULL, 0);
}

/* The name without "@plt". The buffer is for names of ordinary length; a longer one goes to the heap. */
static const char *bare_name(const char *name, char *buffer, size_t size, char **heap)
{
    size_t length = symbols_bare_length(name);

    if (!name[length])
        return name;
    if (length < size) {
        memcpy(buffer, name, length);
        buffer[length] = 0;
        return buffer;
    }
    *heap = strndup(name, length);
    return *heap ? *heap : name;
}

bool filter_keeps(const struct filter *filter, const char *name, const char *demangled)
{
    AUTO_FREE char *heap = NULL;
    char buffer[256];
    const char *bare = bare_name(name, buffer, sizeof(buffer), &heap);
    bool is_stub = name[symbols_bare_length(name)];

    for (size_t i = SET_FIRST_REGULAR; i < SET_COUNT; i++)
        if (filter->chosen[i] && matches(&filter->compiled[i], bare))
            return true;
    if (filter->has_custom && (matches(&filter->custom, bare) || matches(&filter->custom, name) ||
                               matches(&filter->custom, demangled)))
        return true;
    if (filter->chosen[SET_AT_PLT] && is_stub)
        return true;
    return filter->chosen[SET_EVERYTHING] && !(filter->removes_stubs && is_stub);
}

bool filter_keeps_returns(const struct filter *filter)
{
    return filter->keeps_returns;
}

uint32_t filter_max_body(const struct filter *filter)
{
    return filter->max_body;
}
