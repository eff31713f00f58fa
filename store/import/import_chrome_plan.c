/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The first pass over a file of trace events: each is checked, understood and spooled. */
#include "store/import/import_chrome_plan.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/foreign_file.h"
#include "base/number.h"
#include "store/import/import_chrome_json.h"

#define NS_MAX ((int64_t)1 << 61) /* of a time and of a duration: a sum of three fits */

DEFINE_CLEANUP(cleanup_plan, struct chrome_plan *, chrome_plan_free)

static const char what[] = "cannot keep the events to be imported";

struct chrome_read {
    struct chrome_plan *plan;
    struct chrome_json json;
    struct error *err;
};

static int refuse(struct chrome_read *read, const char *why)
{
    return error_say(read->err, -EBADMSG, "importing %s: event %llu %s", read->plan->path,
                     (unsigned long long)read->json.events, why);
}

/* ------------------------------------------------------------------------------------------ things by text
 */

/* The number that a text has in `index`, where it may be new: then it is `count`. -ENOMEM. */
static int number_of(json_t *index, const char *text, size_t count, size_t *ret_number)
{
    const json_t *known = json_object_get(index, text);

    *ret_number = known ? (size_t)json_integer_value(known) : count;
    if (known)
        return 0;
    return json_object_set_new(index, text, json_integer((json_int_t)count)) ? -ENOMEM : 0;
}

static int find_name(struct chrome_read *read, const char *text, uint32_t *ret_name)
{
    struct chrome_plan *plan = read->plan;
    size_t number;

    if (plan->name_count >= CHROME_NO_NAME - 1)
        return refuse(read, "has an extra name");
    if (array_reserve(&plan->names, &plan->name_capacity, plan->name_count + 1) ||
        number_of(plan->name_index, text, plan->name_count, &number))
        return error_no_memory(read->err);
    *ret_name = (uint32_t)number;
    if (number < plan->name_count)
        return 0;
    plan->names[number] = strdup(text);
    if (!plan->names[number])
        return error_no_memory(read->err);
    plan->name_count++;
    return 0;
}

/* The text of a pid or tid: most are numbers, some tools write strings. "" where there is none. */
static bool id_text(const json_t *id, char *text, size_t size, int32_t *ret_number)
{
    json_int_t number = json_integer_value(id);

    *ret_number = json_is_integer(id) && number > 0 && number <= INT32_MAX ? (int32_t)number : 0;
    if (json_is_string(id))
        return snprintf(text, size, "\"%s", json_string_value(id)) < (int)size;
    if (json_is_integer(id))
        snprintf(text, size, "%lld", (long long)number);
    else
        text[0] = '\0';
    return !id || json_is_integer(id);
}

static int find_process(struct chrome_read *read, const char *key, int32_t pid, size_t *ret_process)
{
    struct chrome_plan *plan = read->plan;

    if (array_reserve(&plan->processes, &plan->process_capacity, plan->process_count + 1) ||
        number_of(plan->process_index, key, plan->process_count, ret_process))
        return error_no_memory(read->err);
    if (*ret_process == plan->process_count)
        plan->processes[plan->process_count++] =
            (struct chrome_process){.pid = pid, .number = -1, .name = CHROME_NO_NAME};
    return 0;
}

static int find_thread(struct chrome_read *read, const json_t *event, size_t *ret_thread)
{
    struct chrome_plan *plan = read->plan;
    char pid_text[100], tid_text[100], key[208];
    int32_t pid, tid;
    size_t process = 0;
    int r;

    if (!id_text(json_object_get(event, "pid"), pid_text, sizeof(pid_text), &pid) ||
        !id_text(json_object_get(event, "tid"), tid_text, sizeof(tid_text), &tid))
        return refuse(read, "has a pid or tid that is no number and no short string");
    r = find_process(read, pid_text, pid, &process);
    if (r < 0)
        return r;
    snprintf(key, sizeof(key), "%zu %s", process, tid_text);
    if (array_reserve(&plan->threads, &plan->thread_capacity, plan->thread_count + 1) ||
        number_of(plan->thread_index, key, plan->thread_count, ret_thread))
        return error_no_memory(read->err);
    if (*ret_thread == plan->thread_count)
        plan->threads[plan->thread_count++] =
            (struct chrome_thread){.process = process, .tid = tid, .number = -1, .name = CHROME_NO_NAME};
    return 0;
}

/* A thread with events has a number in its process, and that has one. */
static void number_thread(struct chrome_plan *plan, struct chrome_thread *thread)
{
    struct chrome_process *process = &plan->processes[thread->process];

    if (thread->number >= 0)
        return;
    if (process->number < 0)
        process->number = plan->numbered++;
    thread->number = process->threads++;
}

/* ------------------------------------------------------------------------------------------ events */

static int take_time(struct chrome_read *read, const json_t *event, const char *key, int64_t *ret_ns)
{
    const json_t *value = json_object_get(event, key);
    double ns = round(json_number_value(value) * 1000.0);

    if (!json_is_number(value) || !(fabs(ns) < (double)NS_MAX)) {
        char why[64];

        snprintf(why, sizeof(why), "has no '%s' that is a time", key);
        return refuse(read, why);
    }
    *ret_ns = json_is_integer(value) ? (int64_t)json_integer_value(value) * 1000 : (int64_t)ns;
    return 0;
}

static bool text_is(const json_t *object, const char *key, const char *text)
{
    const char *value = json_string_value(json_object_get(object, key));

    return value && !strcmp(value, text);
}

static int spool(struct chrome_read *read, const struct chrome_event *event)
{
    struct chrome_plan *plan = read->plan;
    int64_t last_ns = event->ns + event->duration;

    plan->first_ns = event->ns < plan->first_ns ? event->ns : plan->first_ns;
    plan->last_ns = last_ns > plan->last_ns ? last_ns : plan->last_ns;
    if (event->thread >= 0) {
        struct chrome_thread *thread = &plan->threads[event->thread];

        number_thread(plan, thread);
        thread->slices |=
            event->kind == CHROME_BEGIN || event->kind == CHROME_END || event->kind == CHROME_WHOLE;
    }
    db_bind(plan->insert, "iiiiii", event->thread, event->ns, event->duration, (int64_t)event->kind,
            (int64_t)event->name, event->detail);
    return db_step(plan->spool, plan->insert, what, read->err);
}

/* An instant event that tells of something that was not seen; its cause becomes `name`. */
static int take_loss(struct chrome_read *read, const json_t *event, const char *name,
                     struct chrome_event *taken)
{
    const json_t *args = json_object_get(event, "args");
    const char *cause = json_string_value(json_object_get(args, "cause"));
    const char *function = json_string_value(json_object_get(args, "function"));
    AUTO_FREE char *text = NULL;

    taken->kind = CHROME_LOST;
    taken->detail = json_integer_value(json_object_get(args, "events"));
    if (taken->detail < 0)
        return refuse(read, "has lost less than nothing");
    if (asprintf(&text, "%s%s%s%s", function ? "not observed: " : "", function ? function : "",
                 function ? ": " : "", cause ? cause : name) < 0)
        return error_no_memory(read->err);
    if (text_is(event, "s", "g"))
        taken->thread = -1;
    return find_name(read, text, &taken->name);
}

static int take_call(struct chrome_read *read, const json_t *event, struct chrome_event *taken)
{
    const char *name = json_string_value(json_object_get(event, "name"));
    const json_t *args = json_object_get(event, "args");
    int r = 0;

    if (!name)
        return refuse(read, "has no name");
    if (taken->kind == CHROME_WHOLE)
        r = take_time(read, event, "dur", &taken->duration);
    if (taken->duration < 0)
        return refuse(read, "lasts less than nothing");
    taken->detail = (text_is(args, "nesting", "assumed") ? CHROME_ASSUMED : 0) |
                    (text_is(args, "state", "unknown") ? CHROME_UNKNOWN : 0);
    return r < 0 ? r : find_name(read, name, &taken->name);
}

static int take_timed(struct chrome_read *read, const json_t *event, enum chrome_kind kind)
{
    struct chrome_event taken = {.kind = kind};
    const char *name = json_string_value(json_object_get(event, "name"));
    size_t thread = 0;
    int r = find_thread(read, event, &thread);

    taken.thread = (int64_t)thread;
    if (r == 0)
        r = take_time(read, event, "ts", &taken.ns);
    if (r < 0)
        return r;
    if (kind == CHROME_INSTANT && name && (!strcmp(name, "[lost]") || !strcmp(name, "[not observed]")))
        r = take_loss(read, event, name, &taken);
    else if (kind != CHROME_END)
        r = take_call(read, event, &taken);
    return r < 0 ? r : spool(read, &taken);
}

static int take_metadata(struct chrome_read *read, const json_t *event)
{
    const char *name = json_string_value(json_object_get(json_object_get(event, "args"), "name"));
    size_t thread = 0;
    uint32_t number = 0;
    int r = 0;

    if (!name || (!text_is(event, "name", "process_name") && !text_is(event, "name", "thread_name")))
        return 0;
    r = find_thread(read, event, &thread);
    if (r == 0)
        r = find_name(read, name, &number);
    if (r < 0)
        return r;
    if (text_is(event, "name", "thread_name"))
        read->plan->threads[thread].name = number;
    else
        read->plan->processes[read->plan->threads[thread].process].name = number;
    return 0;
}

static int take_event(void *context, const json_t *event)
{
    struct chrome_read *read = context;
    const char *phase = json_string_value(json_object_get(event, "ph"));

    if (!phase)
        return refuse(read, "has no 'ph'");
    switch (phase[0] && !phase[1] ? phase[0] : 0) {
    case 'B':
        return take_timed(read, event, CHROME_BEGIN);
    case 'E':
        return take_timed(read, event, CHROME_END);
    case 'X':
        return take_timed(read, event, CHROME_WHOLE);
    case 'i':
    case 'I':
        return take_timed(read, event, CHROME_INSTANT);
    case 'M':
        return take_metadata(read, event);
    default:
        read->plan->passed_over++;
        return 0;
    }
}

static int take_other(void *context, const json_t *object)
{
    const struct chrome_read *read = context;
    const char *started = json_string_value(json_object_get(object, "started_ns"));
    uint64_t ns;

    if (started && number_parse_count(started, &ns) && ns < (uint64_t)NS_MAX)
        read->plan->started_ns = ns;
    return 0;
}

/* ------------------------------------------------------------------------------------------ the plan */

static int open_spool(struct chrome_plan *plan, struct error *err)
{
    int r;

    if (sqlite3_open_v2("", &plan->spool, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) != SQLITE_OK)
        return plan->spool ? db_fail(plan->spool, err, what) : error_no_memory(err);
    r = db_exec(plan->spool,
                "PRAGMA journal_mode = OFF; CREATE TABLE events(thread INTEGER, ns INTEGER, duration INTEGER,"
                " kind INTEGER, name INTEGER, detail INTEGER); BEGIN",
                what, err);
    return r < 0 ? r
                 : db_prepare(plan->spool, "INSERT INTO events VALUES (?1, ?2, ?3, ?4, ?5, ?6)", what,
                              &plan->insert, err);
}

static int read_file(struct chrome_plan *plan, FILE *in, struct error *err)
{
    struct chrome_read read = {.plan = plan, .err = err};
    int r;

    read.json = (struct chrome_json){
        .path = plan->path, .event = take_event, .other = take_other, .context = &read, .err = err};
    r = chrome_json_read(&read.json, in);
    if (r == 0 && !plan->numbered)
        r = error_say(err, -EBADMSG, "importing %s: no call in it (events of kind B, E or X are expected)",
                      plan->path);
    return r;
}

int chrome_plan_read(FILE *in, const char *path, struct chrome_plan **ret_plan, struct error *err)
{
    CLEANUP(cleanup_plan) struct chrome_plan *plan = calloc(1, sizeof(*plan));
    int r;

    if (!plan)
        return error_no_memory(err);
    plan->first_ns = NS_MAX;
    plan->last_ns = -NS_MAX;
    plan->path = strdup(path);
    plan->name_index = json_object();
    plan->process_index = json_object();
    plan->thread_index = json_object();
    if (!plan->path || !plan->name_index || !plan->process_index || !plan->thread_index)
        return error_no_memory(err);
    r = open_spool(plan, err);
    if (r == 0)
        r = read_file(plan, in, err);
    if (r == 0)
        *ret_plan = take_pointer(plan);
    return r;
}

int chrome_plan_new(const char *path, struct chrome_plan **ret_plan, struct error *err)
{
    AUTO_FCLOSE FILE *in = NULL;
    int r = foreign_file_stream(path, "opening", &in, err);

    return r < 0 ? r : chrome_plan_read(in, path, ret_plan, err);
}

void chrome_plan_free(struct chrome_plan *plan)
{
    if (!plan)
        return;
    sqlite3_finalize(plan->insert);
    sqlite3_close(plan->spool);
    json_decref(plan->name_index);
    json_decref(plan->process_index);
    json_decref(plan->thread_index);
    for (size_t i = 0; i < plan->name_count; i++)
        free(plan->names[i]);
    free(plan->names);
    free(plan->processes);
    free(plan->threads);
    free(plan->path);
    free(plan);
}

int chrome_plan_select(struct chrome_plan *plan, sqlite3_stmt **ret_rows, struct error *err)
{
    _Static_assert(CHROME_WHOLE == 2, "the query has it");
    return db_prepare(plan->spool,
                      "SELECT thread, ns, duration, kind, name, detail FROM events"
                      " ORDER BY thread, ns, kind = 2, -duration, rowid",
                      what, ret_rows, err);
}

struct chrome_event chrome_plan_event(sqlite3_stmt *row)
{
    return (struct chrome_event){
        .thread = sqlite3_column_int64(row, 0),
        .ns = sqlite3_column_int64(row, 1),
        .duration = sqlite3_column_int64(row, 2),
        .kind = (enum chrome_kind)sqlite3_column_int(row, 3),
        .name = (uint32_t)sqlite3_column_int64(row, 4),
        .detail = sqlite3_column_int64(row, 5),
    };
}
