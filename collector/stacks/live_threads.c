/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/stacks/live_threads.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "bpf/threads.skel.h"
#include "collector/process/pid_namespace.h"
#include "collector/uprobe/bpf_messages.h"

typedef __typeof__(((struct threads_bpf__bss *)0)->thread) thread_record;

_Static_assert(sizeof(((thread_record *)0)->registers) == sizeof(((struct live_thread *)0)->registers),
               "registers");
_Static_assert(sizeof(((thread_record *)0)->replaced) == sizeof(((struct live_thread *)0)->replaced),
               "both sides count the same return probes");

_Static_assert(sizeof(((thread_record *)0)->allowed) == sizeof(((struct live_thread *)0)->allowed),
               "allowed calls");

struct live_reader {
    struct threads_bpf *skeleton;
};

void live_threads_release(struct live_threads *threads)
{
    free(threads->items);
    *threads = (struct live_threads){0};
}

int live_reader_open(struct live_reader **ret_reader, struct error *err)
{
    struct live_reader *reader;
    int r = pid_namespace_check(err);

    if (r)
        return r;
    reader = malloc(sizeof(*reader));
    if (!reader)
        return error_no_memory(err);
    bpf_messages_begin();
    reader->skeleton = threads_bpf__open_and_load();
    if (!reader->skeleton) {
        r = -errno;
        free(reader);
        return bpf_messages_error(err, r, "cannot load the iterator over threads");
    }
    *ret_reader = reader;
    return 0;
}

void live_reader_close(struct live_reader *reader)
{
    if (!reader)
        return;
    threads_bpf__destroy(reader->skeleton);
    free(reader);
}

static void take_record(struct live_thread *thread, const thread_record *record)
{
    thread->tid = (pid_t)record->tid;
    thread->pid = (pid_t)record->tgid;
    thread->on_cpu = record->on_cpu;
    thread->runnable = record->on_cpu || !record->state;
    thread->state = record->state;
    thread->system_call = record->system_call;
    thread->is_64_bit = record->is_native;
    thread->has_filter = record->has_filter;
    memcpy(thread->allowed, record->allowed, sizeof(thread->allowed));
    thread->switches = record->switches;
    memcpy(thread->registers, record->registers, sizeof(thread->registers));
    thread->thread_block = record->thread_block;
    thread->main_stack = record->main_stack;
    thread->signal_stack = record->signal_stack;
    thread->signal_stack_size = record->signal_stack_size;
    thread->replaced_count = record->replaced_count;
    for (size_t i = 0; i < record->replaced_count; i++)
        thread->replaced[i] = (struct live_replaced){record->replaced[i].slot, record->replaced[i].address};
}

/* Reads the iterator to its end. The kernel hands out whole records, as many as fit. */
static int read_records(int iterator, struct live_threads *threads)
{
    enum { AT_A_TIME = 16 };
    AUTO_FREE thread_record *records = malloc(AT_A_TIME * sizeof(*records));

    if (!records)
        return -ENOMEM;
    for (;;) {
        ssize_t got = read(iterator, records, AT_A_TIME * sizeof(*records));
        size_t count = (size_t)got / sizeof(*records);

        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got <= 0)
            return got < 0 ? -errno : 0;
        if ((size_t)got % sizeof(*records))
            return -EIO;
        if (array_reserve(&threads->items, &threads->capacity, threads->count + count))
            return -ENOMEM;
        for (size_t i = 0; i < count; i++)
            take_record(&threads->items[threads->count++], &records[i]);
    }
}

/* `id` is for the error line. */
static int list(struct live_reader *reader, union bpf_iter_link_info which, pid_t id,
                struct live_threads *threads, struct error *err)
{
    LIBBPF_OPTS(bpf_iter_attach_opts, options, .link_info = &which, .link_info_len = sizeof(which));
    struct bpf_link *link = bpf_program__attach_iter(reader->skeleton->progs.list_threads, &options);
    size_t before = threads->count;
    int r, iterator;

    if (!link)
        return errno == ESRCH ? 0 : error_set(err, -errno, NULL, "cannot list the threads of %d", (int)id);
    iterator = bpf_iter_create(bpf_link__fd(link));
    if (iterator < 0) {
        r = iterator;
    } else {
        r = read_records(iterator, threads);
        close(iterator);
    }
    bpf_link__destroy(link);
    if (!r)
        return 0;
    threads->count = before;
    return error_set(err, r, NULL, "cannot list the threads of %d", (int)id);
}

int live_reader_list(struct live_reader *reader, pid_t pid, struct live_threads *threads, struct error *err)
{
    return list(reader, (union bpf_iter_link_info){.task.pid = (uint32_t)pid}, pid, threads, err);
}

int live_reader_list_thread(struct live_reader *reader, pid_t tid, struct live_threads *threads,
                            struct error *err)
{
    return list(reader, (union bpf_iter_link_info){.task.tid = (uint32_t)tid}, tid, threads, err);
}

static int compare_threads(const void *a, const void *b)
{
    const struct live_thread *left = a, *right = b;

    return (left->tid > right->tid) - (left->tid < right->tid);
}

void live_threads_sort(struct live_threads *threads)
{
    if (threads->count)
        qsort(threads->items, threads->count, sizeof(*threads->items), compare_threads);
}

struct live_thread *live_threads_find(const struct live_threads *threads, pid_t tid)
{
    struct live_thread wanted = {.tid = tid};

    if (!threads->count)
        return NULL;
    return bsearch(&wanted, threads->items, threads->count, sizeof(wanted), compare_threads);
}
