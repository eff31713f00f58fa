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
#include "base/progress.h"
#include "bpf/stacks.skel.h"
#include "bpf/wire.h"
#include "collector/process/process.h"
#include "collector/uprobe/bpf_messages.h"
#include "image/arch/code_bytes.h"

#define PERIOD_NS 1000000u /* of a processor's time */
#define LONGEST_NS 1000000000u
#define IDLE_NS 150000000u /* a program that has not run by then is idle */
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
    uint32_t *samples_of; /* by function */
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

/* Whether a call instruction ends at `address`; where it leads in `*ret_target`, 0: unknown. */
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
    struct stack_profile *profile = context;
    const struct stack_sample *sample = data;
    const struct runner *runner = profile->runners;

    while (runner < profile->runners + profile->runner_count && runner->pid != (pid_t)sample->tgid)
        runner++;
    if (size < sizeof(*sample) || runner == profile->runners + profile->runner_count)
        return 0;
    memset(profile->marks, 0, profile->image->function_count);
    mark(profile->image, sample->ip - runner->bias, false, profile->marks);
    stack_profile_read_stack(profile->image, runner->bias, sample->words[0],
                             STACK_SAMPLE_PIECES * STACK_SAMPLE_WORDS, profile->marks);
    for (size_t i = 0; i < profile->image->function_count; i++)
        profile->samples_of[i] += profile->marks[i];
    profile->samples++;
    return 0;
}

/* The kernel interrupts each processor, whatever it runs: events of single threads would be set up anew
 * whenever a processor switches to another, which takes longer than many time slices. */
static void watch_processors(struct stack_profile *profile)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof(attr),
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .sample_period = PERIOD_NS,
        .exclude_idle = 1,
    };
    long processors = sysconf(_SC_NPROCESSORS_CONF);

    for (int i = 0; i < processors && profile->link_count < PROCESSORS_MAX; i++) {
        int event = (int)syscall(SYS_perf_event_open, &attr, -1, i, -1, PERF_FLAG_FD_CLOEXEC);
        struct bpf_link *link =
            event < 0 ? NULL : bpf_program__attach_perf_event(profile->skeleton->progs.on_sample, event);

        if (link)
            profile->links[profile->link_count++] = link;
        else if (event >= 0)
            close(event);
    }
}

/* -ENOMEM. */
static int add_runner(struct stack_profile *profile, pid_t pid)
{
    struct runner runner = {.pid = pid};
    uint64_t start, offset;

    if (process_exe_mapping(pid, &start, &offset) ||
        elf_image_load_bias(profile->image->elf, start, offset, &runner.bias))
        return 0;
    if (array_reserve(&profile->runners, &profile->runner_capacity, profile->runner_count + 1))
        return -ENOMEM;
    profile->runners[profile->runner_count++] = runner;
    return 0;
}

/* All processes that run the image: its probes will be in each of them. */
static int find_runners(struct stack_profile *profile)
{
    AUTO_FREE pid_t *pids = NULL;
    size_t count = 0;
    int r = process_runners(profile->image->file.st_dev, profile->image->file.st_ino, &pids, &count);

    for (size_t i = 0; !r && i < count; i++)
        r = add_runner(profile, pids[i]);
    return r;
}

/* Without a kernel that allows it there are no samples. */
static int sample_for_a_while(struct stack_profile *profile)
{
    uint64_t begun, passed = 0;
    int r;

    bpf_messages_begin();
    profile->skeleton = stacks_bpf__open();
    if (!profile->skeleton)
        return 0;
    profile->skeleton->rodata->program_inode = profile->image->file.st_ino;
    profile->ring =
        !stacks_bpf__load(profile->skeleton)
            ? ring_buffer__new(bpf_map__fd(profile->skeleton->maps.stacks), on_sample, profile, NULL)
            : NULL;
    if (!profile->ring)
        return 0;
    r = find_runners(profile);
    if (!r && profile->runner_count)
        watch_processors(profile);
    begun = clock_ns(CLOCK_MONOTONIC);
    while (!r && profile->link_count && profile->samples < ENOUGH &&
           passed < (profile->samples ? LONGEST_NS : IDLE_NS)) {
        usleep(ROUND_US);
        progress("finding out which functions are called often", (double)passed / LONGEST_NS);
        ring_buffer__consume(profile->ring);
        passed = clock_ns(CLOCK_MONOTONIC) - begun;
    }
    return r;
}

int stack_profile_sample(const struct traced_image *image, uint32_t *samples_of, struct error *err)
{
    struct stack_profile profile = {.image = image, .samples_of = samples_of};
    int r;

    profile.marks = calloc(image->function_count + 1, sizeof(*profile.marks));
    r = profile.marks ? sample_for_a_while(&profile) : -ENOMEM;
    for (size_t i = 0; i < profile.link_count; i++)
        bpf_link__destroy(profile.links[i]);
    ring_buffer__free(profile.ring);
    stacks_bpf__destroy(profile.skeleton);
    free(profile.runners);
    free(profile.marks);
    return r ? error_no_memory(err) : profile.samples;
}
