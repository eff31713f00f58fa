/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analyzer/go/places.h"
#include "store/db/db.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct place {
    uint32_t function_id;
    char *function, *file;
    int line;
    UT_hash_handle hh;
};

struct go_places {
    struct tracestore *store;
    sqlite3_stmt *statement; /* NULL until the first look */
    struct place *places;
};

static void place_free(struct place *place)
{
    free(place->function);
    free(place->file);
    free(place);
}

int go_places_new(struct tracestore *store, struct go_places **ret_places)
{
    struct go_places *places = calloc(1, sizeof(*places));

    if (!places)
        return -ENOMEM;
    places->store = store;
    *ret_places = places;
    return 0;
}

void go_places_free(struct go_places *places)
{
    struct place *place, *next;

    if (!places)
        return;
    HASH_ITER (hh, places->places, place, next) {
        HASH_DEL(places->places, place);
        place_free(place);
    }
    sqlite3_finalize(places->statement);
    free(places);
}

/* The function's name without the operation behind its last ':'. */
static char *copy_function(const char *name)
{
    const char *colon = name ? strrchr(name, ':') : NULL;

    if (!name)
        return strdup("");
    return colon ? strndup(name, (size_t)(colon - name)) : strdup(name);
}

static int read_place(struct go_places *places, struct place *place)
{
    static const char sql[] = "SELECT name, file, line FROM functions WHERE function_id = ?1";
    sqlite3 *db = tracestore_db(places->store);
    const char *name = NULL, *file = NULL;
    int r;

    if (!places->statement && sqlite3_prepare_v2(db, sql, -1, &places->statement, NULL) != SQLITE_OK)
        return -EIO;
    sqlite3_bind_int64(places->statement, 1, place->function_id);
    r = db_row(places->statement, "tTI");
    if (r == SQLITE_ROW) {
        name = (const char *)sqlite3_column_text(places->statement, 0);
        file = (const char *)sqlite3_column_text(places->statement, 1);
        place->line = sqlite3_column_int(places->statement, 2);
    }
    place->function = copy_function(name);
    place->file = strdup(file ? file : "");
    sqlite3_reset(places->statement);
    if (r != SQLITE_ROW && r != SQLITE_DONE)
        return -EIO;
    return place->function && place->file ? 0 : -ENOMEM;
}

static int add_place(struct go_places *places, uint32_t function_id, struct place **ret_place)
{
    struct place *place = calloc(1, sizeof(*place)), *added;
    int r;

    if (!place)
        return -ENOMEM;
    place->function_id = function_id;
    r = read_place(places, place);
    if (!r) {
        HASH_ADD(hh, places->places, function_id, sizeof(function_id), place);
        HASH_FIND(hh, places->places, &function_id, sizeof(function_id), added);
        r = added ? 0 : -ENOMEM;
    }
    if (r < 0) {
        place_free(place);
        return r;
    }
    *ret_place = place;
    return 0;
}

static int find_place(void *context, uint32_t function_id, struct go_place *ret_place)
{
    struct go_places *places = context;
    struct place *place = NULL;
    int r = 0;

    HASH_FIND(hh, places->places, &function_id, sizeof(function_id), place);
    if (!place)
        r = add_place(places, function_id, &place);
    if (r < 0)
        return r;
    *ret_place = (struct go_place){place->function, place->file, place->line};
    return 0;
}

struct go_place_source go_places_source(struct go_places *places)
{
    return (struct go_place_source){find_place, places};
}
