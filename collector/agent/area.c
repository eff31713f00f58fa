/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/agent/area.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collector/agent/agent_code.h"

#define PAGE 4096u

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010u /* Linux 6.3: asks for what was always so before */
#endif

static size_t whole_pages(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* A memory file that may be mapped for execution. */
static int memory_file(const char *name, size_t bytes)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_EXEC);

    if (fd < 0 && errno == EINVAL)
        fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (ftruncate(fd, (off_t)bytes)) {
        int r = -errno;

        close(fd);
        return r;
    }
    return fd;
}

int agent_file_new(void)
{
    int fd = memory_file("agent of " AGENT_MAGIC, AGENT_CODE_BYTES);

    if (fd >= 0 && pwrite(fd, agent_code, sizeof(agent_code), 0) != (ssize_t)sizeof(agent_code)) {
        close(fd);
        return -ENOMEM;
    }
    return fd;
}

static void fill_head(struct agent_area *area, size_t area_bytes)
{
    struct agent_head *head = area->head;

    memcpy(head->magic, AGENT_MAGIC, sizeof(head->magic));
    head->version = AGENT_VERSION;
    head->chunk_bytes = (uint32_t)area->chunk_bytes;
    head->chunk_count = (uint32_t)area->chunk_count;
    head->collector = (uint32_t)getpid();
    head->area_bytes = area_bytes;
    head->chunks_bytes = area->apart_bytes;
    head->tick = agent_tick_word(1);
    head->keys = 1; /* that of the process which the area is made for */
    for (uint32_t i = 0; i < area->chunk_count; i++)
        head->free[i] = area->free[i] = i;
    area->given = area->chunk_count;
    __atomic_store_n(&head->given, area->given, __ATOMIC_RELEASE);
}

int agent_area_new(size_t stub_bytes, size_t ring_bytes, bool timed, struct agent_area **ret_area,
                   struct error *err)
{
    struct agent_area *area = calloc(1, sizeof(*area));
    size_t bytes;

    if (!area)
        return error_no_memory(err);
    area->chunk_bytes = AGENT_CHUNK_BYTES;
    area->chunk_count = ring_bytes / area->chunk_bytes;
    if (area->chunk_count > AGENT_CHUNKS_MAX)
        area->chunk_count = AGENT_CHUNKS_MAX;
    if (area->chunk_count < 2)
        area->chunk_count = 2;
    area->stub_bytes = stub_bytes;
    area->near_bytes = whole_pages(AGENT_STUBS_OFFSET + stub_bytes);
    area->apart_bytes = area->chunk_bytes * area->chunk_count;
    if (timed)
        area->apart_bytes += area->apart_bytes / 2;
    bytes = area->near_bytes + area->apart_bytes;
    area->free = calloc(area->chunk_count, sizeof(*area->free));
    area->fd = memory_file(AGENT_MAGIC, bytes);
    if (area->free && area->fd >= 0)
        area->head = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, area->fd, 0);
    if (!area->head || area->head == MAP_FAILED) {
        int r = area->fd < 0 ? area->fd : -ENOMEM;

        area->head = NULL;
        agent_area_free(area);
        return error_set(err, r, NULL, "cannot make memory to share with a target");
    }
    area->stubs = (uint8_t *)area->head + AGENT_STUBS_OFFSET;
    area->chunks = (uint8_t *)area->head + area->near_bytes;
    if (timed)
        area->times = (uint64_t *)(area->chunks + area->chunk_bytes * area->chunk_count);
    fill_head(area, bytes);
    *ret_area = area;
    return 0;
}

void agent_area_free(struct agent_area *area)
{
    if (!area)
        return;
    if (area->head)
        munmap(area->head, area->near_bytes + area->apart_bytes);
    if (area->fd >= 0)
        close(area->fd);
    free(area->free);
    free(area);
}

int agent_area_fill(struct agent_area *area, struct error *err)
{
    int r = -posix_fallocate(area->fd, 0, (off_t)(area->near_bytes + area->apart_bytes));

    return r ? error_say(err, -ENOSPC, "there is no memory for its rings: %s", strerror(-r)) : 0;
}

void agent_area_placed(struct agent_area *area, uint64_t apart)
{
    area->head->chunks = apart;
    if (area->times)
        area->head->times = apart + area->chunk_bytes * area->chunk_count - apart / 2;
}

bool agent_area_taken(struct agent_area *area, uint32_t *ret_number)
{
    if (area->seen == area->given || area->seen == __atomic_load_n(&area->head->taken, __ATOMIC_ACQUIRE))
        return false;
    *ret_number = area->free[area->seen++ % area->chunk_count];
    return true;
}

void agent_area_give(struct agent_area *area, uint32_t number)
{
    size_t entry = area->given % area->chunk_count;

    memset(agent_area_chunk(area, number), 0, area->chunk_bytes);
    area->free[entry] = area->head->free[entry] = number;
    __atomic_store_n(&area->head->given, ++area->given, __ATOMIC_RELEASE);
}

void agent_area_quiet(struct agent_area *area)
{
    __atomic_store_n(&area->head->quiet, 1, __ATOMIC_RELEASE);
    __atomic_fetch_add(&area->head->tick, agent_tick_word(1),
                       __ATOMIC_RELEASE); /* whoever loses calls asks */
}
