/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/symbols/symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "base/array.h"

struct symbol {
    char *name, *demangled;      /* as the catalog has them */
    char *bare, *bare_demangled; /* the same without "@plt"; NULL: not a stub */
    uint32_t number;             /* SYMBOL_DROPPED: mentioned only */
    UT_hash_handle hh;
};

size_t symbols_bare_length(const char *name)
{
    const char *suffix = strstr(name, "@plt");

    return suffix && suffix != name ? (size_t)(suffix - name) : strlen(name);
}

static void symbol_free(struct symbol *symbol)
{
    free(symbol->name);
    free(symbol->demangled);
    free(symbol->bare);
    free(symbol->bare_demangled);
    free(symbol);
}

void symbols_release(struct symbol_table *table)
{
    struct symbol *symbol, *next;

    HASH_ITER (hh, table->by_name, symbol, next) {
        HASH_DEL(table->by_name, symbol);
        symbol_free(symbol);
    }
    free(table->symbols);
    *table = (struct symbol_table){0};
}

static char *bare_copy(const char *name)
{
    size_t length = symbols_bare_length(name);

    return name[length] ? strndup(name, length) : NULL;
}

static int find_or_make(struct symbol_table *table, const char *name, struct symbol **ret_symbol)
{
    struct symbol *symbol;

    HASH_FIND_STR(table->by_name, name, symbol);
    if (!symbol) {
        symbol = calloc(1, sizeof(*symbol));
        if (!symbol)
            return -ENOMEM;
        symbol->number = SYMBOL_DROPPED;
        symbol->name = strdup(name);
        symbol->bare = bare_copy(name);
        if (symbol->name)
            HASH_ADD_KEYPTR(hh, table->by_name, symbol->name, strlen(symbol->name), symbol);
        if (!symbol->name || !symbol->hh.tbl) {
            symbol_free(symbol);
            return -ENOMEM;
        }
    }
    *ret_symbol = symbol;
    return 0;
}

int symbols_mention(struct symbol_table *table, const char *name)
{
    struct symbol *symbol;

    return find_or_make(table, name, &symbol);
}

int symbols_add(struct symbol_table *table, const char *name, const char *demangled, uint32_t *ret_symbol)
{
    struct symbol *symbol = NULL;
    int r = find_or_make(table, name, &symbol);

    if (r < 0)
        return r;
    if (symbol->number == SYMBOL_DROPPED) {
        size_t number = table->count ? table->count : 1; /* 0 is the return */

        if (!symbol->demangled)
            symbol->demangled = strdup(demangled ? demangled : name);
        if (!symbol->demangled || array_reserve(&table->symbols, &table->capacity, number + 1))
            return -ENOMEM;
        if (!symbol->bare_demangled)
            symbol->bare_demangled = bare_copy(symbol->demangled);
        table->symbols[0] = NULL;
        table->symbols[number] = symbol;
        table->count = number + 1;
        symbol->number = (uint32_t)number;
    }
    *ret_symbol = symbol->number;
    return 0;
}

/* Whether the stub's "@plt" is to be shown: a function of the bare name exists. */
static bool needs_suffix(const struct symbol_table *table, const struct symbol *symbol)
{
    struct symbol *other;

    HASH_FIND_STR(table->by_name, symbol->bare, other);
    return other;
}

const char *symbols_name(const struct symbol_table *table, uint32_t symbol)
{
    const struct symbol *found = symbol < table->count ? table->symbols[symbol] : NULL;

    if (!found)
        return SYMBOL_RETURN_NAME;
    return !found->bare || needs_suffix(table, found) ? found->name : found->bare;
}

const char *symbols_demangled(const struct symbol_table *table, uint32_t symbol)
{
    const struct symbol *found = symbol < table->count ? table->symbols[symbol] : NULL;

    if (!found)
        return SYMBOL_RETURN_NAME;
    return !found->bare || !found->bare_demangled || needs_suffix(table, found) ? found->demangled
                                                                                : found->bare_demangled;
}
