/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/budget/stack_profile.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "bpf/stacks.skel.h"
#include "bpf/wire.h"
#include "collector/process/process.h"
#include "collector/uprobe/bpf_messages.h"
#include "image/arch/code_bytes.h"

#define PERIOD_NS 1000000u /* of a processor's time */
#define LONGEST_NS 1000000000u
#define IDLE_NS 150000000u /* who has not run by then is idle */
#define ENOUGH 1000        /* samples */
#define ROUND_US 2000
#define PROCESSORS_MAX 1024

/* A process that runs the image. */
struct runner {
    pid_t pid;
    uint64_t bias;
};

struct stack_profile {
    const struct traced_image *image;
    uint32_t *heat;
    bool *marks;
    struct stacks_bpf *skeleton;
    struct ring_buffer *ring;
    struct bpf_link *links[PROCESSORS_MAX];
    size_t link_count;
    struct runner *runners;
    size_t runner_count, runner_capacity;
    int samples;
};

/* ------------------------------------------------------------------------------------ stacks */

static void mark(const struct traced_image *image, uint64_t address, bool at_start, bool *marks)
{
    const struct image_function *function =
        image_functions_find(image->functions, image->function_count, address);

    if (function && (!at_start || function->address == address))
        marks[function - image->functions] = true;
}

/* Whether a call instruction ends at `address`; where it leads in `*ret_target`, 0: nobody knows. */
static bool call_ends(const struct traced_image *image, uint64_t address, uint64_t *ret_target)
{
    size_t size;
    const uint8_t *code = elf_image_code(image->elf, address - CODE_CALL_LONGEST, &size);
    const uint8_t *call = code ? code + CODE_CALL_LONGEST - CODE_CALL_BYTES : NULL;

    *ret_target = 0;
    if (!code || size < CODE_CALL_LONGEST)
        return false;
    if (code_is_call(call)) {
        *ret_target = code_call_target(call, address - CODE_CALL_BYTES);
        return true;
    }
    return code_ends_with_indirect_call(code);
}

void stack_profile_read_stack(const struct traced_image *image, uint64_t bias, const __u64 *words,
                              size_t count, bool *marks)
{
    const struct image_function *functions = image->functions, *last;

    if (!image->function_count)
        return;
    last = functions + image->function_count - 1;
    for (size_t i = 0; i < count; i++) {
        uint64_t address = words[i] - bias, target;

        if (address < functions->address + CODE_CALL_LONGEST || address > last->address + last->size ||
            !call_ends(image, address, &target))
            continue;
        mark(image, address - 1, false, marks);
        if (target)
            mark(image, target, true, marks);
    }
}

/* ------------------------------------------------------------------------------------ samples */

static int on_sample(void *context, void *data, size_t size)
{
    struct stack_profile *heat = context;
    const struct stack_sample *sample = data;
    const struct runner *runner = heat->runners;

    while (runner < heat->runners + heat->runner_count && runner->pid != (pid_t)sample->tgid)
        runner++;
    if (size < sizeof(*sample) || runner == heat->runners + heat->runner_count)
        return 0;
    memset(heat->marks, 0, heat->image->function_count);
    mark(heat->image, sample->ip - runner->bias, false, heat->marks);
    stack_profile_read_stack(heat->image, runner->bias, sample->words[0],
                             STACK_SAMPLE_PIECES * STACK_SAMPLE_WORDS, heat->marks);
    for (size_t i = 0; i < heat->image->function_count; i++)
        heat->heat[i] += heat->marks[i];
    heat->samples++;
    return 0;
}

/* The kernel interrupts each processor, whatever it runs: events of single threads would be set up anew
 * whenever a processor turns to another, which takes longer than many a turn. */
static void watch_processors(struct stack_profile *heat)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof(attr),
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .sample_period = PERIOD_NS,
        .exclude_idle = 1,
    };
    long processors = sysconf(_SC_NPROCESSORS_CONF);

    for (int i = 0; i < processors && heat->link_count < PROCESSORS_MAX; i++) {
        int event = (int)syscall(SYS_perf_event_open, &attr, -1, i, -1, PERF_FLAG_FD_CLOEXEC);
        struct bpf_link *link =
            event < 0 ? NULL : bpf_program__attach_perf_event(heat->skeleton->progs.on_sample, event);

        if (link)
            heat->links[heat->link_count++] = link;
        else if (event >= 0)
            close(event);
    }
}

/* -ENOMEM. */
static int add_runner(struct stack_profile *heat, pid_t pid)
{
    struct runner runner = {.pid = pid};
    uint64_t start, offset;

    if (process_exe_mapping(pid, &start, &offset) ||
        elf_image_load_bias(heat->image->elf, start, offset, &runner.bias))
        return 0;
    if (array_reserve(&heat->runners, &heat->runner_capacity, heat->runner_count + 1))
        return -ENOMEM;
    heat->runners[heat->runner_count++] = runner;
    return 0;
}

/* All processes that run the image: its probes will be in each of them. */
static int find_runners(struct stack_profile *heat)
{
    AUTO_FREE pid_t *pids = NULL;
    size_t count = 0;
    int r = process_runners(heat->image->file.st_dev, heat->image->file.st_ino, &pids, &count);

    for (size_t i = 0; !r && i < count; i++)
        r = add_runner(heat, pids[i]);
    return r;
}

/* Without a kernel that allows it there are no samples. */
static int sample_for_a_while(struct stack_profile *heat)
{
    uint64_t begun, passed = 0;
    int r;

    bpf_messages_begin();
    heat->skeleton = stacks_bpf__open();
    if (!heat->skeleton)
        return 0;
    heat->skeleton->rodata->program_inode = heat->image->file.st_ino;
    heat->ring = !stacks_bpf__load(heat->skeleton)
                     ? ring_buffer__new(bpf_map__fd(heat->skeleton->maps.stacks), on_sample, heat, NULL)
                     : NULL;
    if (!heat->ring)
        return 0;
    r = find_runners(heat);
    if (!r && heat->runner_count)
        watch_processors(heat);
    begun = clock_ns(CLOCK_MONOTONIC);
    while (!r && heat->link_count && heat->samples < ENOUGH &&
           passed < (heat->samples ? LONGEST_NS : IDLE_NS)) {
        usleep(ROUND_US);
        ring_buffer__consume(heat->ring);
        passed = clock_ns(CLOCK_MONOTONIC) - begun;
    }
    return r;
}

int stack_profile_sample(const struct traced_image *image, uint32_t *heat_of, struct error *err)
{
    struct stack_profile heat = {.image = image, .heat = heat_of};
    int r;

    heat.marks = calloc(image->function_count + 1, sizeof(*heat.marks));
    r = heat.marks ? sample_for_a_while(&heat) : -ENOMEM;
    for (size_t i = 0; i < heat.link_count; i++)
        bpf_link__destroy(heat.links[i]);
    ring_buffer__free(heat.ring);
    stacks_bpf__destroy(heat.skeleton);
    free(heat.runners);
    free(heat.marks);
    return r ? error_no_memory(err) : heat.samples;
}
