/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/sync/functions.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"

#define AT(name, kind) \
    { \
        name, SYNC_##kind, SYNC_AT, false, 1, 0, 0 \
    }
#define WANTS(name, kind) \
    { \
        name, SYNC_##kind, SYNC_BEGIN, false, 1, 0, 0 \
    }
#define LASTS(name, kind) \
    { \
        name, SYNC_##kind, SYNC_BEGIN, true, 1, 0, 0 \
    }
#define WITH(name, kind) \
    { \
        name, SYNC_##kind, SYNC_BEGIN, true, 1, 2, 0 \
    }

const struct sync_function_spec sync_library_functions[] = {
    WANTS("pthread_mutex_lock", MUTEX_LOCK),
    LASTS("pthread_mutex_trylock", MUTEX_TRYLOCK),
    LASTS("pthread_mutex_timedlock", MUTEX_TIMEDLOCK),
    LASTS("pthread_mutex_clocklock", MUTEX_TIMEDLOCK),
    AT("pthread_mutex_unlock", MUTEX_UNLOCK),
    WANTS("pthread_rwlock_rdlock", RWLOCK_RDLOCK),
    LASTS("pthread_rwlock_tryrdlock", RWLOCK_TRYRDLOCK),
    LASTS("pthread_rwlock_timedrdlock", RWLOCK_TIMEDRDLOCK),
    LASTS("pthread_rwlock_clockrdlock", RWLOCK_TIMEDRDLOCK),
    WANTS("pthread_rwlock_wrlock", RWLOCK_WRLOCK),
    LASTS("pthread_rwlock_trywrlock", RWLOCK_TRYWRLOCK),
    LASTS("pthread_rwlock_timedwrlock", RWLOCK_TIMEDWRLOCK),
    LASTS("pthread_rwlock_clockwrlock", RWLOCK_TIMEDWRLOCK),
    AT("pthread_rwlock_unlock", RWLOCK_UNLOCK),
    WANTS("pthread_spin_lock", SPIN_LOCK),
    LASTS("pthread_spin_trylock", SPIN_TRYLOCK),
    AT("pthread_spin_unlock", SPIN_UNLOCK),
    WITH("pthread_cond_wait", COND_WAIT),
    WITH("pthread_cond_timedwait", COND_TIMEDWAIT),
    WITH("pthread_cond_clockwait", COND_TIMEDWAIT),
    AT("pthread_cond_signal", COND_SIGNAL),
    AT("pthread_cond_broadcast", COND_BROADCAST),
    LASTS("sem_wait", SEM_WAIT),
    LASTS("sem_trywait", SEM_TRYWAIT),
    LASTS("sem_timedwait", SEM_TIMEDWAIT),
    LASTS("sem_clockwait", SEM_TIMEDWAIT),
    AT("sem_post", SEM_POST),
    LASTS("pthread_barrier_wait", BARRIER_WAIT),
    LASTS("pthread_join", THREAD_JOIN),
    LASTS("pthread_timedjoin_np", THREAD_JOIN),
    LASTS("pthread_clockjoin_np", THREAD_JOIN),
};
const size_t sync_library_function_count = ARRAY_SIZE(sync_library_functions);

/* ------------------------------------------------------------------------------------------ system calls */

#define PLAIN(kind) \
    { \
        .operation = SYNC_##kind, .shape = SYNC_SHAPE_PLAIN \
    }
#define OF_FD(kind, number) \
    { \
        .operation = SYNC_##kind, .shape = SYNC_SHAPE_FD, .fd = (number) \
    }
#define SENDS(kind, number) \
    { \
        .operation = SYNC_##kind, .shape = SYNC_SHAPE_FD, .fd = (number), .sends = true \
    }
#define PEEKS(number, peer, message) \
    { \
        .operation = SYNC_RECEIVE, .shape = SYNC_SHAPE_FD, .peek_in = (number), .peer_in = (peer), \
        .message_in = (message) \
    }
#define TELLS(peer, message) \
    { \
        .operation = SYNC_SEND, .shape = SYNC_SHAPE_FD, .sends = true, .peer_in = (peer), \
        .message_in = (message) \
    }

static const struct sync_call calls[SYNC_CALLS] = {
    [SYS_read] = OF_FD(READ, 0),
    [SYS_pread64] = OF_FD(READ, 0),
    [SYS_readv] = OF_FD(READ, 0),
    [SYS_preadv] = OF_FD(READ, 0),
    [SYS_preadv2] = OF_FD(READ, 0),
    [SYS_write] = SENDS(WRITE, 0),
    [SYS_pwrite64] = SENDS(WRITE, 0),
    [SYS_writev] = SENDS(WRITE, 0),
    [SYS_pwritev] = SENDS(WRITE, 0),
    [SYS_pwritev2] = SENDS(WRITE, 0),
    [SYS_sendfile] = SENDS(WRITE, 0),
    [SYS_splice] = SENDS(WRITE, 2),
    [SYS_copy_file_range] = SENDS(WRITE, 2),
    [SYS_recvfrom] = PEEKS(3, 4, 0),
    [SYS_recvmsg] = PEEKS(2, 0, 1),
    [SYS_sendto] = TELLS(4, 0),
    [SYS_sendmsg] = TELLS(0, 1),
    [SYS_recvmmsg] = OF_FD(IO, 0),
    [SYS_sendmmsg] = OF_FD(IO, 0),
    [SYS_accept] = {.operation = SYNC_ACCEPT, .shape = SYNC_SHAPE_ACCEPT},
    [SYS_accept4] = {.operation = SYNC_ACCEPT, .shape = SYNC_SHAPE_ACCEPT},
    [SYS_connect] = OF_FD(CONNECT, 0),
    [SYS_poll] = PLAIN(POLL),
    [SYS_ppoll] = PLAIN(POLL),
    [SYS_select] = PLAIN(POLL),
    [SYS_pselect6] = PLAIN(POLL),
    [SYS_epoll_wait] = PLAIN(POLL),
    [SYS_epoll_pwait] = PLAIN(POLL),
    [441] = PLAIN(POLL), /* epoll_pwait2 */
    [SYS_nanosleep] = {.operation = SYNC_SLEEP, .shape = SYNC_SHAPE_SLEEP, .fd = 0},
    [SYS_clock_nanosleep] = {.operation = SYNC_SLEEP, .shape = SYNC_SHAPE_SLEEP, .fd = 2},
    [SYS_futex] = {.operation = SYNC_FUTEX_WAIT, .shape = SYNC_SHAPE_FUTEX, .wake = SYNC_FUTEX_WAKE},
    [SYS_wait4] = PLAIN(PROCESS_WAIT),
    [SYS_waitid] = PLAIN(PROCESS_WAIT),
    [SYS_open] = PLAIN(IO),
    [SYS_openat] = PLAIN(IO),
    [437] = PLAIN(IO), /* openat2 */
    [SYS_stat] = PLAIN(IO),
    [SYS_lstat] = PLAIN(IO),
    [SYS_newfstatat] = PLAIN(IO),
    [SYS_statx] = PLAIN(IO),
    [SYS_getdents] = OF_FD(IO, 0),
    [SYS_getdents64] = OF_FD(IO, 0),
    [SYS_fsync] = OF_FD(IO, 0),
    [SYS_fdatasync] = OF_FD(IO, 0),
    [SYS_sync_file_range] = OF_FD(IO, 0),
    [SYS_syncfs] = OF_FD(IO, 0),
    [SYS_ftruncate] = OF_FD(IO, 0),
    [SYS_fallocate] = OF_FD(IO, 0),
    [SYS_flock] = OF_FD(IO, 0),
    [SYS_sync] = PLAIN(IO),
    [SYS_msync] = PLAIN(IO),
    [SYS_rename] = PLAIN(IO),
    [SYS_renameat] = PLAIN(IO),
    [SYS_renameat2] = PLAIN(IO),
    [SYS_unlink] = PLAIN(IO),
    [SYS_unlinkat] = PLAIN(IO),
    [SYS_mkdir] = PLAIN(IO),
    [SYS_mkdirat] = PLAIN(IO),
    [SYS_rmdir] = PLAIN(IO),
    [SYS_link] = PLAIN(IO),
    [SYS_linkat] = PLAIN(IO),
    [SYS_symlink] = PLAIN(IO),
    [SYS_symlinkat] = PLAIN(IO),
    [SYS_semop] = PLAIN(IO),
    [SYS_semtimedop] = PLAIN(IO),
    [SYS_msgsnd] = PLAIN(IO),
    [SYS_msgrcv] = PLAIN(IO),
    [SYS_pause] = PLAIN(IO),
    [SYS_rt_sigsuspend] = PLAIN(IO),
    [SYS_rt_sigtimedwait] = PLAIN(IO),
    [SYS_io_getevents] = PLAIN(IO),
    [426] = PLAIN(IO), /* io_uring_enter */
};

struct sync_call sync_call_by_number(unsigned number)
{
    return number < SYNC_CALLS ? calls[number] : (struct sync_call){0};
}

/* ------------------------------------------------------------------------------------------ declarations */

int sync_declaration_parse(enum sync_event_kind kind, const char *text, struct sync_declaration *ret,
                           struct error *err)
{
    bool may_have = kind != SYNC_SINK, must_have = kind == SYNC_ENQUEUE || kind == SYNC_DEQUEUE;
    const char *colon = strstr(text, ":ARG");
    size_t length = colon ? (size_t)(colon - text) : strlen(text);
    int argument = 0;

    if (colon && colon[4] >= '1' && colon[4] <= '6' && !colon[5])
        argument = colon[4] - '0';
    if (!length || (colon && !(argument && may_have)) || (must_have && !argument))
        return error_say(err, -EINVAL, "'%s' is not of the form FUNCTION%s with n from 1 to 6", text,
                         must_have  ? ":ARGn"
                         : may_have ? " or FUNCTION:ARGn"
                                    : " (a sink has no argument)");
    *ret = (struct sync_declaration){.kind = kind, .argument = (uint8_t)argument};
    ret->name = strndup(text, length);
    return ret->name ? 0 : error_no_memory(err);
}

struct sync_function_spec sync_declaration_spec(const struct sync_declaration *declaration, uint16_t number)
{
    bool lasts = declaration->kind == SYNC_SINK || declaration->kind == SYNC_HANDLER;

    return (struct sync_function_spec){
        .name = declaration->name,
        .kind = (uint8_t)declaration->kind,
        .phase = lasts ? SYNC_BEGIN : SYNC_AT,
        .returns = lasts,
        .object = declaration->argument,
        .declared = number,
    };
}
