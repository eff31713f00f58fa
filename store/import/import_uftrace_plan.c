/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads the texts of a uftrace directory, finds its threads and checks their records. */
#include "store/import/import_uftrace_plan.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/foreign_file.h"
#include "base/number.h"
#include "base/path.h"

#define TEXT_LIMIT (1ull << 30) /* bytes of a text file: the symbols of a browser are a tenth */
#define CHUNK_RECORDS 4096u

DEFINE_CLEANUP(cleanup_plan, struct uftrace_plan *, uftrace_plan_free)

static inline void cleanup_dir(DIR **dir)
{
    if (*dir)
        closedir(*dir);
}

/* ------------------------------------------------------------------------------------------ files */

struct text {
    char *path, *data;
    size_t size;
};

static void text_release(struct text *text)
{
    free(text->path);
    free(text->data);
}

/* Reads a whole file of the directory. Free with text_release, whatever is returned. */
static int read_text(const struct uftrace_plan *plan, const char *name, struct text *text, struct error *err)
{
    AUTO_FCLOSE FILE *file = NULL;
    struct stat status;
    int r;

    *text = (struct text){0};
    if (asprintf(&text->path, "%s/%s", plan->dir, name) < 0)
        return error_no_memory(err);
    r = foreign_file_stream(text->path, "cannot read", &file, err);
    if (r < 0)
        return r;
    if (fstat(fileno(file), &status) < 0 || status.st_size > (off_t)TEXT_LIMIT)
        return error_say(err, -EBADMSG, "cannot read %s: it is too large", text->path);
    text->data = malloc((size_t)status.st_size + 1);
    if (!text->data)
        return error_no_memory(err);
    text->size = fread(text->data, 1, (size_t)status.st_size, file);
    return ferror(file) ? error_set(err, -EIO, NULL, "cannot read %s", text->path) : 0;
}

static bool has_file(const struct uftrace_plan *plan, const char *name)
{
    AUTO_FREE char *path = NULL;

    return asprintf(&path, "%s/%s", plan->dir, name) >= 0 && access(path, R_OK) == 0;
}

static int read_info(struct uftrace_plan *plan, struct error *err)
{
    CLEANUP(text_release) struct text text;
    int r = read_text(plan, "info", &text, err);

    return r < 0 ? r : uftrace_info_parse((uint8_t *)text.data, text.size, text.path, &plan->info, err);
}

static int read_tasks(struct uftrace_plan *plan, struct error *err)
{
    CLEANUP(text_release) struct text text;
    int r = read_text(plan, "task.txt", &text, err);

    return r < 0 ? r : uftrace_tasks_parse(text.data, text.size, text.path, &plan->tasks, err);
}

/* ------------------------------------------------------------------------------------------ symbols */

/* IMAGE.sym, or IMAGE-BUIL.sym with the begin of the build id where several images have that name. NULL: out
 * of memory. */
static char *symbol_file_name(const struct uftrace_plan *plan, const struct uftrace_map *map)
{
    char *name;

    if (strlen(map->build_id) >= 4) {
        if (asprintf(&name, "%s-%.4s.sym", path_file_name(map->path), map->build_id) < 0)
            return NULL;
        if (has_file(plan, name))
            return name;
        free(name);
    }
    return asprintf(&name, "%s.sym", path_file_name(map->path)) < 0 ? NULL : name;
}

static int load_symbols(struct uftrace_plan *plan, const char *name, size_t *ret_index, struct error *err)
{
    CLEANUP(text_release) struct text text = {0};
    struct uftrace_symbol_file *file;
    int r;

    for (size_t i = 0; i < plan->file_count; i++)
        if (!strcmp(plan->files[i].name, name)) {
            *ret_index = i;
            return 0;
        }
    if (!has_file(plan, name)) {
        *ret_index = SIZE_MAX;
        return 0;
    }
    if (array_reserve(&plan->files, &plan->file_capacity, plan->file_count + 1))
        return error_no_memory(err);
    file = &plan->files[plan->file_count];
    *file = (struct uftrace_symbol_file){.name = strdup(name)};
    if (!file->name)
        return error_no_memory(err);
    *ret_index = plan->file_count++;
    r = read_text(plan, name, &text, err);
    return r < 0 ? r : uftrace_symbols_parse(text.data, text.size, text.path, &file->symbols, err);
}

/* The symbols of a map, and its end where only they tell it. */
static int find_symbols(struct uftrace_plan *plan, struct uftrace_map *map, struct error *err)
{
    AUTO_FREE char *name = symbol_file_name(plan, map);
    const struct uftrace_symbols *symbols;
    int r = name ? load_symbols(plan, name, &map->symbols, err) : error_no_memory(err);

    if (r < 0 || map->end)
        return r;
    map->end = map->start + 1;
    if (map->symbols == SIZE_MAX)
        return 0;
    symbols = &plan->files[map->symbols].symbols;
    if (symbols->count)
        map->end += symbols->symbols[symbols->count - 1].address;
    return 0;
}

/* ------------------------------------------------------------------------------------------ sessions */

static int add_dlopens(struct uftrace_plan *plan, struct uftrace_session *session, struct error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < plan->tasks.count; i++) {
        const struct uftrace_task *task = &plan->tasks.tasks[i];
        struct uftrace_map map = {.start = task->base, .from_ns = task->ns, .symbols = SIZE_MAX};

        if (task->kind != UFTRACE_DLOPEN || strcmp(task->sid, session->task->sid) != 0)
            continue;
        map.path = strdup(task->path);
        r = map.path ? uftrace_maps_add(&session->maps, &map, err) : error_no_memory(err);
        if (r < 0)
            free(map.path);
    }
    return r;
}

static int read_session(struct uftrace_plan *plan, const struct uftrace_task *task, struct error *err)
{
    CLEANUP(text_release) struct text text = {0};
    struct uftrace_session *session;
    char name[32];
    int r;

    if (array_reserve(&plan->sessions, &plan->session_capacity, plan->session_count + 1))
        return error_no_memory(err);
    session = &plan->sessions[plan->session_count++];
    *session = (struct uftrace_session){.task = task};
    snprintf(name, sizeof(name), "sid-%s.map", task->sid);
    r = read_text(plan, name, &text, err);
    if (r == 0)
        r = uftrace_maps_parse(text.data, text.size, text.path, &session->maps, err);
    if (r == 0)
        r = add_dlopens(plan, session, err);
    for (size_t i = 0; r == 0 && i < session->maps.count; i++)
        r = find_symbols(plan, &session->maps.maps[i], err);
    return r;
}

static int read_sessions(struct uftrace_plan *plan, struct error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < plan->tasks.count; i++)
        if (plan->tasks.tasks[i].kind == UFTRACE_SESSION)
            r = read_session(plan, &plan->tasks.tasks[i], err);
    return r;
}

static struct uftrace_session *own_session(const struct uftrace_plan *plan, int32_t pid, uint64_t ns)
{
    struct uftrace_session *found = NULL;

    for (size_t i = 0; i < plan->session_count; i++)
        if (plan->sessions[i].task->pid == pid && (!found || plan->sessions[i].task->ns <= ns))
            found = &plan->sessions[i];
    return found;
}

static int32_t parent_of(const struct uftrace_plan *plan, int32_t pid)
{
    for (size_t i = 0; i < plan->tasks.count; i++)
        if (plan->tasks.tasks[i].kind == UFTRACE_FORK && plan->tasks.tasks[i].pid == pid)
            return plan->tasks.tasks[i].parent_pid;
    return 0;
}

struct uftrace_session *uftrace_session_at(const struct uftrace_plan *plan, int32_t pid, uint64_t ns)
{
    struct uftrace_session *found = own_session(plan, pid, ns);

    /* A damaged file may make a circle of parents. A child that execs later has a session of its own then. */
    for (size_t i = 0; (!found || found->task->ns > ns) && i < plan->tasks.count; i++) {
        struct uftrace_session *inherited;

        pid = parent_of(plan, pid);
        if (!pid)
            break;
        inherited = own_session(plan, pid, ns);
        if (inherited)
            found = inherited;
    }
    return found;
}

bool uftrace_execs_between(const struct uftrace_plan *plan, int32_t pid, uint64_t since_ns, uint64_t ns)
{
    for (size_t i = 0; i < plan->session_count; i++) {
        const struct uftrace_task *task = plan->sessions[i].task;

        if (task->pid == pid && task->ns > since_ns && task->ns <= ns)
            return true;
    }
    return false;
}

/* ------------------------------------------------------------------------------------------ threads */

/* TID of "TID.dat", 0: it is another file. */
static int32_t thread_of_file(const char *name)
{
    const char *end;
    uint64_t tid;

    return number_parse_count_at(name, &tid, &end) && strcmp(end, ".dat") == 0 && tid <= INT32_MAX
               ? (int32_t)tid
               : 0;
}

static int add_thread(struct uftrace_plan *plan, int32_t tid, struct error *err)
{
    struct uftrace_thread thread = {.tid = tid, .pid = tid, .order = plan->tasks.count};

    for (size_t i = 0; i < plan->tasks.count; i++) {
        const struct uftrace_task *task = &plan->tasks.tasks[i];

        if (task->kind == UFTRACE_DLOPEN || task->tid != tid)
            continue;
        if (thread.order == plan->tasks.count)
            thread.order = i;
        thread.pid = task->pid;
    }
    thread.is_main = thread.pid == tid;
    if (array_reserve(&plan->threads, &plan->thread_capacity, plan->thread_count + 1))
        return error_no_memory(err);
    plan->threads[plan->thread_count++] = thread;
    return 0;
}

/* The first line that names the process. */
static size_t process_order(const struct uftrace_plan *plan, int32_t pid)
{
    for (size_t i = 0; i < plan->tasks.count; i++)
        if (plan->tasks.tasks[i].pid == pid)
            return i;
    return plan->tasks.count;
}

static int compare_threads(const void *left, const void *right, void *context)
{
    const struct uftrace_thread *a = left, *b = right;
    const size_t process_a = process_order(context, a->pid), process_b = process_order(context, b->pid);

    if (process_a != process_b)
        return process_a < process_b ? -1 : 1;
    if (a->pid != b->pid)
        return a->pid < b->pid ? -1 : 1;
    if (a->is_main != b->is_main)
        return a->is_main ? -1 : 1;
    if (a->order != b->order)
        return a->order < b->order ? -1 : 1;
    return (a->tid > b->tid) - (a->tid < b->tid);
}

static int find_threads(struct uftrace_plan *plan, struct error *err)
{
    CLEANUP(cleanup_dir) DIR *dir = opendir(plan->dir);
    const struct dirent *entry;
    int r = 0;

    if (!dir)
        return error_set(err, -errno, NULL, "cannot read %s", plan->dir);
    while (r == 0 && (entry = readdir(dir)))
        if (thread_of_file(entry->d_name))
            r = add_thread(plan, thread_of_file(entry->d_name), err);
    if (r == 0 && !plan->thread_count)
        r = error_say(err, -ENOENT, "cannot import %s: it has no TID.dat (did uftrace record anything?)",
                      plan->dir);
    if (plan->thread_count)
        qsort_r(plan->threads, plan->thread_count, sizeof(*plan->threads), compare_threads, plan);
    return r;
}

/* ------------------------------------------------------------------------------------------ records */

static int take_chunk(const uint8_t *bytes, size_t count, uint64_t offset, const char *path,
                      int (*take)(void *context, const struct uftrace_record *record), void *context,
                      struct error *err)
{
    struct uftrace_record record;
    int r = 0;

    for (size_t i = 0; r == 0 && i < count; i++) {
        if (!uftrace_record_parse(bytes + i * UFTRACE_RECORD_BYTES, &record))
            return error_say(err, -EBADMSG, "cannot read %s: the record at byte %llu is none", path,
                             (unsigned long long)offset + i * UFTRACE_RECORD_BYTES);
        if (record.more)
            return error_say(
                err, -ENOTSUP,
                "cannot read %s: the record at byte %llu has arguments, which are not read (record "
                "without -A, -R, -a and -E)",
                path, (unsigned long long)offset + i * UFTRACE_RECORD_BYTES);
        r = take(context, &record);
    }
    return r;
}

int uftrace_read_records(const struct uftrace_plan *plan, const struct uftrace_thread *thread,
                         int (*take)(void *context, const struct uftrace_record *record), void *context,
                         struct error *err)
{
    AUTO_FREE uint8_t *bytes = malloc((size_t)CHUNK_RECORDS * UFTRACE_RECORD_BYTES);
    AUTO_FREE char *path = NULL;
    AUTO_FCLOSE FILE *file = NULL;
    uint64_t offset = 0;
    size_t got;
    int r = 0;

    if (!bytes || asprintf(&path, "%s/%d.dat", plan->dir, thread->tid) < 0)
        return error_no_memory(err);
    r = foreign_file_stream(path, "cannot read", &file, err);
    while (r == 0 && (got = fread(bytes, 1, (size_t)CHUNK_RECORDS * UFTRACE_RECORD_BYTES, file))) {
        if (got % UFTRACE_RECORD_BYTES)
            return error_say(err, -EBADMSG, "cannot read %s: it ends within the record at byte %llu", path,
                             (unsigned long long)(offset + got - got % UFTRACE_RECORD_BYTES));
        r = take_chunk(bytes, got / UFTRACE_RECORD_BYTES, offset, path, take, context, err);
        offset += got;
    }
    return r == 0 && ferror(file) ? error_set(err, -EIO, NULL, "cannot read %s", path) : r;
}

struct check {
    struct uftrace_plan *plan;
    struct uftrace_thread *thread;
};

static int check_record(void *context, const struct uftrace_record *record)
{
    const struct check *check = context;

    if (!check->thread->begins)
        check->thread->begins = record->ns;
    if (!check->plan->first_ns || record->ns < check->plan->first_ns)
        check->plan->first_ns = record->ns;
    if (record->ns > check->plan->last_ns)
        check->plan->last_ns = record->ns;
    return 0;
}

static int check_records(struct uftrace_plan *plan, struct error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < plan->thread_count; i++) {
        struct check check = {plan, &plan->threads[i]};

        r = uftrace_read_records(plan, &plan->threads[i], check_record, &check, err);
    }
    return r;
}

/* ------------------------------------------------------------------------------------------ the plan */

int uftrace_plan_new(const char *dir, struct uftrace_plan **ret_plan, struct error *err)
{
    CLEANUP(cleanup_plan) struct uftrace_plan *plan = calloc(1, sizeof(*plan));
    int r;

    if (!plan || !(plan->dir = strdup(dir)))
        return error_no_memory(err);
    r = read_info(plan, err);
    if (r == 0)
        r = read_tasks(plan, err);
    if (r == 0)
        r = read_sessions(plan, err);
    if (r == 0)
        r = find_threads(plan, err);
    if (r == 0)
        r = check_records(plan, err);
    if (r == 0)
        *ret_plan = take_pointer(plan);
    return r;
}

void uftrace_plan_free(struct uftrace_plan *plan)
{
    if (!plan)
        return;
    uftrace_info_release(&plan->info);
    for (size_t i = 0; i < plan->session_count; i++)
        uftrace_maps_release(&plan->sessions[i].maps);
    for (size_t i = 0; i < plan->file_count; i++) {
        free(plan->files[i].name);
        uftrace_symbols_release(&plan->files[i].symbols);
    }
    uftrace_tasks_release(&plan->tasks);
    free(plan->sessions);
    free(plan->files);
    free(plan->threads);
    free(plan->dir);
    free(plan);
}
