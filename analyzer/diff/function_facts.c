/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/diff/function_facts.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "image/functions/functions.h"
#include "store/db/db.h"

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* ------------------------------------------------------------------------------------------ by name */

struct named {
    const char *name; /* the table of symbols' */
    uint32_t symbol;
    UT_hash_handle hh;
};

/* Symbols by the name that they are shown with. */
struct name_table {
    struct named *items;
    struct named *by_name;
};

static void name_table_release(struct name_table *names)
{
    HASH_CLEAR(hh, names->by_name);
    free(names->items);
}

static int name_table_init(struct name_table *names, const struct symbol_table *symbols)
{
    names->items = calloc(symbols->count + 1, sizeof(*names->items));
    if (!names->items)
        return -ENOMEM;
    for (uint32_t symbol = 1; symbol < symbols->count; symbol++) {
        struct named *item = &names->items[symbol];

        item->name = symbols_name(symbols, symbol);
        item->symbol = symbol;
        HASH_ADD_KEYPTR(hh, names->by_name, item->name, strlen(item->name), item);
        if (!item->hh.tbl)
            return -ENOMEM;
    }
    return 0;
}

/* The symbol of a catalog name; a stub is shown without its "@plt" where that says nothing. */
static uint32_t find_symbol(const struct name_table *names, const char *name)
{
    struct named *found;

    HASH_FIND_STR(names->by_name, name, found);
    if (!found) {
        size_t length = symbols_bare_length(name);

        HASH_FIND(hh, names->by_name, name, length, found);
    }
    return found ? found->symbol : SYMBOL_DROPPED;
}

/* ------------------------------------------------------------------------------------------ a run */

static void finalize(sqlite3_stmt **statement)
{
    sqlite3_finalize(*statement);
}

static int fail(const struct loop_source *source, struct error *err)
{
    return db_fail(tracestore_db(source->store), err, "cannot read the functions of a run");
}

static int prepare(const struct loop_source *source, const char *sql, sqlite3_stmt **ret_statement,
                   struct error *err)
{
    if (sqlite3_prepare_v2(tracestore_db(source->store), sql, -1, ret_statement, NULL) != SQLITE_OK ||
        sqlite3_bind_int64(*ret_statement, 1, source->run->run_id) != SQLITE_OK)
        return fail(source, err);
    return 0;
}

static int read_called(const struct name_table *names, const struct loop_source *source, bool faulty,
                       struct function_facts *facts, struct error *err)
{
    static const char sql[] =
        "SELECT f.name, coalesce(f.file, ''), coalesce(f.line, 0), f.size FROM functions f WHERE "
        "f.function_id IN (SELECT function_id FROM function_calls WHERE run_id = ?1)";
    CLEANUP(finalize) sqlite3_stmt *statement = NULL;
    int r = prepare(source, sql, &statement, err);

    while (r >= 0 && (r = db_row(statement, "ttin")) == SQLITE_ROW) {
        uint32_t symbol = find_symbol(names, (const char *)sqlite3_column_text(statement, 0));
        struct function_side *side;

        if (symbol == SYMBOL_DROPPED)
            continue;
        side = &facts->functions[symbol][faulty];
        side->called = true;
        side->in_program = IN_PROGRAM_YES;
        side->size = (uint64_t)sqlite3_column_int64(statement, 3);
        if (side->line)
            continue; /* functions of one name: the first place */
        free(side->file);
        side->file = strdup((const char *)sqlite3_column_text(statement, 1));
        side->line = sqlite3_column_int(statement, 2);
        if (!side->file)
            return error_no_memory(err);
    }
    return r < 0 ? r : r == SQLITE_DONE ? 0 : fail(source, err);
}

/* ------------------------------------------------------------------------------------------ the programs */

struct function_array {
    struct image_function *functions;
    size_t count;
};

static void function_array_release(struct function_array *array)
{
    image_functions_free(array->functions, array->count);
}

/* Marks the symbols that the image has. False: the image is not there any more, or another one is. */
static bool mark_image(const struct name_table *names, const char *path, const char *build_id, bool faulty,
                       struct function_facts *facts)
{
    AUTO_ELF_IMAGE struct elf_image *image = NULL;
    CLEANUP(function_array_release) struct function_array all = {0};
    const char *found;

    if (elf_image_open(path, &image, NULL) < 0)
        return false;
    found = elf_image_facts(image)->build_id;
    if (!found || strcmp(found, build_id) != 0 ||
        image_functions(image, &all.functions, &all.count, NULL) < 0)
        return false;
    for (size_t i = 0; i < all.count; i++) {
        uint32_t symbol = find_symbol(names, all.functions[i].name);

        if (symbol != SYMBOL_DROPPED)
            facts->functions[symbol][faulty].in_program = IN_PROGRAM_YES;
    }
    return true;
}

/* Whether functions that a run did not call are in its program all the same: in the images of those that it
 * did. */
static int read_programs(const struct name_table *names, const struct loop_source *source, bool faulty,
                         struct function_facts *facts, struct error *err)
{
    static const char sql[] =
        "SELECT DISTINCT i.path, i.build_id FROM functions f JOIN images i USING (image_id) WHERE "
        "f.function_id IN (SELECT function_id FROM function_calls WHERE run_id = ?1)";
    CLEANUP(finalize) sqlite3_stmt *statement = NULL;
    bool all_known = true;
    int r = prepare(source, sql, &statement, err);

    while (r >= 0 && (r = db_row(statement, "tt")) == SQLITE_ROW)
        all_known &= mark_image(names, (const char *)sqlite3_column_text(statement, 0),
                                (const char *)sqlite3_column_text(statement, 1), faulty, facts);
    if (r != SQLITE_DONE)
        return r < 0 ? r : fail(source, err);
    for (size_t symbol = 0; all_known && symbol < facts->count; symbol++)
        if (facts->functions[symbol][faulty].in_program == IN_PROGRAM_UNKNOWN)
            facts->functions[symbol][faulty].in_program = IN_PROGRAM_NO;
    return 0;
}

static bool lacks_function(const struct function_facts *facts, bool faulty)
{
    for (size_t symbol = 0; symbol < facts->count; symbol++)
        if (facts->functions[symbol][!faulty].called && !facts->functions[symbol][faulty].called)
            return true;
    return false;
}

static int read_facts(const struct loop_summary *summary, const struct loop_source *const sources[2],
                      struct function_facts *facts, struct error *err)
{
    CLEANUP(name_table_release) struct name_table names = {0};
    int r;

    facts->count = summary->symbols.count;
    facts->functions = calloc(facts->count + 1, sizeof(*facts->functions));
    if (!facts->functions || name_table_init(&names, &summary->symbols))
        return error_no_memory(err);
    r = read_called(&names, sources[0], false, facts, err);
    if (r >= 0)
        r = read_called(&names, sources[1], true, facts, err);
    for (int side = 0; side < 2 && r >= 0; side++)
        if (lacks_function(facts, side))
            r = read_programs(&names, sources[side], side, facts, err);
    return r;
}

int function_facts_read(const struct loop_summary *summary, const struct loop_source *normal,
                        const struct loop_source *faulty, struct function_facts *ret_facts, struct error *err)
{
    const struct loop_source *const sources[2] = {normal, faulty};
    struct function_facts facts = {0};
    int r = read_facts(summary, sources, &facts, err);

    if (r < 0) {
        function_facts_release(&facts);
        return r;
    }
    *ret_facts = facts;
    return 0;
}

void function_facts_release(struct function_facts *facts)
{
    for (size_t i = 0; i < facts->count && facts->functions; i++)
        for (int side = 0; side < 2; side++)
            free(facts->functions[i][side].file);
    free(facts->functions);
    *facts = (struct function_facts){0};
}

const struct function_side *function_facts_side(const struct function_facts *facts, uint32_t symbol,
                                                bool faulty)
{
    static const struct function_side nothing = {.file = ""};

    return symbol < facts->count ? &facts->functions[symbol][faulty] : &nothing;
}
