/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Import of `.u16` directories (import_u16.h says what they are).
 *
 * Two passes: the first checks every byte, the second writes. Files are read in pieces, so memory does not
 * grow with their length. A file that changes in between makes the second pass fail; the run is then removed
 * again.
 */
#include "store/import_u16.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"

#define WORDS 65536
#define INFO_LIMIT (64u << 20) /* bytes of an .info file: 65,535 names of a kilobyte */
#define FLUSH_BYTES (8u << 20) /* of input between two commits: bounds what the writer holds */

/* One .u16 file. */
struct u16_file {
    char *name;         /* in the directory */
    char *group;        /* NAME.PID, or the name itself; orders the processes without a number */
    uint64_t pid, tid;  /* of NAME.PID.TID, else 0 */
    bool numbered;      /* its name is P.T */
    uint64_t process;   /* P */
    uint64_t thread;    /* T */
    size_t names_index; /* into plan->infos, SIZE_MAX: none */
};

struct u16_info {
    char *name;
    struct u16_names *names; /* parsed when first needed */
};

struct u16_plan {
    char *dir;
    struct u16_file *files;
    size_t file_count, file_capacity;
    struct u16_info *infos;
    size_t info_count, info_capacity;
};

DEFINE_CLEANUP(cleanup_plan, struct u16_plan *, u16_plan_free)
DEFINE_CLEANUP(cleanup_names, struct u16_names *, u16_names_free)
DEFINE_CLEANUP(cleanup_dir, DIR *, closedir)
DEFINE_CLEANUP(cleanup_writer, struct trace_writer *, trace_writer_free)

/* ------------------------------------------------------------------------------------------ .info files */

void u16_names_free(struct u16_names *names)
{
    if (!names)
        return;
    for (size_t i = 0; i < WORDS; i++)
        free(names->names[i]);
    free(names);
}

/* Bytes of the UTF-8 sequence at `text`, 0 when it is none. */
static size_t utf8_length(const unsigned char *text, size_t size)
{
    size_t length = text[0] < 0x80 ? 1 : text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;
    uint32_t code = length == 1 ? text[0] : text[0] & (0x7fu >> length);
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};

    if ((text[0] >= 0x80 && text[0] < 0xc2) || text[0] > 0xf4 || length > size)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (text[i] & 0x3fu);
    }
    if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return 0;
    return length;
}

static bool is_text(const char *text, size_t size)
{
    for (size_t at = 0, length; at < size; at += length) {
        length = utf8_length((const unsigned char *)text + at, size - at);
        if (!length || !text[at])
            return false;
    }
    return true;
}

static int parse_info_line(const char *line, size_t size, struct u16_names *names, const char **ret_problem)
{
    uint32_t id = 0;
    size_t at = 0;
    char *name;

    while (size && isspace((unsigned char)line[size - 1]))
        size--;
    if (!size)
        return 0;
    for (; at < size && isdigit((unsigned char)line[at]) && id < WORDS; at++)
        id = id * 10 + (uint32_t)(line[at] - '0');
    *ret_problem = "is not 'ID NAME' with an ID from 1 to 65535";
    if (!at || !id || id >= WORDS || at == size || !isblank((unsigned char)line[at]))
        return -EBADMSG;
    while (isblank((unsigned char)line[at]))
        at++;
    *ret_problem = "is not UTF-8 text";
    if (!is_text(line + at, size - at))
        return -EBADMSG;
    *ret_problem = "names an ID a second time";
    if (names->names[id])
        return strlen(names->names[id]) == size - at && !memcmp(names->names[id], line + at, size - at)
                   ? 0
                   : -EBADMSG;
    name = strndup(line + at, size - at);
    if (!name)
        return -ENOMEM;
    names->names[id] = name;
    names->count++;
    return 0;
}

int u16_names_parse(const char *text, size_t size, const char *path, struct u16_names **ret_names,
                    struct error *err)
{
    CLEANUP(cleanup_names) struct u16_names *names = calloc(1, sizeof(*names));
    unsigned long number = 1;

    if (!names)
        return error_no_memory(err);
    for (size_t at = 0; at < size; number++) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t length = end ? (size_t)(end - text) - at : size - at;
        const char *problem = NULL;
        int r = parse_info_line(text + at, length, names, &problem);

        if (r == -ENOMEM)
            return error_no_memory(err);
        if (r < 0)
            return error_say(err, r, "reading %s: line %lu %s", path, number, problem);
        at += length + 1;
    }
    *ret_names = take_pointer(names);
    return 0;
}

static int read_info(const char *path, struct u16_names **ret_names, struct error *err)
{
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    AUTO_FREE char *text = NULL;
    size_t capacity = 0, size = 0;

    if (fd < 0)
        return error_set(err, -errno, NULL, "opening %s", path);
    for (;;) {
        ssize_t got;

        if (array_reserve(&text, &capacity, size + 65536) < 0)
            return error_no_memory(err);
        got = read(fd, text + size, capacity - size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_set(err, -errno, NULL, "reading %s", path);
        if (got == 0)
            break;
        size += (size_t)got;
        if (size > INFO_LIMIT)
            return error_say(err, -EFBIG, "reading %s: an .info file of more than %u MiB", path,
                             INFO_LIMIT >> 20);
    }
    return u16_names_parse(text, size, path, ret_names, err);
}

/* ----------------------------------------------------------------------------------------- checking words */

static int check_word(struct u16_check *check, uint32_t word, const struct u16_names *names, bool *used,
                      const char *path, struct error *err)
{
    uint64_t offset = check->offset - 2;

    if (!word && !check->depth)
        return error_say(err, -EBADMSG, "reading %s: at offset %llu a return without an open call", path,
                         (unsigned long long)offset);
    if (word && names && !names->names[word])
        return error_say(err, -EBADMSG,
                         "reading %s: at offset %llu function %u, which the .info file does not name", path,
                         (unsigned long long)offset, word);
    if (word && used)
        used[word] = true;
    check->depth += word ? 1 : (uint64_t)-1;
    return 0;
}

int u16_check_bytes(struct u16_check *check, const uint8_t *bytes, size_t size, const struct u16_names *names,
                    bool *used, const char *path, struct error *err)
{
    for (size_t i = 0; i < size; i++) {
        int r;

        check->offset++;
        if (!check->half) {
            check->low = bytes[i];
            check->half = true;
            continue;
        }
        check->half = false;
        r = check_word(check, check->low | (uint32_t)bytes[i] << 8, names, used, path, err);
        if (r < 0)
            return r;
    }
    return 0;
}

int u16_check_end(const struct u16_check *check, const char *path, struct error *err)
{
    if (check->half)
        return error_say(
            err, -EBADMSG,
            "reading %s: half a word at offset %llu (words have two bytes: the file was cut off?)", path,
            (unsigned long long)check->offset - 1);
    return 0;
}

/* ------------------------------------------------------------------------------------------ finding files */

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

/* ----------------------------------------------------------------------------------------- naming threads */

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

/* ---------------------------------------------------------------------------------------- names of a file */

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

static int load_names(struct u16_plan *plan, struct u16_file *file, struct u16_names **ret_names,
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
        r = read_info(path, &info->names, err);
    }
    if (r == 0)
        *ret_names = info->names;
    return r;
}

/* -------------------------------------------------------------------------------------- passes over words */

/* Hands the file to `take` in pieces. */
static int read_pieces(const char *path, int (*take)(void *context, const uint8_t *bytes, size_t size),
                       void *context, struct error *err)
{
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    AUTO_FREE uint8_t *buffer = malloc(1 << 18);

    if (fd < 0)
        return error_set(err, -errno, NULL, "opening %s", path);
    if (!buffer)
        return error_no_memory(err);
    for (;;) {
        ssize_t got = read(fd, buffer, 1 << 18);
        int r;

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_set(err, -errno, NULL, "reading %s", path);
        if (got == 0)
            return 0;
        r = take(context, buffer, (size_t)got);
        if (r < 0)
            return r;
    }
}

/* One file on its way through a pass; `ids` and `thread` are NULL in the checking pass. */
struct u16_pass {
    const char *path;
    const struct u16_names *names;
    struct u16_check check;
    bool *used;
    const uint32_t *ids;
    struct trace_writer *writer;
    struct thread_writer *thread;
    uint64_t unflushed;
    struct error *err;
};

static int append_words(struct u16_pass *pass, const uint8_t *bytes, size_t size)
{
    struct u16_check check = pass->check; /* for the word that lies across two pieces */

    for (size_t i = 0; i < size; i++) {
        uint32_t word;
        int r;

        if (!check.half) {
            check.low = bytes[i];
            check.half = true;
            continue;
        }
        check.half = false;
        word = check.low | (uint32_t)bytes[i] << 8;
        r = word ? thread_writer_call(pass->thread, pass->ids[word]) : thread_writer_return(pass->thread);
        if (r < 0)
            return error_set(pass->err, r, NULL, "storing %s", pass->path);
    }
    return 0;
}

static int take_piece(void *context, const uint8_t *bytes, size_t size)
{
    struct u16_pass *pass = context;
    struct u16_check before = pass->check, after = before;
    int r = u16_check_bytes(&after, bytes, size, pass->names, pass->used, pass->path, pass->err);

    if (r == 0 && pass->thread)
        r = append_words(pass, bytes, size);
    pass->check = after;
    if (r < 0 || !pass->thread)
        return r;
    pass->unflushed += size;
    if (pass->unflushed < FLUSH_BYTES)
        return 0;
    pass->unflushed = 0;
    return trace_writer_flush(pass->writer, clock_ns(CLOCK_REALTIME), pass->err);
}

static int pass_file(const struct u16_plan *plan, const struct u16_file *file, struct u16_pass *pass)
{
    AUTO_FREE char *path = NULL;
    int r;

    if (asprintf(&path, "%s/%s", plan->dir, file->name) < 0)
        return error_no_memory(pass->err);
    pass->path = path;
    pass->check = (struct u16_check){0};
    r = read_pieces(path, take_piece, pass, pass->err);
    if (r == 0)
        r = u16_check_end(&pass->check, path, pass->err);
    pass->path = NULL;
    return r;
}

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
            r = load_names(plan, &plan->files[i], &names, err);
        pass.names = names;
        if (r == 0)
            r = pass_file(plan, &plan->files[i], &pass);
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

/* ------------------------------------------------------------------------------------------ writing */

struct u16_write {
    struct u16_plan *plan;
    struct trace_writer *writer;
    char *(*demangle)(const char *name);
    int64_t image_id, process_id;
    uint32_t ids[WORDS]; /* store's function_id of a word */
    size_t ids_of;       /* the .info file that `ids` belongs to */
    bool ids_valid;
    struct error *err;
};

static int compare_names(const void *left, const void *right, void *context)
{
    const struct u16_names *names = context;
    const uint32_t *a = left, *b = right;
    int order = strcmp(names->names[*a], names->names[*b]);

    return order ? order : *a < *b ? -1 : *a > *b;
}

/* Functions are known by name: the same name in two traces is the same function, whatever its number. Where
 * one .info file gives a name to several numbers (static functions), the first keeps address 0 and the others
 * get 1, 2 ... in the order of their numbers, so that they stay apart. `ordinals` has WORDS items. */
static int number_names(const struct u16_names *names, uint32_t *ordinals)
{
    AUTO_FREE uint32_t *sorted = malloc((names->count + 1) * sizeof(*sorted));
    size_t count = 0;

    if (!sorted)
        return -ENOMEM;
    for (uint32_t word = 1; word < WORDS; word++)
        if (names->names[word])
            sorted[count++] = word;
    qsort_r(sorted, count, sizeof(*sorted), compare_names, (void *)names);
    for (size_t i = 1; i < count; i++)
        if (!strcmp(names->names[sorted[i]], names->names[sorted[i - 1]]))
            ordinals[sorted[i]] = ordinals[sorted[i - 1]] + 1;
    return 0;
}

static int register_function(struct u16_write *write, const struct u16_names *names, uint32_t word,
                             uint32_t ordinal)
{
    char number[32];
    AUTO_FREE char *demangled = NULL;
    struct trace_function_description function = {.name = number};

    snprintf(number, sizeof(number), "function_%u", word);
    if (names) {
        function.name = names->names[word];
        function.address = ordinal;
    }
    if (write->demangle)
        demangled = write->demangle(function.name);
    function.demangled = demangled;
    return trace_writer_function(write->writer, write->image_id, &function, &write->ids[word], write->err);
}

/* All functions that a file's .info names; without one all 65,535 numbers could come, and those used are
 * found by the reading of the files that have none. */
static int register_functions(struct u16_write *write, const struct u16_file *file,
                              const struct u16_names *names)
{
    AUTO_FREE bool *used = NULL;
    AUTO_FREE uint32_t *ordinals = NULL;
    int r = 0;

    if (names && write->ids_valid && write->ids_of == file->names_index)
        return 0;
    used = calloc(WORDS, sizeof(*used));
    ordinals = calloc(WORDS, sizeof(*ordinals));
    if (!used || !ordinals || (names && number_names(names, ordinals) < 0))
        return error_no_memory(write->err);
    if (!names) {
        struct u16_pass pass = {.used = used, .err = write->err};

        r = pass_file(write->plan, file, &pass);
    }
    for (uint32_t word = 1; r == 0 && word < WORDS; word++)
        if (names ? names->names[word] != NULL : used[word])
            r = register_function(write, names, word, ordinals[word]);
    write->ids_valid = r == 0;
    write->ids_of = file->names_index;
    return r;
}

static int write_process(struct u16_write *write, const struct u16_file *file, uint64_t now)
{
    struct trace_process_description process = {
        .pid = (int32_t)file->pid,
        .rank = -1,
        .exe = file->numbered ? "" : file->group,
        .argv = "",
        .started_ns = now,
    };

    return trace_writer_process(write->writer, &process, &write->process_id, write->err);
}

static int write_file(struct u16_write *write, struct u16_file *file, uint64_t now)
{
    struct trace_thread_description description = {
        .process_id = write->process_id,
        .tid = (int32_t)file->tid,
        .started_ns = now,
        .returns = TRACE_RETURNS_PROBED,
    };
    struct u16_pass pass = {.writer = write->writer, .ids = write->ids, .err = write->err};
    struct u16_names *names = NULL;
    char label[48];
    int r = load_names(write->plan, file, &names, write->err);

    snprintf(label, sizeof(label), "%llu.%llu", (unsigned long long)file->process,
             (unsigned long long)file->thread);
    description.label = label;
    if (r == 0)
        r = register_functions(write, file, names);
    if (r == 0)
        r = trace_writer_thread(write->writer, &description, &pass.thread, write->err);
    pass.names = names;
    if (r == 0)
        r = pass_file(write->plan, file, &pass);
    if (r == 0)
        r = thread_writer_end(pass.thread, clock_ns(CLOCK_REALTIME), write->err);
    return r;
}

static int write_files(struct u16_write *write)
{
    static const struct trace_image_description image = {.path = "u16", .build_id = "", .kind = "import"};
    struct u16_plan *plan = write->plan;
    uint64_t now = clock_ns(CLOCK_REALTIME);
    int r = trace_writer_image(write->writer, &image, &write->image_id, write->err);

    for (size_t i = 0; r == 0 && i < plan->file_count; i++) {
        if (!i || plan->files[i].process != plan->files[i - 1].process)
            r = write_process(write, &plan->files[i], now);
        if (r == 0)
            r = write_file(write, &plan->files[i], now);
    }
    return r;
}

/* "the last part of the directory's path", as the run's name. */
static const char *directory_name(const char *dir)
{
    const char *slash = strrchr(dir, '/');

    return slash && slash[1] ? slash + 1 : dir;
}

int u16_plan_write(struct u16_plan *plan, struct tracestore *store, const char *name,
                   char *(*demangle)(const char *name), int64_t *ret_run_id, struct error *err)
{
    AUTO_FREE char *command = NULL;
    AUTO_FREE struct u16_write *write = calloc(1, sizeof(*write));
    CLEANUP(cleanup_writer) struct trace_writer *writer = NULL;
    struct trace_run_description run = {.options = "import --format u16"};
    struct error ignored = {0};
    int64_t run_id;
    int r;

    if (!write || asprintf(&command, "import %s", plan->dir) < 0)
        return error_no_memory(err);
    run.name = name ? name : directory_name(plan->dir);
    run.command = command;
    run.started_ns = clock_ns(CLOCK_REALTIME);
    r = trace_writer_begin(store, &run, NULL, &writer, err);
    if (r < 0)
        return r;
    run_id = trace_writer_run_id(writer);
    write->plan = plan;
    write->writer = writer;
    write->demangle = demangle;
    write->err = err;
    r = write_files(write);
    if (r == 0)
        r = trace_writer_end(writer, clock_ns(CLOCK_REALTIME), -1, err);
    if (r == 0) {
        *ret_run_id = run_id;
        return 0;
    }
    /* A run without an end counts as being recorded, by this process: ended first, it can be removed. */
    trace_writer_end(writer, clock_ns(CLOCK_REALTIME), -1, &ignored);
    trace_writer_free(take_pointer(writer));
    tracestore_delete_run(store, run_id, &ignored);
    return r;
}

int tracestore_import_u16(struct tracestore *store, const char *dir, const char *name, int64_t *ret_run_id,
                          struct error *err)
{
    CLEANUP(cleanup_plan) struct u16_plan *plan = NULL;
    int r = u16_plan_new(dir, &plan, err);

    return r < 0 || !plan ? r : u16_plan_write(plan, store, name, NULL, ret_run_id, err);
}
