/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/images/caller_frames.h"

#include <stdlib.h>
#include <uthash.h>

#include "image/arch/disasm.h"
#include "image/flow/call_depth.h"

/* A function whose calls have been read. */
struct known_caller_function {
    uint64_t address;
    UT_hash_handle hh;
};

struct known_call {
    uint64_t return_address, depth;
    UT_hash_handle hh;
};

void caller_frames_release(struct caller_frames *frames)
{
    struct known_caller_function *function = NULL, *next_function = NULL;
    struct known_call *call = NULL, *next_call = NULL;

    HASH_ITER (hh, frames->functions, function, next_function) {
        HASH_DEL(frames->functions, function);
        free(function);
    }
    HASH_ITER (hh, frames->calls, call, next_call) {
        HASH_DEL(frames->calls, call);
        free(call);
    }
}

static const struct known_call *find_call(const struct caller_frames *frames, uint64_t return_address)
{
    const struct known_call *call;

    HASH_FIND(hh, frames->calls, &return_address, sizeof(return_address), call);
    return call;
}

static void add_call(struct caller_frames *frames, const struct call_depth *depth)
{
    struct known_call *call = find_call(frames, depth->return_address) ? NULL : calloc(1, sizeof(*call));

    if (!call)
        return;
    call->return_address = depth->return_address;
    call->depth = depth->bytes;
    HASH_ADD(hh, frames->calls, return_address, sizeof(call->return_address), call);
}

static void read_function(struct caller_frames *frames, struct elf_image *image,
                          const struct image_function *functions, size_t count,
                          const struct image_function *function)
{
    AUTO_DISASM struct disasm *disasm = NULL;
    AUTO_FLOW_GRAPH struct flow_graph *graph = NULL;
    AUTO_FREE struct call_depth *calls = NULL;
    size_t call_count = 0;

    if (disasm_new(&disasm, NULL) || flow_graph_new(image, functions, count, function, disasm, &graph) ||
        call_depths(graph, &calls, &call_count))
        return;
    for (size_t i = 0; i < call_count; i++)
        add_call(frames, &calls[i]);
}

/* Whether the function has not been read before; it has now. */
static bool is_new(struct caller_frames *frames, const struct image_function *function)
{
    struct known_caller_function *known;

    HASH_FIND(hh, frames->functions, &function->address, sizeof(function->address), known);
    if (known)
        return false;
    known = calloc(1, sizeof(*known));
    if (!known)
        return false;
    known->address = function->address;
    HASH_ADD(hh, frames->functions, address, sizeof(known->address), known);
    return true;
}

uint64_t caller_frames_depth(struct caller_frames *frames, struct elf_image *image,
                             const struct image_function *functions, size_t count, uint64_t return_address)
{
    const struct known_call *call = find_call(frames, return_address);
    const struct image_function *function;

    if (call)
        return call->depth;
    function = image_functions_owner(functions, count, return_address - 1);
    if (!function || !is_new(frames, function))
        return 0;
    read_function(frames, image, functions, count, function);
    call = find_call(frames, return_address);
    return call ? call->depth : 0;
}
