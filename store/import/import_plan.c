/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a directory of `.u16` files holds: which threads, and where their names are. */
#include "store/import/import_plan.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"

DEFINE_CLEANUP(cleanup_plan, struct u16_plan *, u16_plan_free)
DEFINE_CLEANUP(cleanup_dir, DIR *, closedir)

/* ------------------------------------------------------------------------------------------- finding files
 */

/* Reads digits up to `end`; false when there are none, something else, or more than 9. */
static bool parse_number(const char *text, const char *end, uint64_t *ret_number)
{
    uint64_t number = 0;

    if (text >= end || end - text > 9)
        return false;
    for (; text < end; text++) {
        if (!isdigit((unsigned char)*text))
            return false;
        number = number * 10 + (uint64_t)(*text - '0');
    }
    *ret_number = number;
    return true;
}

static const char *last_dot(const char *text, const char *end)
{
    while (end > text && *--end != '.')
        ;
    return end > text || *end == '.' ? end : NULL;
}

/* What the file's name says: P.T, NAME.PID.TID, or nothing. */
static int parse_file_name(struct u16_file *file)
{
    const char *end = file->name + strlen(file->name) - strlen(".u16");
    const char *second = last_dot(file->name, end);
    const char *first = second ? last_dot(file->name, second) : NULL;

    if (second && !first && parse_number(file->name, second, &file->process) &&
        parse_number(second + 1, end, &file->thread))
        file->numbered = true;
    if (first && parse_number(first + 1, second, &file->pid) && parse_number(second + 1, end, &file->tid))
        end = first;
    else
        file->pid = file->tid = 0;
    file->group = strndup(file->name, (size_t)(end - file->name));
    return file->group ? 0 : -ENOMEM;
}

static bool ends_with(const char *text, const char *tail)
{
    size_t length = strlen(text), tail_length = strlen(tail);

    return length >= tail_length && !strcmp(text + length - tail_length, tail);
}

static int add_file(struct u16_plan *plan, const char *name)
{
    struct u16_file *file;

    if (array_reserve(&plan->files, &plan->file_capacity, plan->file_count + 1) < 0)
        return -ENOMEM;
    file = &plan->files[plan->file_count];
    *file = (struct u16_file){.name = strdup(name), .names_index = SIZE_MAX};
    if (!file->name)
        return -ENOMEM;
    plan->file_count++;
    return parse_file_name(file);
}

static int add_info(struct u16_plan *plan, const char *name)
{
    if (array_reserve(&plan->infos, &plan->info_capacity, plan->info_count + 1) < 0)
        return -ENOMEM;
    plan->infos[plan->info_count] = (struct u16_info){.name = strdup(name)};
    if (!plan->infos[plan->info_count].name)
        return -ENOMEM;
    plan->info_count++;
    return 0;
}

static int list_directory(struct u16_plan *plan, struct error *err)
{
    CLEANUP(cleanup_dir) DIR *dir = opendir(plan->dir);
    const struct dirent *entry;

    if (!dir)
        return error_set(err, -errno, NULL, "opening directory %s", plan->dir);
    while (errno = 0, (entry = readdir(dir))) {
        int r = 0;

        if (ends_with(entry->d_name, ".u16"))
            r = add_file(plan, entry->d_name);
        else if (ends_with(entry->d_name, ".info"))
            r = add_info(plan, entry->d_name);
        if (r < 0)
            return error_no_memory(err);
    }
    if (errno)
        return error_set(err, -errno, NULL, "reading directory %s", plan->dir);
    if (!plan->file_count)
        return error_say(err, -ENOENT, "importing %s: no .u16 file in it (one per thread is expected)",
                         plan->dir);
    return 0;
}

/* ------------------------------------------------------------------------------------------ naming threads
 */

/* Processes in order, within one its main thread first. */
static int compare_files(const void *left, const void *right)
{
    const struct u16_file *a = left, *b = right;
    int order = strcmp(a->group, b->group);

    if (a->numbered != b->numbered)
        return a->numbered ? -1 : 1;
    if (a->numbered && a->process != b->process)
        return a->process < b->process ? -1 : 1;
    if (a->numbered)
        return a->thread < b->thread ? -1 : a->thread > b->thread;
    if (order || a->pid != b->pid)
        return order ? order : a->pid < b->pid ? -1 : 1;
    if ((a->tid == a->pid) != (b->tid == b->pid))
        return a->tid == a->pid ? -1 : 1;
    if (a->tid != b->tid)
        return a->tid < b->tid ? -1 : 1;
    return strcmp(a->name, b->name);
}

static bool same_process(const struct u16_file *a, const struct u16_file *b)
{
    if (a->numbered || b->numbered)
        return a->numbered && b->numbered && a->process == b->process;
    return !strcmp(a->group, b->group) && a->pid == b->pid && a->pid;
}

/* Whether one of the P.T files, which come first and in order, has the number. */
static bool process_taken(const struct u16_plan *plan, uint64_t process)
{
    for (size_t i = 0; i < plan->file_count && plan->files[i].numbered; i++)
        if (plan->files[i].process == process)
            return true;
    return false;
}

static int number_threads(struct u16_plan *plan, struct error *err)
{
    uint64_t next = 0;

    if (plan->file_count)
        qsort(plan->files, plan->file_count, sizeof(*plan->files), compare_files);
    for (size_t i = 0; i < plan->file_count; i++) {
        struct u16_file *file = &plan->files[i], *before = i ? file - 1 : NULL;

        if (file->numbered && before && before->process == file->process && before->thread == file->thread)
            return error_say(err, -EEXIST, "importing %s: %s and %s are the same thread", plan->dir,
                             before->name, file->name);
        if (file->numbered)
            continue;
        if (before && same_process(before, file)) {
            file->process = before->process;
            file->thread = before->thread + 1;
            continue;
        }
        while (process_taken(plan, next))
            next++;
        file->process = next++;
    }
    return 0;
}

/* ----------------------------------------------------------------------------------------- names of a file
 */

static size_t find_info(const struct u16_plan *plan, const char *stem, size_t length)
{
    for (size_t i = 0; i < plan->info_count; i++) {
        const char *name = plan->infos[i].name;

        if (strlen(name) == length + strlen(".info") && !strncmp(name, stem, length))
            return i;
    }
    return SIZE_MAX;
}

static int choose_info(const struct u16_plan *plan, struct u16_file *file, struct error *err)
{
    const char *end = file->name + strlen(file->name) - strlen(".u16");

    for (; end && file->names_index == SIZE_MAX; end = last_dot(file->name, end))
        file->names_index = find_info(plan, file->name, (size_t)(end - file->name));
    if (file->names_index == SIZE_MAX)
        file->names_index = find_info(plan, "", 0);
    if (file->names_index == SIZE_MAX && plan->info_count == 1)
        file->names_index = 0;
    if (file->names_index == SIZE_MAX && plan->info_count)
        return error_say(err, -ENOENT, "importing %s: none of the %zu .info files belongs to %s", plan->dir,
                         plan->info_count, file->name);
    return 0;
}

int u16_plan_names(struct u16_plan *plan, const struct u16_file *file, struct u16_names **ret_names,
                   struct error *err)
{
    AUTO_FREE char *path = NULL;
    struct u16_info *info;
    int r = 0;

    *ret_names = NULL;
    if (!plan->infos || file->names_index == SIZE_MAX)
        return 0;
    info = &plan->infos[file->names_index];
    if (!info->names) {
        if (asprintf(&path, "%s/%s", plan->dir, info->name) < 0)
            return error_no_memory(err);
        r = u16_names_read(path, &info->names, err);
    }
    if (r == 0)
        *ret_names = info->names;
    return r;
}

/* ------------------------------------------------------------------------------------------------ the plan
 */

int u16_plan_new(const char *dir, struct u16_plan **ret_plan, struct error *err)
{
    CLEANUP(cleanup_plan) struct u16_plan *plan = calloc(1, sizeof(*plan));
    int r;

    if (!plan || !(plan->dir = strdup(dir)))
        return error_no_memory(err);
    for (size_t length = strlen(plan->dir); length > 1 && plan->dir[length - 1] == '/'; length--)
        plan->dir[length - 1] = '\0';
    r = list_directory(plan, err);
    if (r == 0)
        r = number_threads(plan, err);
    for (size_t i = 0; r == 0 && i < plan->file_count; i++) {
        struct u16_names *names = NULL;
        struct u16_pass pass = {.err = err};

        r = choose_info(plan, &plan->files[i], err);
        if (r == 0)
            r = u16_plan_names(plan, &plan->files[i], &names, err);
        pass.names = names;
        if (r == 0)
            r = u16_pass_file(plan, &plan->files[i], &pass);
    }
    if (r < 0)
        return r;
    *ret_plan = take_pointer(plan);
    return 0;
}

void u16_plan_free(struct u16_plan *plan)
{
    if (!plan)
        return;
    for (size_t i = 0; i < plan->file_count; i++) {
        free(plan->files[i].name);
        free(plan->files[i].group);
    }
    for (size_t i = 0; i < plan->info_count; i++) {
        free(plan->infos[i].name);
        u16_names_free(plan->infos[i].names);
    }
    free(plan->files);
    free(plan->infos);
    free(plan->dir);
    free(plan);
}
