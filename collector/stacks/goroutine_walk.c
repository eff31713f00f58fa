/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/stacks/goroutine_walk.h"

#include <string.h>

#include "image/go/go_goroutines.h"

enum { FRAMES_MAX = 1 << 18 };

/* The rule for the function that the point is in. */
static enum go_stack_rule rule_at(const struct go_runtime *runtime, uint64_t pc, bool interrupted,
                                  uint64_t *ret_size)
{
    return go_stack_rule(runtime->image->elf, pc - runtime->bias - !interrupted, ret_size);
}

/* Whether the function's caller did not call it: the runtime made it look so, at an instruction of its
 * choice. */
static bool was_injected(const struct go_runtime *runtime, uint64_t pc)
{
    const struct image_function *function = code_image_function(runtime->image, pc - runtime->bias - 1);

    return function &&
           (!strcmp(function->name, "runtime.asyncPreempt") || !strcmp(function->name, "runtime.sigpanic"));
}

static bool read_word(const struct live_copy *copy, uint64_t address, uint64_t *ret_word)
{
    uint64_t offset = address - copy->address;

    if (copy->size < sizeof(*ret_word) || offset > copy->size - sizeof(*ret_word))
        return false;
    memcpy(ret_word, copy->bytes + offset, sizeof(*ret_word));
    return true;
}

bool go_walk_stack(const struct go_runtime *runtime, struct go_point from, const struct live_copy *copy,
                   struct sampled_thread *thread)
{
    struct go_point at = from;

    thread->whole = false;
    for (int frames = 0; frames < FRAMES_MAX; frames++) {
        struct live_activation activation = {
            .pc = at.pc, .known = 1u << LIVE_SP | 1u << LIVE_PC, .interrupted = at.interrupted};
        enum go_stack_rule rule;
        uint64_t size, caller;

        activation.registers[LIVE_SP] = at.sp;
        activation.registers[LIVE_PC] = at.pc;
        if (!sampled_thread_add(thread, &activation))
            return false;
        rule = rule_at(runtime, at.pc, at.interrupted, &size);
        thread->whole = rule == GO_STACK_TOP;
        if (rule != GO_STACK_CALLER || !read_word(copy, at.sp + size, &caller))
            break;
        at = (struct go_point){caller, at.sp + size + sizeof(caller), was_injected(runtime, at.pc)};
    }
    return true;
}

struct search {
    const struct go_runtime *runtime;
    struct sampled_thread *thread;
    struct go_point *point;
    bool found, no_memory;
};

static bool look_for_go(void *context, const struct live_activation *activation)
{
    struct search *search = context;
    uint64_t size;

    if (rule_at(search->runtime, activation->pc, activation->interrupted, &size) != GO_STACK_UNKNOWN) {
        *search->point =
            (struct go_point){activation->pc, activation->registers[LIVE_SP], activation->interrupted};
        search->found = true;
        return false;
    }
    search->no_memory = !sampled_thread_add(search->thread, activation);
    return !search->no_memory;
}

bool go_walk_to_go(const struct go_runtime *runtime, struct live_unwinder *unwinder,
                   const struct caught_thread *caught, struct sampled_thread *thread,
                   struct go_point *ret_point)
{
    struct search search = {.runtime = runtime, .thread = thread, .point = ret_point};
    size_t before = thread->count;

    live_unwind_activations(unwinder, &caught->seen, caught->copies, caught->copy_count, look_for_go,
                            &search);
    if (search.no_memory)
        thread->known = false;
    if (!search.found)
        thread->count = before;
    return search.found;
}
