/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Threads that share a thread control block, and so the slots in it. */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "collector/inline/inline_state.h"
#include "collector/process/target_memory.h"

/* Marks the block in the memory of a thread. Without an owner the next thread looks at the mark (own() in
 * collector/inline/agent/agent.c). -ESRCH. */
static int mark(uint32_t tid, uint64_t block)
{
    const struct target_word words[] = {
        {block + AGENT_SHARED, 1}, {block + AGENT_OWNER, 0}, {block + AGENT_LOSER, 0}};

    return target_memory_write((pid_t)tid, words, ARRAY_SIZE(words)) ? -ESRCH : 0;
}

/* A thread has the slots to itself again. `maker`: it has taken them before. */
static void unmark(uint32_t tid, uint64_t block, bool maker)
{
    const struct target_word words[] = {{block + AGENT_NAME, 0}, {block + AGENT_SHARED, 0}};

    target_memory_write((pid_t)tid, words + maker, ARRAY_SIZE(words) - maker);
}

static void block_free(struct shared_block *shared)
{
    free(shared->tids);
    free(shared);
}

static size_t find_user(const struct shared_block *shared, uint32_t tid)
{
    size_t i = 0;

    while (i < shared->count && shared->tids[i] != tid)
        i++;
    return i;
}

static int add_user(struct shared_block *shared, uint32_t tid)
{
    if (array_reserve(&shared->tids, &shared->capacity, shared->count + 1))
        return -ENOMEM;
    shared->tids[shared->count++] = tid;
    return 0;
}

/* The block that a thread has together with others, or one that it has alone so far. NULL: no memory. */
static struct shared_block *block_of(struct inline_backend *backend, uint32_t tid, uint64_t address)
{
    struct shared_block *shared = backend->shared_blocks;

    while (shared && (shared->address != address || find_user(shared, tid) == shared->count))
        shared = shared->next;
    if (shared)
        return shared;
    shared = calloc(1, sizeof(*shared));
    if (!shared || add_user(shared, tid)) {
        free(shared);
        return NULL;
    }
    shared->address = address;
    shared->maker = tid;
    shared->next = backend->shared_blocks;
    backend->shared_blocks = shared;
    return shared;
}

int inline_share_block(struct backend *backend, const struct wire_fork *record)
{
    struct shared_block *shared = block_of(inline_of(backend), record->parent_tid, record->thread_block);
    uint32_t made = record->header.tid;
    int r;

    if (!shared || add_user(shared, made))
        return -ENOMEM;
    r = shared->marked ? 1 : mark(made, record->thread_block);
    shared->marked |= !r;
    return r;
}

void inline_leave_blocks(struct inline_backend *backend, uint32_t tid)
{
    struct shared_block **link = &backend->shared_blocks, *shared;

    while ((shared = *link)) {
        size_t user = find_user(shared, tid);

        if (user < shared->count)
            shared->tids[user] = shared->tids[--shared->count];
        if (shared->count > 1) {
            link = &shared->next;
            continue;
        }
        if (shared->count)
            unmark(*shared->tids, shared->address, *shared->tids == shared->maker);
        *link = shared->next;
        block_free(shared);
    }
}

void inline_forget_blocks(struct inline_backend *backend)
{
    struct shared_block *shared;

    while ((shared = backend->shared_blocks)) {
        backend->shared_blocks = shared->next;
        block_free(shared);
    }
}
