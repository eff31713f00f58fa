/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/inline/call_filters.h"

#include <stddef.h>
#include <sys/syscall.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "collector/stacks/live_threads.h"

/* Those of sessions (live_area.c, stale_patches.c, text_pages.c), and what leads back from them. */
static const unsigned needed[] = {SYS_mmap,    SYS_munmap,       SYS_mprotect,
                                  SYS_madvise, SYS_socketpair,   SYS_recvmsg,
                                  SYS_close,   SYS_rt_sigreturn, SYS_restart_syscall};

/* Loaded when the first filter is met, and kept for sessions: these are other processes, with its descriptors. */
static struct live_reader *reader;

static bool allows(const struct live_thread *thread)
{
    for (size_t i = 0; thread->has_filter && i < ARRAY_SIZE(needed); i++)
        if (!(thread->allowed[needed[i] / 64] >> needed[i] % 64 & 1))
            return false;
    return true;
}

static bool all_allow(const struct live_threads *threads)
{
    for (size_t i = 0; i < threads->count; i++)
        if (!allows(&threads->items[i]))
            return false;
    return threads->count;
}

bool call_filters_allow(pid_t pid)
{
    CLEANUP(live_threads_release) struct live_threads threads = {0};

    if (!reader && live_reader_open(&reader, NULL))
        return false;
    return !live_reader_list(reader, pid, &threads, NULL) && all_allow(&threads);
}

bool call_filters_allow_thread(pid_t tid)
{
    CLEANUP(live_threads_release) struct live_threads threads = {0};

    return reader && !live_reader_list_thread(reader, tid, &threads, NULL) && all_allow(&threads);
}
