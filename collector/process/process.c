/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/process/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/foreign_file.h"
#include "collector/process/map_lines.h"
#include "collector/process/proc_numbers.h"
#include "collector/process/target_memory.h"

/* Reads a file of /proc whole, with a NUL behind it, one that the kernel writes without the memory of the
 * process. NULL when it cannot be read. */
static char *read_proc(pid_t pid, const char *name, size_t *ret_size)
{
    AUTO_FREE char *text = NULL;
    AUTO_CLOSE int fd = -1;
    size_t capacity = 0, size = 0;
    char path[64];
    ssize_t got;

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    do {
        if (array_reserve(&text, &capacity, size + 4096))
            return NULL;
        got = read(fd, text + size, capacity - size - 1);
        if (got > 0)
            size += (size_t)got;
    } while (got > 0);
    if (got < 0)
        return NULL;
    text[size] = '\0';
    *ret_size = size;
    return take_pointer(text);
}

/* Whether /proc shows the memory of the thread, and what comes with it. It shows none of threads that have ended, nor of
 * those of the kernel; whom it may not show it to is told something else. */
static bool has_shown_memory(pid_t tid)
{
    char link[64], path[1];

    snprintf(link, sizeof(link), "/proc/%d/exe", (int)tid);
    return readlink(link, path, sizeof(path)) >= 0 || errno != ENOENT;
}

pid_t process_shown_thread(pid_t pid)
{
    AUTO_FREE pid_t *tids = NULL;
    size_t count = 0;

    if (has_shown_memory(pid) || process_threads(pid, &tids, &count, NULL))
        return pid;
    for (size_t i = 0; i < count; i++)
        if (tids[i] != pid && has_shown_memory(tids[i]))
            return tids[i];
    return pid;
}

void process_exe_link(pid_t pid, char *ret_path, size_t size)
{
    snprintf(ret_path, size, "/proc/%d/exe", (int)process_shown_thread(pid));
}

void process_root_link(pid_t pid, char *ret_path, size_t size)
{
    snprintf(ret_path, size, "/proc/%d/root", (int)process_shown_thread(pid));
}

void process_mapped_link(pid_t pid, uint64_t start, uint64_t end, char *ret_path, size_t size)
{
    snprintf(ret_path, size, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)process_shown_thread(pid), start,
             end);
}

int process_memory_open(pid_t pid, int flags)
{
    char path[64];
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/mem", (int)process_shown_thread(pid));
    fd = open(path, flags | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

char *process_exe(pid_t pid)
{
    char link[64], path[PATH_MAX];
    ssize_t length;

    process_exe_link(pid, link, sizeof(link));
    length = readlink(link, path, sizeof(path) - 1);
    if (length < 0)
        return strdup("?");
    path[length] = '\0';
    return strdup(path);
}

void process_exe_strip_mark(char *path)
{
    static const char mark[] = " (deleted)";
    size_t length = strlen(path);

    if (length >= sizeof(mark) && !strcmp(path + length - (sizeof(mark) - 1), mark))
        path[length - (sizeof(mark) - 1)] = '\0';
}

char *process_command_line(pid_t pid)
{
    size_t size;
    char *text;

    if (target_proc_text(pid, "cmdline", &text, &size))
        return strdup("");
    while (size && !text[size - 1])
        size--;
    for (size_t i = 0; i < size; i++)
        if (!text[i])
            text[i] = ' ';
    return text;
}

int process_rank(pid_t pid)
{
    static const char *const variables[] = {
        "PMI_RANK=", "PMIX_RANK=", "OMPI_COMM_WORLD_RANK=", "SLURM_PROCID="};
    size_t size;
    AUTO_FREE char *environment = NULL;

    if (target_proc_text(pid, "environ", &environment, &size))
        return -1;
    for (size_t v = 0; v < ARRAY_SIZE(variables); v++) {
        size_t length = strlen(variables[v]);

        for (const char *entry = environment; entry < environment + size; entry += strlen(entry) + 1) {
            char *end;
            long rank;

            if (strncmp(entry, variables[v], length))
                continue;
            rank = strtol(entry + length, &end, 10);
            if (end != entry + length && !*end && rank >= 0 && rank <= INT_MAX)
                return (int)rank;
        }
    }
    return -1;
}

/* A number of /proc/PID/status, by "\nName:"; -1: the process is gone, or cannot be looked at. */
static pid_t status_number(pid_t pid, const char *name)
{
    size_t size;
    AUTO_FREE char *status = read_proc(pid, "status", &size);
    const char *line = status ? strstr(status, name) : NULL;

    return line ? (pid_t)strtol(line + strlen(name), NULL, 10) : -1;
}

pid_t process_of_thread(pid_t tid)
{
    pid_t process = status_number(tid, "\nTgid:");

    return process < 0 ? -ESRCH : process;
}

pid_t process_parent(pid_t pid)
{
    pid_t parent = status_number(pid, "\nPPid:");

    return parent < 0 ? 0 : parent;
}

int process_threads(pid_t pid, pid_t **ret_tids, size_t *ret_count, struct error *err)
{
    AUTO_FREE pid_t *tids = NULL;
    size_t count = 0, capacity = 0;
    AUTO_PROC_NUMBERS numbers;
    char path[64];
    pid_t tid;
    int r;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    r = proc_numbers_open(&numbers, path);
    if (r)
        return error_set(err, r == -ENOENT ? -ESRCH : r, NULL, "cannot trace process %d", (int)pid);
    while ((tid = proc_numbers_next(&numbers)) > 0) {
        if (array_reserve(&tids, &capacity, count + 1))
            return error_no_memory(err);
        /* The kernel lists them in the order of their making, whatever their numbers (pids wrap round). */
        tids[count++] = tid;
    }
    if (!count)
        return error_set(err, -ESRCH, NULL, "cannot trace process %d", (int)pid);
    *ret_tids = take_pointer(tids);
    *ret_count = count;
    return 0;
}

uint64_t process_cpu_ns(pid_t pid)
{
    struct timespec used;
    clockid_t clock;

    if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &used))
        return 0;
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

int process_children(pid_t pid, pid_t **ret_pids, size_t *ret_count, struct error *err)
{
    AUTO_FREE pid_t *pids = NULL, *tids = NULL;
    size_t count = 0, capacity = 0, threads = 0;

    if (process_threads(pid, &tids, &threads, NULL))
        threads = 0;
    for (size_t i = 0; i < threads; i++) {
        AUTO_FREE char *list = NULL;
        char name[64], *number, *rest;
        size_t size;

        snprintf(name, sizeof(name), "task/%d/children", (int)tids[i]);
        list = read_proc(pid, name, &size);
        rest = list;
        while ((number = strsep(&rest, " "))) {
            if (!*number)
                continue;
            if (array_reserve(&pids, &capacity, count + 1))
                return error_no_memory(err);
            pids[count++] = (pid_t)strtol(number, NULL, 10);
        }
    }
    *ret_pids = take_pointer(pids);
    *ret_count = count;
    return 0;
}

static int compare_pids(const void *a, const void *b)
{
    const pid_t *left = a, *right = b;

    return (*left > *right) - (*left < *right);
}

int processes_that(bool (*wanted)(void *context, pid_t pid), void *context, pid_t **ret_pids,
                   size_t *ret_count)
{
    AUTO_FREE pid_t *pids = NULL;
    size_t count = 0, capacity = 0;
    AUTO_PROC_NUMBERS numbers;
    pid_t pid;

    proc_numbers_open(&numbers, "/proc");
    while ((pid = proc_numbers_next(&numbers)) > 0) {
        if (!wanted(context, pid))
            continue;
        if (array_reserve(&pids, &capacity, count + 1))
            return -ENOMEM;
        pids[count++] = pid;
    }
    if (count)
        qsort(pids, count, sizeof(*pids), compare_pids);
    *ret_pids = take_pointer(pids);
    *ret_count = count;
    return 0;
}

static bool runs(void *context, pid_t pid)
{
    const struct stat *program = context;
    struct stat file;
    char link[64];

    process_exe_link(pid, link, sizeof(link));
    return !foreign_file_stat(link, &file) && file.st_dev == program->st_dev &&
           file.st_ino == program->st_ino;
}

int process_runners(dev_t device, ino_t inode, pid_t **ret_pids, size_t *ret_count)
{
    struct stat program = {.st_dev = device, .st_ino = inode};

    return processes_that(runs, &program, ret_pids, ret_count);
}

bool process_may_have_breakpoints(pid_t pid)
{
    size_t size;
    AUTO_FREE char *status = read_proc(pid, "status", &size);
    const char *tracer = status ? strstr(status, "\nTracerPid:") : NULL;
    const char *caught = status ? strstr(status, "\nSigCgt:") : NULL;
    uint64_t signals = 0;
    int pid_of_tracer = 0;

    if (tracer)
        sscanf(tracer, " TracerPid: %d", &pid_of_tracer);
    if (caught)
        sscanf(caught, " SigCgt: %" SCNx64, &signals);
    return pid_of_tracer || signals >> (SIGTRAP - 1) & 1;
}

/* The letter of its state, 0: it is gone, or cannot be looked at. */
static char state_of(pid_t pid)
{
    AUTO_FCLOSE FILE *status = NULL;
    char path[64], line[256], state = 0;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    status = fopen(path, "re");
    while (status && !state && fgets(line, sizeof(line), status))
        if (sscanf(line, "State: %c", &state) != 1)
            state = 0;
    return state;
}

bool thread_has_ended(pid_t tid)
{
    char state = state_of(tid);

    return state == 'Z' || state == 'X';
}

bool process_is_stopped(pid_t pid)
{
    return state_of(pid) == 'T';
}

bool process_is_running(pid_t pid)
{
    char state = state_of(pid);
    pid_t threads;

    if (!state) /* it is gone; or there is no descriptor to look at it with */
        return !kill(pid, 0) || errno != ESRCH;
    if (state != 'Z')
        return state != 'X';
    threads = status_number(
        pid, "\nThreads:"); /* a first thread that has ended before the others is a zombie, too */
    return threads > 1 || threads < 0;
}

bool process_has_memory(pid_t pid)
{
    return status_number(pid, "\nVmSize:") > 0;
}

char *process_thread_name(pid_t pid, pid_t tid)
{
    char name[64];
    size_t size;
    char *text;

    snprintf(name, sizeof(name), "task/%d/comm", (int)tid);
    text = read_proc(pid, name, &size);
    if (!text)
        return strdup("");
    text[strcspn(text, "\n")] = '\0';
    return text;
}

int process_exe_mapping(pid_t pid, uint64_t *ret_start, uint64_t *ret_offset)
{
    AUTO_MAP_LINES struct map_lines maps = {0};
    struct map_line line;
    struct stat exe;
    char link[64];

    process_exe_link(pid, link, sizeof(link));
    if (foreign_file_stat(link, &exe) || map_lines_open(pid, &maps))
        return -ENOENT;
    while (map_lines_next(&maps, &line)) {
        /* Some file systems (btrfs, overlayfs) show another device in maps than stat tells: the inode
         * decides. */
        if (line.inode != exe.st_ino || !line.executable)
            continue;
        *ret_start = line.start;
        *ret_offset = line.offset;
        return 0;
    }
    return -ENOENT;
}
