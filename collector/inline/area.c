/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/inline/area.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "collector/inline/agent_code.h"

#define PAGE 4096u

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010u        /* Linux 6.3: asks for what was always so before */
#define MFD_NOEXEC_SEAL 0x0008u /* the same */
#endif

#define SEAL_SIZE ((unsigned)(F_SEAL_SHRINK | F_SEAL_GROW))

static size_t whole_pages(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* A memory file whose seals are still to be set. `may_run`: it can be mapped for execution. */
static int memory_file(const char *name, size_t bytes, bool may_run)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | (may_run ? MFD_EXEC : MFD_NOEXEC_SEAL));

    if (fd < 0 && errno == EINVAL)
        fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    if (ftruncate(fd, (off_t)bytes)) {
        int r = -errno;

        close(fd);
        return r;
    }
    return fd;
}

/* Sets the seals, and that no others can be, and puts a descriptor that can only read in the place of `*fd`:
 * the one that targets get. */
static int seal_for_reading(int *fd, unsigned seals)
{
    char path[64];
    int reading;

    if (fcntl(*fd, F_ADD_SEALS, seals | SEAL_SIZE | F_SEAL_SEAL))
        return -errno;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", *fd);
    reading = open(path, O_RDONLY | O_CLOEXEC);
    if (reading < 0)
        return -errno;
    close(*fd);
    *fd = reading;
    return 0;
}

static int write_piece(int fd, const struct agent_piece *piece)
{
    size_t done = 0;

    while (done < piece->size) {
        ssize_t written = pwrite(fd, piece->bytes + done, piece->size - done, (off_t)(piece->offset + done));

        if (written <= 0)
            return -ENOMEM;
        done += (size_t)written;
    }
    return 0;
}

/* A file of code that nobody changes any more. */
static int code_file(const char *name, size_t bytes, const struct agent_piece *pieces, size_t count)
{
    int fd = memory_file(name, bytes, true), r = 0;

    if (fd < 0)
        return fd;
    for (size_t i = 0; i < count && !r; i++)
        r = write_piece(fd, &pieces[i]);
    if (!r)
        r = seal_for_reading(&fd, F_SEAL_WRITE);
    if (!r)
        return fd;
    close(fd);
    return r;
}

int agent_file_new(void)
{
    const struct agent_piece code = {.bytes = agent_code, .size = sizeof(agent_code)};

    return code_file(AGENT_CODE_NAME, AGENT_CODE_BYTES, &code, 1);
}

int agent_stubs_new(const struct agent_piece pieces[2], size_t bytes)
{
    return code_file(AGENT_MAGIC, bytes, pieces, 2);
}

size_t agent_near_bytes(size_t stub_bytes)
{
    return whole_pages(AGENT_STUBS_OFFSET + stub_bytes);
}

static void fill_head(struct agent_area *area)
{
    struct agent_head *head = area->head;

    memcpy(head->magic, AGENT_MAGIC, sizeof(head->magic));
    head->version = AGENT_VERSION;
    head->chunk_bytes = (uint32_t)area->chunk_bytes;
    head->chunk_count = (uint32_t)area->chunk_count;
    head->collector = (uint32_t)getpid();
    head->data_file = area->data_file;
    head->tick = agent_tick_word(1);
    area->counts->keys = 1; /* that of the process which the area is made for */
    for (uint32_t i = 0; i < area->chunk_count; i++)
        head->free[i] = i;
    area->given = area->chunk_count;
    __atomic_store_n(&head->given, area->given, __ATOMIC_RELEASE);
}

static void *map_for_writing(int fd, size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

/* -ENOMEM, -EMFILE. */
static int make_files(struct agent_area *area)
{
    struct stat data;

    area->head_fd = memory_file(AGENT_MAGIC, AGENT_HEAD_BYTES, false);
    if (area->head_fd < 0)
        return area->head_fd;
    area->data_fd = memory_file(AGENT_DATA_NAME, area->apart_bytes, false);
    if (area->data_fd < 0)
        return area->data_fd;
    area->head = map_for_writing(area->head_fd, AGENT_HEAD_BYTES);
    area->counts = map_for_writing(area->data_fd, area->apart_bytes);
    if (!area->head || !area->counts)
        return -ENOMEM;
    if (fstat(area->data_fd, &data))
        return -errno;
    area->data_file = data.st_ino;
    if (fcntl(area->data_fd, F_ADD_SEALS, SEAL_SIZE | F_SEAL_SEAL))
        return -errno;
    return seal_for_reading(&area->head_fd, F_SEAL_FUTURE_WRITE);
}

int agent_area_new(size_t ring_bytes, bool timed, struct agent_area **ret_area, struct error *err)
{
    struct agent_area *area = calloc(1, sizeof(*area));
    size_t rings;
    int r;

    if (!area)
        return error_no_memory(err);
    area->head_fd = area->data_fd = -1;
    area->chunk_bytes = AGENT_CHUNK_BYTES;
    area->chunk_count = ring_bytes / area->chunk_bytes;
    if (area->chunk_count > AGENT_CHUNKS_MAX)
        area->chunk_count = AGENT_CHUNKS_MAX;
    if (area->chunk_count < 2)
        area->chunk_count = 2;
    rings = area->chunk_bytes * area->chunk_count;
    area->apart_bytes = AGENT_COUNTS_BYTES + rings + (timed ? rings / 2 : 0);
    r = make_files(area);
    if (r) {
        agent_area_free(area);
        return error_set(err, r, NULL, "cannot create memory to share with the target");
    }
    area->chunks = (uint8_t *)area->counts + AGENT_COUNTS_BYTES;
    if (timed)
        area->times = (uint64_t *)(area->chunks + rings);
    fill_head(area);
    *ret_area = area;
    return 0;
}

void agent_area_free(struct agent_area *area)
{
    if (!area)
        return;
    if (area->head)
        munmap(area->head, AGENT_HEAD_BYTES);
    if (area->counts)
        munmap(area->counts, area->apart_bytes);
    if (area->head_fd >= 0)
        close(area->head_fd);
    if (area->data_fd >= 0)
        close(area->data_fd);
    free(area);
}

int agent_area_fill(struct agent_area *area, struct error *err)
{
    int r = madvise(area->head, AGENT_HEAD_BYTES, MADV_POPULATE_WRITE) ? -errno : 0;

    if (!r)
        r = -posix_fallocate(area->data_fd, 0, (off_t)area->apart_bytes);
    return r ? error_say(err, -ENOSPC, "cannot allocate memory for its rings: %s", strerror(-r)) : 0;
}

void agent_area_placed(struct agent_area *area, uint64_t apart, uint64_t near)
{
    uint64_t chunks = apart + AGENT_COUNTS_BYTES;

    area->head->chunks = chunks;
    area->head->first_key = near + AGENT_KEY_OFFSET;
    if (area->times)
        area->head->times = chunks + area->chunk_bytes * area->chunk_count - chunks / 2;
}

int agent_area_taken(struct agent_area *area, uint32_t *ret_number)
{
    uint64_t unseen = __atomic_load_n(&area->counts->taken, __ATOMIC_ACQUIRE) - area->seen;

    if (unseen > area->given - area->seen)
        return -EBADMSG;
    if (!unseen)
        return 0;
    *ret_number = area->head->free[area->seen++ % area->chunk_count];
    return 1;
}

/* A thread that is woken for less has to wait again at once. */
static uint64_t worth_waking(const struct agent_area *area)
{
    return area->chunk_count / 8 + 1;
}

void agent_area_give(struct agent_area *area, uint32_t number)
{
    memset(agent_area_chunk(area, number), 0, area->chunk_bytes);
    area->head->free[area->given % area->chunk_count] = number;
    __atomic_store_n(&area->head->given, ++area->given, __ATOMIC_RELEASE);
    if (!area->head->waits)
        return;
    agent_area_alive(area, clock_ns(CLOCK_MONOTONIC));
    if (area->given - area->woken >= worth_waking(area))
        agent_area_wake(area);
}

void agent_area_alive(struct agent_area *area, uint64_t now)
{
    __atomic_store_n(&area->head->alive, now, __ATOMIC_RELEASE);
}

void agent_area_let_wait(struct agent_area *area)
{
    agent_area_alive(area, clock_ns(CLOCK_MONOTONIC));
    __atomic_store_n(&area->head->waits, 1, __ATOMIC_RELEASE);
}

/* Threads say that they wait before they compare the word, and it changes before they are asked for: one of
 * both is seen. What they say is theirs to destroy: it costs no more than a system call each time. */
static bool wake_all(struct agent_area *area)
{
    __atomic_fetch_add(&area->head->wakes, 1, __ATOMIC_SEQ_CST);
    if (!__atomic_exchange_n(&area->counts->waiting, 0, __ATOMIC_SEQ_CST))
        return false;
    syscall(SYS_futex, &area->head->wakes, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    return true;
}

bool agent_area_wake(struct agent_area *area)
{
    if (area->woken == area->given)
        return __atomic_load_n(&area->counts->waiting, __ATOMIC_RELAXED);
    area->woken = area->given;
    return wake_all(area);
}

void agent_area_starve(struct agent_area *area, bool starved)
{
    if (starved == (bool)area->head->starved)
        return;
    __atomic_store_n(&area->head->starved, starved, __ATOMIC_RELEASE);
    if (starved)
        wake_all(area);
}

void agent_area_quiet(struct agent_area *area)
{
    __atomic_store_n(&area->head->quiet, 1, __ATOMIC_RELEASE);
    __atomic_fetch_add(&area->head->tick, agent_tick_word(1),
                       __ATOMIC_RELEASE); /* a stub that loses calls asks */
    wake_all(area);
}
