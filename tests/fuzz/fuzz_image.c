/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Real programs that were damaged in places that matter (elf_mutator.h), through all that a recording does
 * with an image before it is run: functions, lines, plans of every kind, inline probes and their stubs, what
 * is known of synchronisation and of Go. Every fourth is a debug file instead, of an image of the same build
 * id.
 */
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "bpf/wire.h"
#include "collector/go/program.h"
#include "collector/images/caller_frames.h"
#include "collector/inline/inline_image.h"
#include "collector/plan/rewrite_gates.h"
#include "collector/sync/targets.h"
#include "image/functions/stack_readers.h"
#include "image/source/source_frames.h"
#include "tests/fuzz/elf_mutator.h"

#define LOOKED_AT 64 /* functions of which lines and frames are asked for */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

static volatile size_t read_length; /* so that strings are read */

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    (void)max_size;
    return elf_mutate(data, size, seed);
}

/* ---------------------------------------------------------------------------------------------- questions */

static void ask_sources(struct elf_image *image, const struct image_function *functions, size_t count)
{
    CLEANUP(caller_frames_release) struct caller_frames callers = {0};

    for (size_t i = 0; i < count && i < LOOKED_AT; i++) {
        const struct image_function *function = &functions[i * (count / LOOKED_AT + 1) % count];
        struct source_frame frames[8];
        const char *file;
        unsigned line;

        if (image_function_source(image, function, &file, &line) ||
            image_source_line(image, function->address + function->size - 1, &file, &line))
            read_length = strlen(file);
        for (size_t frame = image_source_frames(image, function->address + 1, frames, 8); frame--;)
            read_length = frames[frame].function ? strlen(frames[frame].function) : 0;
        caller_frames_depth(&callers, image, functions, count, function->address + function->size / 2);
    }
}

static void write_stubs(struct inline_image *inlined, const struct image_function *functions)
{
    AUTO_FREE uint8_t *stubs = calloc(1, inlined->stub_bytes + 1);
    AUTO_FREE struct inline_patch *patches = calloc(inlined->place_count + 1, sizeof(*patches));
    const struct inline_order order = {
        .functions = functions,
        .load_bias = 0x555555554000,
        .head = (inlined->low + 0x555555554000 + (64u << 20)) & ~(uint64_t)4095,
        .stubs = stubs,
    };
    struct inline_extent room;

    if (stubs && patches)
        inline_image_emit(inlined, &order, patches, &room);
}

static void make_plans(struct elf_image *image, const struct image_function *functions, size_t count)
{
    for (enum plan_returns returns = 0; returns < PLAN_RETURNS_MODES; returns++) {
        const struct plan_options options = {.returns = returns};
        struct inline_image *inlined = NULL;
        struct rewrite_gates gates;
        struct plan *plan = NULL;
        struct error err;

        if (plan_make(image, functions, count, &options, &plan, &err) < 0)
            continue;
        rewrite_gates_find(functions, count, &gates);
        if ((returns == PLAN_RETURNS_INFER || returns == PLAN_RETURNS_EXACT) &&
            inline_image_new(image, functions, count, plan, &inlined, &err) == 0)
            write_stubs(inlined, functions);
        inline_image_free(inlined);
        plan_free(plan);
    }
}

static void ask_go(struct elf_image *image)
{
    const struct go_program_options options = {.detail = GO_DETAIL_OPERATIONS, .delays = true};
    struct go_program_file *program = NULL;
    struct error err;

    if (go_program_read(image, &options, &program, &err) == 0)
        read_length = go_program_targets(program)->count;
    go_program_free(program);
}

static void ask(struct elf_image *image)
{
    struct image_function *functions = NULL;
    struct sync_targets targets = {0};
    struct error err;
    size_t count = 0;

    read_length = (size_t)image_stack_reader(image).reach;
    read_length = inline_image_refusal(image, true) != NULL;
    if (image_functions(image, &functions, &count, &err) == 0) {
        make_plans(image, functions, count);
        ask_sources(image, functions, count);
        elf_image_forget(image);
        ask_sources(image, functions, count);
    }
    image_functions_free(functions, count);
    sync_targets_find(image, sync_library_functions, sync_library_function_count, NULL, &targets, &err);
    sync_targets_release(&targets);
    ask_go(image);
}

/* ---------------------------------------------------------------------------------------------- files */

static int memory_file(const uint8_t *data, size_t size)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    return fd;
}

/* Puts the data where the debug file of that build id belongs, below `root`. */
static bool put_debug_file(const char *root, const char *build_id, const uint8_t *data, size_t size)
{
    static char last[256];
    char path[256];
    int fd;

    if (*last)
        unlink(last);
    snprintf(path, sizeof(path), "%s/usr/lib/debug/.build-id/%.2s", root, build_id);
    for (char *slash = path + strlen(root); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    mkdir(path, 0700);
    snprintf(last, sizeof(last), "%s/%s.debug", path, build_id + 2);
    fd = open(last, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    if (write(fd, data, size) != (ssize_t)size)
        abort();
    close(fd);
    return true;
}

/* The image without its section headers, and its debug file, which has all of it. */
static void ask_with_debug_file(const uint8_t *data, size_t size)
{
    AUTO_CLOSE int fd = memory_file(data, size);
    AUTO_ELF_IMAGE struct elf_image *image = NULL;
    const uint64_t none = 0;
    const char *build_id;
    char root[128];

    if (size < 64 || pwrite(fd, &none, sizeof(none), 40) != sizeof(none) || !getcwd(root, sizeof(root)) ||
        elf_image_open_fd(fd, "fuzz", &image, NULL) < 0)
        return;
    build_id = elf_image_facts(image)->build_id;
    if (build_id && strlen(build_id) >= 4 && put_debug_file(root, build_id, data, size) &&
        elf_image_set_debug_root(image, root) == 0)
        ask(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_CLOSE int fd = memory_file(data, size);
    AUTO_ELF_IMAGE struct elf_image *image = NULL;
    unsigned sum = 0;

    for (size_t i = 0; i < size; i++)
        sum += data[i];
    if (sum % 4 == 3)
        ask_with_debug_file(data, size);
    else if (elf_image_open_fd(fd, "fuzz", &image, NULL) == 0)
        ask(image);
    return 0;
}
