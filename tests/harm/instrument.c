/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What -finstrument-functions calls: the compiler's own account of every call, for the harm matrix to compare
 * recordings with.
 *
 * Each thread of each program that a process executes logs into a file of its own, $HARM_TRUTH.PID.TID.N,
 * which is mapped shared: what is in it survives _exit, exec, signals and seccomp. It is an array of struct
 * record; the first zero ends it. $HARM_TRUTH.modules has a line "PID NUMBER PATH" for each executable or
 * library that calls came from.
 *
 * Where a frame lies (its CFA) tells what was left by longjmp: see tests/harm/truth.py, which reads this.
 */
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PLAIN __attribute__((no_instrument_function))

enum { RECORDS = 1 << 20, MODULES = 32, LOGS = 256, MODULE_SHIFT = 48, EXIT_SHIFT = 63 };

struct record {
    uint64_t what; /* link-time address, number of the module + 1 (15 bits), 1 at the exit */
    uint64_t frame;
};

struct module {
    uintptr_t start, end, bias;
    char path[1024];
};

static struct module modules[MODULES];
static int module_count;
static pthread_mutex_t modules_lock = PTHREAD_MUTEX_INITIALIZER;

struct log {
    long tid;
    struct record *records;
    atomic_long count;
};

/* By thread id and not thread-local: a vfork child shares its parent's memory, thread-local memory included.
 */
static struct log logs[LOGS];
static atomic_int log_count;
static __thread struct log *last_log;

void __cyg_profile_func_enter(void *function, void *site);
void __cyg_profile_func_exit(void *function, void *site);

struct search {
    uintptr_t address;
    struct module found;
};

PLAIN static int find_module(struct dl_phdr_info *info, size_t size, void *context)
{
    struct search *search = context;

    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

        if (info->dlpi_phdr[i].p_type == PT_LOAD && search->address - start < info->dlpi_phdr[i].p_memsz) {
            search->found = (struct module){start, start + info->dlpi_phdr[i].p_memsz, info->dlpi_addr, ""};
            snprintf(search->found.path, sizeof(search->found.path), "%s", info->dlpi_name);
            return 1;
        }
    }
    return 0;
}

PLAIN static void write_module(int number, const struct module *module)
{
    char path[4096], line[4600];
    int file;

    snprintf(path, sizeof(path), "%s.modules", getenv("HARM_TRUTH"));
    file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    snprintf(line, sizeof(line), "%d %d %s\n", getpid(), number, module->path);
    if (file < 0 || write(file, line, strlen(line)) < 0)
        abort();
    close(file);
}

PLAIN static int add_module(uintptr_t address)
{
    struct search search = {.address = address};

    if (module_count == MODULES || !dl_iterate_phdr(find_module, &search))
        abort();
    if (!search.found.path[0] &&
        readlink("/proc/self/exe", search.found.path, sizeof(search.found.path) - 1) < 0)
        abort();
    modules[module_count] = search.found;
    write_module(module_count, &search.found);
    return module_count++;
}

PLAIN static int module_of(uintptr_t address)
{
    int i = 0;

    while (i < module_count && !(address >= modules[i].start && address < modules[i].end))
        i++;
    if (i < module_count)
        return i;
    pthread_mutex_lock(&modules_lock);
    i = add_module(address);
    pthread_mutex_unlock(&modules_lock);
    return i;
}

PLAIN static struct record *map_log(long tid)
{
    struct record *records;
    char path[4096];
    int file = -1;

    for (int n = 0; file < 0; n++) {
        snprintf(path, sizeof(path), "%s.%d.%ld.%d", getenv("HARM_TRUTH"), getpid(), tid, n);
        file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file < 0 && errno != EEXIST)
            abort();
    }
    if (ftruncate(file, RECORDS * sizeof(*records)))
        abort();
    records = mmap(NULL, RECORDS * sizeof(*records), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (records == MAP_FAILED)
        abort();
    close(file);
    return records;
}

PLAIN static struct log *log_of(long tid)
{
    int count = log_count;

    if (last_log && last_log->tid == tid)
        return last_log;
    for (int i = 0; i < count; i++) {
        if (logs[i].tid == tid)
            return last_log = &logs[i];
    }
    last_log = &logs[log_count++];
    if (last_log == &logs[LOGS])
        abort();
    *last_log = (struct log){.tid = tid, .records = map_log(tid)};
    for (int i = 0; i < module_count; i++)
        write_module(i, &modules[i]); /* those that a forked child has from its parent */
    return last_log;
}

PLAIN static void append(void *function, uint64_t exit, uint64_t frame)
{
    int error = errno, module;
    long number, tid = syscall(SYS_gettid);
    struct log *log;

    if (!getenv("HARM_TRUTH"))
        return;
    log = log_of(tid);
    number = log->count++; /* at once: a signal handler's calls log in between */
    if (number >= RECORDS - 1)
        abort();
    module = module_of((uintptr_t)function);
    log->records[number] = (struct record){((uintptr_t)function - modules[module].bias) |
                                               (uint64_t)(module + 1) << MODULE_SHIFT | exit << EXIT_SHIFT,
                                           frame};
    errno = error;
}

/* The frame is that of the instrumented function: its frame pointer. */
PLAIN void __cyg_profile_func_enter(void *function, void *site)
{
    append(function, 0, (uintptr_t)__builtin_frame_address(1));
}

PLAIN void __cyg_profile_func_exit(void *function, void *site)
{
    append(function, 1, (uintptr_t)__builtin_frame_address(1));
}
