/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Import of .u16 directories: every word comes back, and what is damaged is refused and leaves nothing. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "store/import/import_u16.h"
#include "tests/unit/store/model.h"

struct place {
    char dir[64], path[80];
    struct tracestore *store;
    struct error err;
};

static void place_open(struct place *place)
{
    *place = (struct place){.dir = "/tmp/import-test-XXXXXX"};
    cr_assert(mkdtemp(place->dir));
    snprintf(place->path, sizeof(place->path), "%s/store.db", place->dir);
    cr_assert_eq(tracestore_open(place->path, TRACESTORE_CREATE, &place->store, &place->err), 0);
}

static void place_close(struct place *place)
{
    char command[128];

    tracestore_free(place->store);
    snprintf(command, sizeof(command), "rm -r '%s'", place->dir);
    cr_assert_eq(system(command), 0);
}

static void put(const struct place *place, const char *name, const void *bytes, size_t size)
{
    char path[160];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", place->dir, name);
    file = fopen(path, "w");
    cr_assert_eq(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static void put_words(const struct place *place, const char *name, const uint16_t *words, size_t count)
{
    uint8_t bytes[512];

    for (size_t i = 0; i < count; i++) {
        bytes[2 * i] = (uint8_t)words[i];
        bytes[2 * i + 1] = (uint8_t)(words[i] >> 8);
    }
    put(place, name, bytes, 2 * count);
}

static char *rows(struct place *place, const char *sql)
{
    struct model model = {.db = tracestore_db(place->store)};

    return model_rows(&model, sql);
}

static void check_rows(struct place *place, const char *sql, const char *expected)
{
    char *text = rows(place, sql);

    cr_assert_str_eq(text, expected, "%s", sql);
    free(text);
}

static const uint16_t plain[] = {1, 2, 0, 300, 0, 0, 1};
static const char names[] = "1 main\n2 f(int, char)\n300 _Z1gv\n";

static int import_folder(struct tracestore *store, const char *dir, const char *name, int64_t *ret_run_id,
                         struct error *err)
{
    struct u16_plan *plan = NULL;
    int r = u16_plan_new(dir, &plan, err);

    if (r == 0 && plan)
        r = u16_plan_write(plan, store, name, NULL, ret_run_id, err);
    u16_plan_free(plan);
    return r;
}

Test(import, words_come_back)
{
    struct place place;
    int64_t run_id = 0;

    place_open(&place);
    put_words(&place, "0.1.u16", plain, ARRAY_SIZE(plain));
    put(&place, ".info", names, sizeof(names) - 1);
    cr_assert_eq(import_folder(place.store, place.dir, "n", &run_id, &place.err), 0, "%s", place.err.message);
    check_rows(&place, "SELECT name FROM runs", "n\n");
    check_rows(&place, "SELECT label FROM threads", "0.1\n");
    check_rows(&place,
               "SELECT e.kind, f.name FROM events e JOIN functions f USING (function_id) ORDER BY seq",
               "call|main\ncall|f(int, char)\nreturn|f(int, "
               "char)\ncall|_Z1gv\nreturn|_Z1gv\nreturn|main\ncall|main\n");
    check_rows(&place, "SELECT name, state FROM open_calls", "main|open\n");
    place_close(&place);
}

/* A forked child's trace begins inside of its parent's calls. */
Test(import, returns_without_their_calls_are_losses)
{
    static const uint16_t child[] = {0, 2, 0, 0, 1, 0, 0};
    struct place place;
    int64_t run_id = 0;

    place_open(&place);
    put_words(&place, "0.1.u16", child, ARRAY_SIZE(child));
    put(&place, ".info", names, sizeof(names) - 1);
    cr_assert_eq(import_folder(place.store, place.dir, "n", &run_id, &place.err), 0, "%s", place.err.message);
    check_rows(&place, "SELECT kind FROM events ORDER BY seq",
               "lost\ncall\nreturn\nlost\ncall\nreturn\nlost\n");
    check_rows(&place, "SELECT seq, calls, returns, cause FROM losses ORDER BY seq",
               "0|1|1|a return without its call\n3|1|1|a return without its call\n"
               "6|1|1|a return without its call\n");
    place_close(&place);
}

Test(import, labels)
{
    static const char *const files[] = {"x.20.20.u16",  "x.20.31.u16", "x.20.25.u16", "x.9.8.u16",
                                        "x.9.9.u16",    "1.0.u16",     "1.2.u16",     "alone.u16",
                                        "y.1.2.3.u16x", "z.u16"};
    struct place place;
    int64_t run_id;

    place_open(&place);
    for (size_t i = 0; i < ARRAY_SIZE(files); i++)
        put_words(&place, files[i], plain, ARRAY_SIZE(plain));
    cr_assert_eq(import_folder(place.store, place.dir, NULL, &run_id, &place.err), 0, "%s",
                 place.err.message);
    /* alone, x.9, x.20, z in this order get the numbers that 1.* leave: 0, 2, 3, 4. */
    check_rows(&place, "SELECT label, pid, tid FROM threads JOIN processes USING (process_id) ORDER BY label",
               "0.0|0|0\n1.0|0|0\n1.2|0|0\n2.0|9|9\n2.1|9|8\n3.0|20|20\n3.1|20|25\n3.2|20|31\n4.0|0|0\n");
    check_rows(&place, "SELECT DISTINCT name FROM functions ORDER BY function_id",
               "function_1\nfunction_2\nfunction_300\n");
    place_close(&place);
}

/* The same name is the same function in another trace, under another number; two numbers of one name stay
 * two. */
Test(import, names_are_identity)
{
    static const uint16_t other[] = {7, 0, 8, 0, 9, 0};
    static const char other_names[] = "7 main\n8 twin\n9 twin\n";
    struct place place;
    int64_t run_id;

    place_open(&place);
    put_words(&place, "a.1.1.u16", plain, ARRAY_SIZE(plain));
    put(&place, "a.1.info", names, sizeof(names) - 1);
    put_words(&place, "b.2.2.u16", other, ARRAY_SIZE(other));
    put(&place, "b.2.info", other_names, sizeof(other_names) - 1);
    cr_assert_eq(import_folder(place.store, place.dir, NULL, &run_id, &place.err), 0, "%s",
                 place.err.message);
    check_rows(&place, "SELECT name, sum(calls) FROM call_counts GROUP BY function_id ORDER BY name",
               "_Z1gv|1\nf(int, char)|1\nmain|3\ntwin|1\ntwin|1\n");
    place_close(&place);
}

static void check_refused(const char *file, const void *bytes, size_t size, const char *info, const char *why)
{
    struct place place;
    int64_t run_id = 77;

    place_open(&place);
    put_words(&place, "0.0.u16", plain, ARRAY_SIZE(plain)); /* a good one, read first */
    put(&place, ".info", info, strlen(info));
    put(&place, file, bytes, size);
    cr_assert_lt(import_folder(place.store, place.dir, NULL, &run_id, &place.err), 0);
    cr_assert(strstr(place.err.message, why), "%s", place.err.message);
    cr_assert_eq(run_id, 77);
    check_rows(&place,
               "SELECT (SELECT count(*) FROM runs) + (SELECT count(*) FROM segments) + "
               "(SELECT count(*) FROM functions) + (SELECT count(*) FROM losses)",
               "0\n");
    place_close(&place);
}

Test(import, damage_is_refused)
{
    check_refused("0.1.u16", "\1\0\2", 3, names, "0.1.u16: half a word at offset 2");
    check_refused("0.1.u16", "\1\0\3\0", 4, names, "0.1.u16: at offset 2 function 3");
    check_refused(".info", "1 main\n300 g\nnonsense\n", 22, names, ".info: line 3 is not");
    check_refused(".info", "1 a\n1 b\n", 8, names, "line 2 names an ID a second time");
    check_refused(".info", "1 a\xff\n", 6, names, "line 1 is not UTF-8");
    check_refused(".info", "65536 a\n", 8, names, "line 1 is not");
}

Test(import, missing_input)
{
    struct place place;
    int64_t run_id;

    place_open(&place);
    cr_assert_lt(import_folder(place.store, "/nonexistent", NULL, &run_id, &place.err), 0);
    cr_assert(strstr(place.err.message, "/nonexistent"), "%s", place.err.message);
    cr_assert_lt(import_folder(place.store, place.dir, NULL, &run_id, &place.err), 0);
    cr_assert(strstr(place.err.message, "no .u16 file"), "%s", place.err.message);
    place_close(&place);
}
