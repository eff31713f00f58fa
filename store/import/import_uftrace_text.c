/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The text files of a uftrace directory, and the begin of `info`. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "store/import/import_uftrace.h"

#define LINE_MAX_BYTES 8192u

/* Lines of a text that need not end in a NUL. */
struct lines {
    const char *at, *end;
    size_t number;
    char line[LINE_MAX_BYTES]; /* the current one, without its end */
    const char *path;
    struct error *err;
};

static int bad_line(const struct lines *lines, const char *why)
{
    return error_say(lines->err, -EBADMSG, "cannot read %s: line %zu %s (is it uftrace's?)", lines->path,
                     lines->number, why);
}

/* 0: there is a line, 1: no more, -EBADMSG: too long, or with a NUL. */
static int next_line(struct lines *lines)
{
    const size_t left = (size_t)(lines->end - lines->at);
    const char *stop;
    size_t length;

    if (!left)
        return 1;
    stop = memchr(lines->at, '\n', left);
    length = stop ? (size_t)(stop - lines->at) : left;
    lines->number++;
    if (length >= sizeof(lines->line))
        return bad_line(lines, "is too long");
    if (memchr(lines->at, '\0', length))
        return bad_line(lines, "is no text");
    memcpy(lines->line, lines->at, length);
    lines->line[length] = '\0';
    lines->at += length + (stop != NULL);
    return 0;
}

static struct lines *lines_over(const char *text, size_t size, const char *path, struct error *err)
{
    struct lines *lines = calloc(1, sizeof(*lines));

    if (!lines)
        return NULL;
    lines->at = text;
    lines->end = size ? text + size : text;
    lines->path = path;
    lines->err = err;
    return lines;
}

/* ------------------------------------------------------------------------------------------ info */

enum {
    INFO_HEADER = 40,
    INFO_VERSION = 8,
    INFO_SIZE = 12,
    INFO_ORDER = 14,
    INFO_CLASS = 15,
    INFO_FEATURES = 16
};
enum uftrace_feature { FEATURE_RELATIVE = 1 << 5, FEATURE_ESTIMATED = 1 << 11 };

static int check_header(const uint8_t *bytes, size_t size, const char *path, uint64_t *ret_features,
                        struct error *err)
{
    static const char magic[8] = "Ftrace!";
    uint32_t version;
    uint64_t features;

    if (size < INFO_HEADER || memcmp(bytes, magic, sizeof(magic)) != 0)
        return error_say(err, -EBADMSG, "cannot read %s: it is no recording of uftrace", path);
    memcpy(&version, bytes + INFO_VERSION, sizeof(version));
    memcpy(&features, bytes + INFO_FEATURES, sizeof(features));
    if (bytes[INFO_ORDER] != 1 || bytes[INFO_CLASS] != 2)
        return error_say(err, -ENOTSUP, "cannot read %s: it is not of a little-endian 64-bit machine", path);
    if (version != 4 || !(features & FEATURE_RELATIVE))
        return error_say(err, -ENOTSUP,
                         "cannot read %s: it is of another version of uftrace (this reads format 4, with "
                         "relative addresses)",
                         path);
    *ret_features = features;
    return 0;
}

static int read_status(const char *text)
{
    int status = atoi(text);

    return WIFEXITED(status) ? WEXITSTATUS(status) : WIFSIGNALED(status) ? 128 + WTERMSIG(status) : -1;
}

static int read_info_line(struct uftrace_info *info, const char *line)
{
    struct tm parts = {.tm_isdst = -1};

    if (!strncmp(line, "cmdline:", 8)) {
        char *command = strdup(line + 8);

        if (!command)
            return -ENOMEM;
        free(info->command);
        info->command = command;
    } else if (!strncmp(line, "exit_status:", 12)) {
        info->exit_status = read_status(line + 12);
    } else if (!strncmp(line, "record_date:", 12) && strptime(line + 12, "%a %b %d %H:%M:%S %Y", &parts)) {
        info->recorded = (int64_t)mktime(&parts);
    }
    return 0;
}

int uftrace_info_parse(const uint8_t *bytes, size_t size, const char *path, struct uftrace_info *ret_info,
                       struct error *err)
{
    struct uftrace_info info = {.exit_status = -1};
    AUTO_FREE struct lines *lines = NULL;
    uint64_t features = 0;
    int r = check_header(bytes, size, path, &features, err);

    if (r < 0)
        return r;
    info.estimated = features & FEATURE_ESTIMATED;
    info.command = strdup("");
    lines = lines_over((const char *)bytes + INFO_HEADER, size - INFO_HEADER, path, err);
    if (!info.command || !lines)
        r = error_no_memory(err);
    while (r == 0 && (r = next_line(lines)) == 0)
        if (read_info_line(&info, lines->line) < 0)
            r = error_no_memory(err);
    if (r < 0) {
        uftrace_info_release(&info);
        return r;
    }
    if (info.recorded < 0)
        info.recorded = 0;
    *ret_info = info;
    return 0;
}

void uftrace_info_release(struct uftrace_info *info)
{
    free(info->command);
    *info = (struct uftrace_info){0};
}

/* ------------------------------------------------------------------------------------------ task.txt */

/* The text behind " KEY=" of a line, NULL: it has none. */
static const char *value_of(const char *line, const char *key)
{
    const size_t length = strlen(key);

    for (const char *at = line; (at = strchr(at, ' ')); at++)
        if (!strncmp(at + 1, key, length) && at[1 + length] == '=')
            return at + 2 + length;
    return NULL;
}

static bool read_id(const char *line, const char *key, int32_t *ret_id)
{
    const char *value = value_of(line, key);
    char *end;
    long id;

    if (!value || !isdigit((unsigned char)*value))
        return false;
    id = strtol(value, &end, 10);
    if ((*end && *end != ' ') || id > INT32_MAX)
        return false;
    *ret_id = (int32_t)id;
    return true;
}

/* SECONDS.NANOSECONDS */
static bool read_time(const char *line, uint64_t *ret_ns)
{
    const char *value = value_of(line, "timestamp");
    unsigned long long seconds, rest;
    char *end;

    if (!value || !isdigit((unsigned char)*value))
        return false;
    seconds = strtoull(value, &end, 10);
    if (*end != '.' || !isdigit((unsigned char)end[1]) || seconds > INT64_MAX / 1000000000)
        return false;
    rest = strtoull(end + 1, &end, 10);
    *ret_ns = seconds * 1000000000 + rest;
    return rest < 1000000000 && *end == ' ';
}

static bool read_sid(const char *line, char sid[17])
{
    const char *value = value_of(line, "sid");

    for (size_t i = 0; i < 16; i++)
        if (!value || !isxdigit((unsigned char)value[i]))
            return false;
    memcpy(sid, value, 16);
    sid[16] = '\0';
    return value[16] == ' ' || !value[16];
}

/* KEY="TEXT", at the end of the line. 0, -EBADMSG or -ENOMEM. */
static int read_quoted(const char *line, const char *key, char **ret_text)
{
    const char *value = value_of(line, key);
    size_t length = value ? strlen(value) : 0;

    if (length < 2 || *value != '"' || value[length - 1] != '"')
        return -EBADMSG;
    *ret_text = strndup(value + 1, length - 2);
    return *ret_text ? 0 : -ENOMEM;
}

static int read_dlopen(const char *line, struct uftrace_task *task)
{
    const char *base = value_of(line, "base");
    char *end;

    if (!read_id(line, "tid", &task->tid) || !read_sid(line, task->sid) || !base ||
        !isxdigit((unsigned char)*base))
        return -EBADMSG;
    task->kind = UFTRACE_DLOPEN;
    task->base = strtoull(base, &end, 16);
    return *end == ' ' ? read_quoted(line, "libname", &task->path) : -EBADMSG;
}

/* 0 with a task, 1: a line of no interest, <0. */
static int read_task(const char *line, struct uftrace_task *task)
{
    *task = (struct uftrace_task){0};
    if (strncmp(line, "SESS ", 5) != 0 && strncmp(line, "TASK ", 5) != 0 && strncmp(line, "FORK ", 5) != 0 &&
        strncmp(line, "DLOP ", 5) != 0)
        return *line && *line != '#' ? -EBADMSG : 1;
    if (!read_time(line, &task->ns))
        return -EBADMSG;
    if (*line == 'D')
        return read_dlopen(line, task);
    if (!read_id(line, "pid", &task->pid))
        return -EBADMSG;
    task->tid = task->pid;
    if (*line == 'S') {
        task->kind = UFTRACE_SESSION;
        return read_sid(line, task->sid) ? read_quoted(line, "exename", &task->path) : -EBADMSG;
    }
    if (*line == 'F') {
        task->kind = UFTRACE_FORK;
        return read_id(line, "ppid", &task->parent_pid) ? 0 : -EBADMSG;
    }
    task->kind = UFTRACE_TASK;
    return read_id(line, "tid", &task->tid) ? 0 : -EBADMSG;
}

static int add_task(struct uftrace_tasks *tasks, struct lines *lines)
{
    struct uftrace_task task = {0};
    int r = read_task(lines->line, &task);

    if (r > 0)
        return 0;
    if (r == -EBADMSG)
        return bad_line(lines, "is no task");
    if (r < 0 || array_reserve(&tasks->tasks, &tasks->capacity, tasks->count + 1)) {
        free(task.path);
        return error_no_memory(lines->err);
    }
    tasks->tasks[tasks->count++] = task;
    return 0;
}

int uftrace_tasks_parse(const char *text, size_t size, const char *path, struct uftrace_tasks *tasks,
                        struct error *err)
{
    AUTO_FREE struct lines *lines = lines_over(text, size, path, err);
    int r = lines ? 0 : error_no_memory(err);

    while (r == 0 && (r = next_line(lines)) == 0)
        r = add_task(tasks, lines);
    return r < 0 ? r : 0;
}

void uftrace_tasks_release(struct uftrace_tasks *tasks)
{
    for (size_t i = 0; i < tasks->count; i++)
        free(tasks->tasks[i].path);
    free(tasks->tasks);
    *tasks = (struct uftrace_tasks){0};
}

/* ------------------------------------------------------------------------------------------ sid-SID.map */

int uftrace_maps_add(struct uftrace_maps *maps, const struct uftrace_map *map, struct error *err)
{
    if (array_reserve(&maps->maps, &maps->capacity, maps->count + 1))
        return error_no_memory(err);
    maps->maps[maps->count++] = *map;
    return 0;
}

/* "START-END PERMISSIONS OFFSET DEVICE INODE PATH [build-id:ID]"; lines without a path are of no interest. */
static int add_map(struct uftrace_maps *maps, struct lines *lines)
{
    static const char mark[] = " build-id:";
    struct uftrace_map map = {.symbols = SIZE_MAX};
    char *path = strchr(lines->line, '/'), *end, *build_id;
    int r;

    if (!path)
        return 0;
    map.start = strtoull(lines->line, &end, 16);
    if (end == lines->line || *end != '-')
        return bad_line(lines, "is no map");
    map.end = strtoull(end + 1, &end, 16);
    if (*end != ' ' || map.end <= map.start)
        return bad_line(lines, "is no map");
    build_id = strstr(path, mark);
    if (build_id) {
        snprintf(map.build_id, sizeof(map.build_id), "%s", build_id + sizeof(mark) - 1);
        *build_id = '\0';
    }
    map.path = strdup(path);
    r = map.path ? uftrace_maps_add(maps, &map, lines->err) : error_no_memory(lines->err);
    if (r < 0)
        free(map.path);
    return r;
}

int uftrace_maps_parse(const char *text, size_t size, const char *path, struct uftrace_maps *maps,
                       struct error *err)
{
    AUTO_FREE struct lines *lines = lines_over(text, size, path, err);
    int r = lines ? 0 : error_no_memory(err);

    while (r == 0 && (r = next_line(lines)) == 0)
        r = add_map(maps, lines);
    return r < 0 ? r : 0;
}

void uftrace_maps_release(struct uftrace_maps *maps)
{
    for (size_t i = 0; i < maps->count; i++)
        free(maps->maps[i].path);
    free(maps->maps);
    *maps = (struct uftrace_maps){0};
}

/* ------------------------------------------------------------------------------------------ IMAGE.sym */

/* Behind the address may come a size, then a letter and the name. NULL: the line is none. */
static const char *symbol_name(char *rest, char *ret_type)
{
    char *end;

    if (*rest != ' ')
        return NULL;
    rest++;
    if (isxdigit((unsigned char)rest[0]) && rest[1] != ' ') {
        strtoull(rest, &end, 16);
        if (*end != ' ')
            return NULL;
        rest = end + 1;
    }
    if (!rest[0] || rest[1] != ' ' || !rest[2])
        return NULL;
    *ret_type = rest[0];
    return rest + 2;
}

/* PLT stubs are NAME@plt here as in the store's own recordings; '?' marks ends, data is left out. */
static int add_symbol(struct uftrace_symbols *symbols, struct lines *lines)
{
    struct uftrace_symbol symbol = {0};
    const char *name;
    char *end, type = 0;

    if (*lines->line == '#' || !*lines->line)
        return 0;
    symbol.address = strtoull(lines->line, &end, 16);
    name = end == lines->line ? NULL : symbol_name(end, &type);
    if (!name)
        return bad_line(lines, "is no symbol");
    if (strchr("dDbBrRvV", type))
        return 0;
    if (array_reserve(&symbols->symbols, &symbols->capacity, symbols->count + 1))
        return error_no_memory(lines->err);
    if (type != '?' && asprintf(&symbol.name, "%s%s", name, type == 'P' ? "@plt" : "") < 0)
        return error_no_memory(lines->err);
    symbols->symbols[symbols->count++] = symbol;
    return 0;
}

static int compare_symbols(const void *left, const void *right)
{
    const struct uftrace_symbol *a = left, *b = right;

    if (a->address != b->address)
        return a->address < b->address ? -1 : 1;
    return (a->name != NULL) - (b->name != NULL); /* an end comes before what begins there */
}

int uftrace_symbols_parse(const char *text, size_t size, const char *path, struct uftrace_symbols *symbols,
                          struct error *err)
{
    AUTO_FREE struct lines *lines = lines_over(text, size, path, err);
    int r = lines ? 0 : error_no_memory(err);

    while (r == 0 && (r = next_line(lines)) == 0)
        r = add_symbol(symbols, lines);
    if (symbols->count)
        qsort(symbols->symbols, symbols->count, sizeof(*symbols->symbols), compare_symbols);
    return r < 0 ? r : 0;
}

struct uftrace_symbol *uftrace_symbols_find(const struct uftrace_symbols *symbols, uint64_t address)
{
    size_t low = 0, high = symbols->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (symbols->symbols[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low && symbols->symbols[low - 1].name ? &symbols->symbols[low - 1] : NULL;
}

void uftrace_symbols_release(struct uftrace_symbols *symbols)
{
    for (size_t i = 0; i < symbols->count; i++)
        free(symbols->symbols[i].name);
    free(symbols->symbols);
    *symbols = (struct uftrace_symbols){0};
}
