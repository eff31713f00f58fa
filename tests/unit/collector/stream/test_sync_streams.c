/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From wire records of synchronisation to stored events and channels, without a kernel: the records are made
 * here, the store is a real one. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "bpf/wire.h"
#include "collector/stream/streams.h"
#include "store/streams/sync_events.h"

enum { PID = 70, OTHER_TID = 71, CHILD = 80, SOCKET_INODE = 500, PIPE_INODE = 600 };
#define TOP 0x7ffd00001000u
#define LOCK 0x5000u

static struct {
    char path[64];
    struct tracestore *store;
    struct trace_writer *writer;
    struct streams *streams;
    uint64_t ns;
} world;

static struct wire_losses no_losses(struct life_cycle_source *source, uint32_t tid)
{
    return (struct wire_losses){.calls = 0, .returns = 0};
}

static const struct life_cycle_operations source_operations = {.consume_losses = no_losses};
static struct life_cycle_source source = {&source_operations};

static void begin(void)
{
    const struct stream_options options = {.source = &source, .sync = true};
    const struct trace_run_description run = {.name = "t", .command = "test", .options = "", .started_ns = 1};
    const pid_t tids[] = {PID, OTHER_TID};
    struct stream_program program = {.exe = strdup("/bin/test"), .argv = strdup("test"), .rank = -1};
    struct error err = {0};
    int fd;

    memset(&world, 0, sizeof(world));
    world.ns = 1000000000;
    strcpy(world.path, "/tmp/tracectl-sync-XXXXXX");
    fd = mkstemp(world.path);
    cr_assert_geq(fd, 0);
    close(fd);
    cr_assert_eq(tracestore_open(world.path, TRACESTORE_CREATE, &world.store, &err), 0, "%s", err.message);
    cr_assert_eq(trace_writer_begin(world.store, &run, NULL, &world.writer, &err), 0, "%s", err.message);
    cr_assert_eq(streams_new(&options, NULL, world.writer, &world.streams, &err), 0, "%s", err.message);
    cr_assert_eq(streams_add_process(world.streams, PID, tids, 2, &err), 0, "%s", err.message);
    cr_assert_eq(streams_set_program(world.streams, PID, &program, &err), 0, "%s", err.message);
}

static void end(void)
{
    streams_free(world.streams);
    trace_writer_free(world.writer);
    tracestore_free(world.store);
    unlink(world.path);
}

TestSuite(sync_streams, .init = begin, .fini = end);

/* ------------------------------------------------------------------------------------------ what happens */

static void handle(const void *record, size_t size)
{
    cr_assert_eq(streams_handle(world.streams, record, size), 0, "%s", streams_error(world.streams)->message);
}

static struct wire_header header_of(uint8_t kind, uint32_t tid)
{
    return (struct wire_header){.kind = kind, .tid = tid, .ns = world.ns += 10};
}

/* A function whose return address lies at `sp`. */
static void function(uint32_t tid, enum sync_event_kind kind, enum sync_wire_phase phase, uint64_t sp,
                     uint64_t object, int64_t result)
{
    struct wire_sync record = {.header = header_of(WIRE_SYNC, tid),
                               .operation = (uint8_t)(phase == SYNC_WIRE_RETURN ? 0 : kind),
                               .phase = (uint8_t)phase,
                               .fd = -1,
                               .object = object,
                               .result = result,
                               .sp = sp};

    record.header.flags = WIRE_OF_FUNCTION;
    handle(&record, sizeof(record));
}

/* A system call on a file of the mode, from its beginning to its end; `end` says what the file is. */
static void call(uint32_t tid, enum sync_event_kind kind, uint16_t mode, uint64_t inode, int64_t result,
                 struct wire_sync_file end)
{
    struct wire_sync record = {.header = header_of(WIRE_SYNC, tid),
                               .operation = (uint8_t)kind,
                               .phase = SYNC_WIRE_BEGIN,
                               .declared = mode,
                               .fd = 3,
                               .object = inode,
                               .other = 1 << 20};

    handle(&record, sizeof(record));
    record.header.ns = world.ns += 10;
    record.phase = SYNC_WIRE_END;
    record.result = result;
    end.sync = record;
    handle(&end, sizeof(end));
}

static struct wire_sync_file tcp(uint32_t position)
{
    struct wire_sync_file file = {.family = AF_INET,
                                  .type = SOCK_STREAM,
                                  .position = position,
                                  .local_port = 1000,
                                  .remote_port = 2000};

    memcpy(file.local, (uint8_t[]){127, 0, 0, 1}, 4);
    memcpy(file.remote, (uint8_t[]){10, 0, 0, 2}, 4);
    return file;
}

/* ------------------------------------------------------------------------------------------ what is stored
 */

/* The events of a process (they are numbered as they come): "T kind phase object other result; " each. */
static void expect_events(int64_t process, const char *wanted)
{
    char got[2048] = "";
    struct process_event_iter *iter;
    struct process_event event;
    struct error err = {0};

    cr_assert_eq(trace_writer_flush(world.writer, streams_realtime(world.streams, world.ns), &err), 0, "%s",
                 err.message);
    cr_assert_eq(process_event_iter_open(world.store, PROCESS_STREAM_SYNC, process, &iter, &err), 0, "%s",
                 err.message);
    while (process_event_iter_next(iter, &event, &err) == 0) {
        size_t used = strlen(got);

        snprintf(got + used, sizeof(got) - used, "%lu %s %s %lu %ld %ld; ", event.thread,
                 sync_event_kind_name(event.kind), sync_phase_name(event.phase), (unsigned long)event.object,
                 event.other == SYNC_UNKNOWN_THREAD ? -1 : (long)event.other, (long)event.result);
    }
    process_event_iter_free(iter);
    cr_expect_str_eq(got, wanted);
}

/* "number kind local remote; " */
static void expect_channels(const char *wanted)
{
    static const char *const channel_kinds[] = {
        [SYNC_CHANNEL_FILE] = "file", [SYNC_CHANNEL_TCP] = "tcp",   [SYNC_CHANNEL_UDP] = "udp",
        [SYNC_CHANNEL_UNIX] = "unix", [SYNC_CHANNEL_PIPE] = "pipe", [SYNC_CHANNEL_OTHER] = "other",
    };
    char got[1024] = "";
    struct sync_channel *channels;
    struct error err = {0};
    size_t count;

    cr_assert_eq(trace_writer_flush(world.writer, streams_realtime(world.streams, world.ns), &err), 0, "%s",
                 err.message);
    cr_assert_eq(sync_channels(world.store, 1, &channels, &count, &err), 0, "%s", err.message);
    for (size_t i = 0; i < count; i++) {
        size_t used = strlen(got);

        snprintf(got + used, sizeof(got) - used, "%lu %s %s %s; ", (unsigned long)channels[i].channel,
                 channel_kinds[channels[i].kind], channels[i].local, channels[i].remote);
    }
    sync_channels_free(channels, count);
    cr_expect_str_eq(got, wanted);
}

/* ------------------------------------------------------------------------------------------ functions */

Test(sync_streams, a_lock_has_a_beginning_only)
{
    function(PID, SYNC_MUTEX_LOCK, SYNC_WIRE_BEGIN, TOP, LOCK, 0);
    function(PID, SYNC_MUTEX_UNLOCK, SYNC_WIRE_AT, TOP, LOCK, 0);
    expect_events(1, "0 thread begin at 0 -1 0; 0 mutex lock begin 20480 0 0; 0 mutex unlock at 20480 0 0; ");
}

Test(sync_streams, a_return_belongs_to_the_beginning_at_its_place_of_the_stack)
{
    function(OTHER_TID, SYNC_SEM_WAIT, SYNC_WIRE_BEGIN, TOP, 1, 0);
    function(OTHER_TID, SYNC_MUTEX_TRYLOCK, SYNC_WIRE_BEGIN, TOP - 64, LOCK, 0);
    function(OTHER_TID, 0, SYNC_WIRE_RETURN, TOP - 32, 0, 7); /* of a function that nobody has seen begin */
    function(OTHER_TID, 0, SYNC_WIRE_RETURN, TOP - 64, 0, 16);
    function(PID, 0, SYNC_WIRE_RETURN, TOP, 0, 0); /* another thread's stack */
    function(OTHER_TID, 0, SYNC_WIRE_RETURN, TOP, 0, 0);
    function(OTHER_TID, 0, SYNC_WIRE_RETURN, TOP, 0, 0);
    expect_events(1,
                  "1 thread begin at 0 -1 0; 1 sem wait begin 1 0 0; 1 mutex trylock begin 20480 0 0; "
                  "1 mutex trylock end 20480 0 16; 0 thread begin at 0 -1 0; 1 sem wait end 1 0 0; ");
}

Test(sync_streams, what_an_exception_left_has_no_end)
{
    function(PID, SYNC_SEM_WAIT, SYNC_WIRE_BEGIN, TOP - 64, 1, 0);
    function(PID, SYNC_SEM_WAIT, SYNC_WIRE_BEGIN, TOP - 32, 2, 0); /* further out: the first one is over */
    function(PID, 0, SYNC_WIRE_RETURN, TOP - 64, 0, 0);
    function(PID, 0, SYNC_WIRE_RETURN, TOP - 32, 0, 0);
    expect_events(1,
                  "0 thread begin at 0 -1 0; 0 sem wait begin 1 0 0; 0 sem wait begin 2 0 0; "
                  "0 sem wait end 2 0 0; ");
}

Test(sync_streams, a_join_names_the_thread)
{
    struct wire_fork fork = {.header = header_of(WIRE_FORK, 72),
                             .tgid = PID,
                             .parent_tid = PID,
                             .parent_tgid = PID,
                             .thread_block = 9};

    handle(&fork, sizeof(fork));
    function(PID, SYNC_THREAD_JOIN, SYNC_WIRE_BEGIN, TOP, 9, 0);
    function(PID, SYNC_THREAD_JOIN, SYNC_WIRE_BEGIN, TOP, 10, 0); /* nobody has seen that one begin */
    expect_events(1,
                  "0 thread begin at 0 -1 0; 0 thread create at 0 2 0; 2 thread begin at 0 0 0; "
                  "0 thread join begin 0 2 0; 0 thread join begin 0 -1 0; ");
}

/* ------------------------------------------------------------------------------------------ system calls */

Test(sync_streams, bytes_of_tcp_are_counted_by_its_own_numbers)
{
    call(PID, SYNC_WRITE, S_IFSOCK, SOCKET_INODE, 10, tcp(UINT32_MAX - 4)); /* the number wraps around */
    call(PID, SYNC_WRITE, S_IFSOCK, SOCKET_INODE, 10, tcp(5));
    call(OTHER_TID, SYNC_READ, S_IFSOCK, SOCKET_INODE, 3, tcp(103));
    call(OTHER_TID, SYNC_READ, S_IFSOCK, SOCKET_INODE, -11, tcp(103));
    expect_channels("1 tcp 127.0.0.1:1000 10.0.0.2:2000; ");
    expect_events(
        1,
        "0 thread begin at 0 -1 0; 0 send begin 1 0 0; 0 send end 1 4294967281 10; "
        "0 send begin 1 0 0; 0 send end 1 4294967291 10; 1 thread begin at 0 -1 0; "
        "1 receive begin 1 0 0; 1 receive end 1 100 3; 1 receive begin 1 0 0; 1 receive end 1 103 -11; ");
}

Test(sync_streams, a_pipe_has_two_ends_and_counts_from_the_beginning)
{
    call(PID, SYNC_WRITE, S_IFIFO, PIPE_INODE, 10, (struct wire_sync_file){0});
    call(PID, SYNC_WRITE, S_IFIFO, PIPE_INODE, 5, (struct wire_sync_file){0});
    call(PID, SYNC_READ, S_IFIFO, PIPE_INODE, 12, (struct wire_sync_file){0});
    call(PID, SYNC_READ, S_IFIFO, PIPE_INODE, 3, (struct wire_sync_file){0});
    expect_channels("1 pipe pipe:600:write pipe:600:read; 2 pipe pipe:600:read pipe:600:write; ");
    expect_events(1,
                  "0 thread begin at 0 -1 0; 0 send begin 1 0 0; 0 send end 1 0 10; 0 send begin 1 0 0; "
                  "0 send end 1 10 5; 0 receive begin 2 0 0; 0 receive end 2 0 12; 0 receive begin 2 0 0; "
                  "0 receive end 2 12 3; ");
}

/* A datagram's peer makes the channel, and there are no positions. */
Test(sync_streams, a_socket_that_is_not_connected_has_a_channel_for_each_peer)
{
    struct wire_sync_file file = tcp(0);

    file.type = SOCK_DGRAM;
    file.named = 1;
    call(PID, SYNC_SEND, S_IFSOCK, SOCKET_INODE, 10, file);
    file.remote_port = 3000;
    call(PID, SYNC_SEND, S_IFSOCK, SOCKET_INODE, 10, file);
    file.remote_port = 2000;
    call(PID, SYNC_SEND, S_IFSOCK, SOCKET_INODE, 10, file);
    /* Channel 1 is what the beginnings know: the socket. */
    expect_channels("1 other  ; 2 udp 127.0.0.1:1000 10.0.0.2:2000; 3 udp 127.0.0.1:1000 10.0.0.2:3000; ");
}

/* The two ends of a connection may speak of it in two families. */
Test(sync_streams, addresses_of_ipv4_in_ipv6_are_those_of_ipv4)
{
    struct wire_sync_file file = tcp(1);

    file.family = AF_INET6;
    memset(file.local, 0, sizeof(file.local));
    memcpy(file.local + 10, (uint8_t[]){255, 255, 127, 0, 0, 1}, 6);
    memset(file.remote, 0, sizeof(file.remote));
    file.remote[15] = 1;
    call(PID, SYNC_WRITE, S_IFSOCK, SOCKET_INODE, 1, file);
    expect_channels("1 tcp 127.0.0.1:1000 [::1]:2000; ");
}

Test(sync_streams, a_socket_that_is_connected_anew_is_another_channel)
{
    struct wire_sync_file file = tcp(1);

    call(PID, SYNC_WRITE, S_IFSOCK, SOCKET_INODE, 1, file);
    file.remote_port = 3000;
    call(PID, SYNC_WRITE, S_IFSOCK, SOCKET_INODE, 1, file);
    expect_channels("1 tcp 127.0.0.1:1000 10.0.0.2:2000; 2 tcp 127.0.0.1:1000 10.0.0.2:3000; ");
}

Test(sync_streams, a_message_that_was_looked_at_only_is_no_message)
{
    struct wire_sync_file file = tcp(10);

    file.peeked = 1;
    call(PID, SYNC_RECEIVE, S_IFSOCK, SOCKET_INODE, 10, file);
    expect_events(1, "0 thread begin at 0 -1 0; 0 receive begin 1 0 0; 0 poll end 1 0 10; ");
}

/* ------------------------------------------------------------------------------------------ life */

Test(sync_streams, a_child_process_begins_and_ends)
{
    struct wire_fork fork = {
        .header = header_of(WIRE_FORK, CHILD), .tgid = CHILD, .parent_tid = PID, .parent_tgid = PID};
    struct wire_exit gone = {.tgid = CHILD, .exit_code = 3 << 8};

    handle(&fork, sizeof(fork));
    function(CHILD, SYNC_MUTEX_LOCK, SYNC_WIRE_BEGIN, TOP, LOCK, 0);
    gone.header = header_of(WIRE_EXIT, CHILD);
    gone.header.flags = WIRE_LAST_THREAD;
    handle(&gone, sizeof(gone));
    expect_events(1, "0 thread begin at 0 -1 0; 0 fork at 0 80 0; ");
    expect_events(2,
                  "0 process begin at 0 70 0; 0 mutex lock begin 20480 0 0; 0 thread end at 0 0 0; "
                  "0 process exit at 0 0 3; ");
}

Test(sync_streams, losses_stand_where_they_were)
{
    struct wire_lost lost = {.sync = 3};

    function(PID, SYNC_MUTEX_LOCK, SYNC_WIRE_BEGIN, TOP, LOCK, 0);
    lost.header = header_of(WIRE_LOST, PID);
    handle(&lost, sizeof(lost));
    function(PID, SYNC_MUTEX_UNLOCK, SYNC_WIRE_AT, TOP, LOCK, 0);
    expect_events(1,
                  "0 thread begin at 0 -1 0; 0 mutex lock begin 20480 0 0; 0 lost at 0 0 3; "
                  "0 mutex unlock at 20480 0 0; ");
}

/* What cannot come from the kernel side is refused. */
Test(sync_streams, damaged_records_are_errors)
{
    struct wire_sync record = {.header = header_of(WIRE_SYNC, PID), .phase = SYNC_WIRE_AT, .fd = -1};

    cr_expect_eq(streams_handle(world.streams, &record, sizeof(record)), -EBADMSG);
    record.operation = SYNC_READ;
    record.phase = SYNC_WIRE_END;
    record.fd = 3; /* the rest of a struct wire_sync_file is missing */
    cr_expect_eq(streams_handle(world.streams, &record, sizeof(record)), -EBADMSG);
}
