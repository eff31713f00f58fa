/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/process/target_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/aside.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "collector/process/process.h"

#define NAME_MOST 64
#define PIECES_MOST 512
#define SLOW_MOST 64
#define SLOW_NS 20000000u /* shorter reads do not count */
#define SILENT_OF_USER 4
#define FORGIVEN_SHARE 20 /* this part of the time that passes */

/* ------------------------------------------------------------------------------------ processes that do not
 * answer */

/* Processes that have kept us waiting. */
static struct {
    pthread_mutex_t lock;
    struct slow_process {
        pid_t pid;
        uid_t uid;
        uint64_t spent_ns, at_ns; /* how long, as of when (CLOCK_MONOTONIC) */
        bool silent;              /* it may not any more */
    } items[SLOW_MOST];           /* the last of them */
    size_t count;
} slow = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uid_t owner_of(pid_t pid)
{
    struct stat folder;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    return stat(path, &folder) ? 0 : folder.st_uid;
}

static struct slow_process *find_slow(pid_t process)
{
    for (size_t i = 0; i < slow.count && i < SLOW_MOST; i++)
        if (slow.items[i].pid == process)
            return &slow.items[i];
    return NULL;
}

/* How long the process may keep us waiting now. */
static uint64_t patience_with(pid_t process, uid_t uid)
{
    const struct slow_process *known = find_slow(process);
    unsigned of_user = 0;

    for (size_t i = 0; i < slow.count && i < SLOW_MOST; i++)
        of_user += slow.items[i].silent && slow.items[i].uid == uid;
    if ((known && known->silent) || (uid && of_user >= SILENT_OF_USER))
        return 0;
    return known ? ASIDE_LIMIT_NS - known->spent_ns : ASIDE_LIMIT_NS;
}

/* What is forgiven in the time that passes. */
static void forgive(struct slow_process *known, uint64_t now)
{
    uint64_t forgiven = (now - known->at_ns) / FORGIVEN_SHARE;

    known->spent_ns -= forgiven < known->spent_ns ? forgiven : known->spent_ns;
    known->at_ns = now;
}

static void note_slow(pid_t process, uid_t uid, uint64_t spent, bool silent)
{
    struct slow_process *known = find_slow(process);
    uint64_t now = clock_ns(CLOCK_MONOTONIC);

    if (!known) {
        known = &slow.items[slow.count % SLOW_MOST];
        *known = (struct slow_process){.pid = process, .uid = uid, .at_ns = now};
        __atomic_fetch_add(&slow.count, 1, __ATOMIC_RELAXED);
    }
    forgive(known, now);
    known->spent_ns += spent;
    known->silent |= silent || known->spent_ns >= ASIDE_LIMIT_NS;
}

static int do_for(pid_t pid, const struct aside_job *job)
{
    struct aside_job limited = *job;
    uint64_t spent = 0;
    pid_t process;
    uid_t uid;
    int r;

    limited.ret_spent_ns = &spent;
    if (__atomic_load_n(&slow.count, __ATOMIC_RELAXED)) {
        process = process_of_thread(pid);
        uid = owner_of(pid);
        pthread_mutex_lock(&slow.lock);
        limited.limit_ns = patience_with(process, uid);
        pthread_mutex_unlock(&slow.lock);
        if (!limited.limit_ns)
            return -ETIMEDOUT;
    }
    r = aside_do(&limited);
    if (r != -ETIMEDOUT && spent < SLOW_NS)
        return r;
    process = process_of_thread(pid);
    uid = owner_of(pid);
    pthread_mutex_lock(&slow.lock);
    note_slow(process, uid, spent, r == -ETIMEDOUT);
    pthread_mutex_unlock(&slow.lock);
    return r;
}

/* ------------------------------------------------------------------------------------ aside */

struct reading {
    char path[NAME_MOST + 32];
    uint64_t offset;
    uint64_t size;
};

/* An aside_work: reads a file until its end, or the end of what is wanted. */
static int read_file(const void *request, void *reply, size_t room, int *ret_fd)
{
    const struct reading *reading = request;
    AUTO_CLOSE int fd = open(reading->path, O_RDONLY | O_CLOEXEC);
    size_t wanted = reading->size < room ? reading->size : room, done = 0;
    ssize_t got = 1;

    (void)ret_fd;
    if (fd < 0)
        return -errno;
    while (done < wanted && got > 0) {
        got = pread(fd, (char *)reply + done, wanted - done, (off_t)(reading->offset + done));
        done += got > 0 ? (size_t)got : 0;
    }
    return got < 0 && !done ? -errno : (int)done;
}

/* An aside_work: the same of a file of lines, whose places are not bytes. */
static int read_lines(const void *request, void *reply, size_t room, int *ret_fd)
{
    const struct reading *reading = request;
    AUTO_CLOSE int fd = open(reading->path, O_RDONLY | O_CLOEXEC);
    size_t done = 0;
    ssize_t got = 1;

    (void)ret_fd;
    if (fd < 0)
        return -errno;
    while (done < room && got > 0) {
        got = read(fd, (char *)reply + done, room - done);
        done += got > 0 ? (size_t)got : 0;
    }
    return got < 0 && !done ? -errno : (int)done;
}

/* An aside_work. */
static int read_link(const void *request, void *reply, size_t room, int *ret_fd)
{
    const struct reading *reading = request;
    ssize_t length = readlink(reading->path, reply, reading->size < room ? reading->size : room);

    (void)ret_fd;
    return length < 0 ? -errno : (int)length;
}

struct writing {
    char path[64];
    size_t count;
    struct target_word words[TARGET_WORDS_MOST];
};

/* An aside_work. */
static int write_words(const void *request, void *reply, size_t room, int *ret_fd)
{
    const struct writing *writing = request;
    AUTO_CLOSE int fd = open(writing->path, O_WRONLY | O_CLOEXEC);

    (void)reply;
    (void)room;
    (void)ret_fd;
    if (fd < 0)
        return -errno;
    for (size_t i = 0; i < writing->count; i++) {
        const struct target_word *word = &writing->words[i];

        if (pwrite(fd, &word->value, sizeof(word->value), (off_t)word->address) != sizeof(word->value))
            return -EFAULT;
    }
    return 0;
}

/* The kernel's struct procmap_query (Linux 6.11). */
struct map_query {
    uint64_t size, flags, address;
    uint64_t start, end, vma_flags, page_size, offset, inode;
    uint32_t device_major, device_minor, name_size, build_id_size;
    uint64_t name, build_id;
};

#define MAP_QUERY _IOWR('f', 17, struct map_query)

/* A mapping that may be read. */
struct stretch {
    uint64_t start, end;
};

/* Whether a user's program serves the mapping at `address`. Who waits for such a page may keep the lock of
 * the process's memory meanwhile, which taking probes away wants: so it is not tried. Otherwise the mapping
 * is noted. Older kernels do not tell. */
static bool is_served(pid_t pid, uint64_t address, struct stretch *ret_stretch)
{
    struct map_query query = {.size = sizeof(query), .address = address};
    struct statfs system;
    char path[96];

    if (address >= ret_stretch->start && address < ret_stretch->end)
        return false;
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    AUTO_CLOSE int maps = open(path, O_RDONLY | O_CLOEXEC);
    if (maps < 0 || ioctl(maps, MAP_QUERY, &query))
        return false;
    *ret_stretch = (struct stretch){query.start, query.end};
    if (!query.inode)
        return false;
    snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid, query.start, query.end);
    AUTO_CLOSE int file = open(path, O_PATH | O_CLOEXEC);
    return file >= 0 && (fstatfs(file, &system) || system.f_type == FUSE_SUPER_MAGIC);
}

struct pieces {
    pid_t pid;
    uint64_t size, count;
    uint64_t addresses[PIECES_MOST];
};

/* Reads mapping by mapping; returns how much could be read, -1: nothing. */
static ssize_t read_unserved(pid_t pid, uint64_t address, char *ret_bytes, size_t size,
                             struct stretch *stretch)
{
    size_t done = 0;

    while (done < size && !is_served(pid, address + done, stretch)) {
        uint64_t left = stretch->end > address + done ? stretch->end - (address + done) : size;
        struct iovec here = {ret_bytes + done, left < size - done ? left : size - done};
        struct iovec there = {(void *)(uintptr_t)(address + done), here.iov_len}; /* not followed here */
        ssize_t got = process_vm_readv(pid, &here, 1, &there, 1, 0);

        done += got > 0 ? (size_t)got : 0;
        if (got != (ssize_t)here.iov_len)
            break;
    }
    return done ? (ssize_t)done : -1;
}

/* An aside_work: stops at the first piece that cannot be read. */
static int read_pieces(const void *request, void *reply, size_t room, int *ret_fd)
{
    const struct pieces *pieces = request;
    struct stretch stretch = {0};
    size_t size = pieces->size < room ? pieces->size : room, done = 0;
    ssize_t got = (ssize_t)size;

    (void)ret_fd;
    errno = EFAULT;
    for (size_t i = 0; i < pieces->count && got == (ssize_t)size; i++) {
        got = read_unserved(pieces->pid, pieces->addresses[i], (char *)reply + done, size, &stretch);
        done += got > 0 ? (size_t)got : 0;
    }
    return got < 0 && !done ? -errno : (int)done;
}

/* ------------------------------------------------------------------------------------ questions */

static struct reading reading_of(pid_t pid, const char *name, uint64_t offset, size_t size)
{
    struct reading reading = {.offset = offset, .size = size};

    snprintf(reading.path, sizeof(reading.path), "/proc/%d/%s", (int)process_shown_thread(pid), name);
    return reading;
}

ssize_t target_proc_read(pid_t pid, const char *name, uint64_t offset, void *ret_bytes, size_t size)
{
    const struct reading reading = reading_of(pid, name, offset, size);
    const struct aside_job job = {.work = read_file,
                                  .request = &reading,
                                  .request_size = sizeof(reading),
                                  .reply = ret_bytes,
                                  .room = size};

    return do_for(pid, &job);
}

int target_proc_text(pid_t pid, const char *name, char **ret_text, size_t *ret_size)
{
    const struct reading reading = reading_of(pid, name, 0, 0);
    const struct aside_job job = {
        .work = read_lines, .request = &reading, .request_size = sizeof(reading), .ret_text = ret_text};
    int r = do_for(pid, &job);

    if (r < 0)
        return r;
    *ret_size = (size_t)r;
    return 0;
}

ssize_t target_proc_link(pid_t pid, const char *name, char *ret_path, size_t size)
{
    const struct reading reading = reading_of(pid, name, 0, size);
    const struct aside_job job = {.work = read_link,
                                  .request = &reading,
                                  .request_size = sizeof(reading),
                                  .reply = ret_path,
                                  .room = size};

    return do_for(pid, &job);
}

size_t target_memory_read(pid_t pid, uint64_t address, void *ret_bytes, size_t size)
{
    const struct pieces pieces = {process_shown_thread(pid), size, 1, {address}};
    const struct aside_job job = {.work = read_pieces,
                                  .request = &pieces,
                                  .request_size = sizeof(pieces),
                                  .reply = ret_bytes,
                                  .room = size};
    int r = do_for(pid, &job);

    return r > 0 ? (size_t)r : 0;
}

int target_memory_write(pid_t pid, const struct target_word *words, size_t count)
{
    struct writing writing = {.count = count};
    const struct aside_job job = {.work = write_words, .request = &writing, .request_size = sizeof(writing)};

    if (count > TARGET_WORDS_MOST)
        return -EINVAL;
    memcpy(writing.words, words, count * sizeof(*words));
    snprintf(writing.path, sizeof(writing.path), "/proc/%d/mem", (int)process_shown_thread(pid));
    return do_for(pid, &job);
}

size_t target_memory_read_pieces(pid_t pid, const uint64_t *addresses, size_t count, size_t size,
                                 void *ret_bytes)
{
    struct pieces pieces = {.pid = process_shown_thread(pid), .size = size};
    size_t done = 0;

    while (done < count) {
        const struct aside_job job = {.work = read_pieces,
                                      .request = &pieces,
                                      .request_size = sizeof(pieces),
                                      .reply = (char *)ret_bytes + done * size,
                                      .room = (count - done) * size};
        int r;

        pieces.count = count - done < PIECES_MOST ? count - done : PIECES_MOST;
        memcpy(pieces.addresses, addresses + done, pieces.count * sizeof(*addresses));
        r = do_for(pid, &job);
        done += r > 0 ? (size_t)r / size : 0;
        if (r < 0 || (size_t)r / size < pieces.count)
            break;
    }
    return done;
}
