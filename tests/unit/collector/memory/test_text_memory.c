/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A process's code in memory compared with its file: text_diff, text_sites and text_check. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/memory/text_diff.h"
#include "collector/memory/text_sites.h"
#include "collector/recording/text_check.h"
#include "tests/unit/image/tiny_elf.h"

enum { PAGE = 4096, INT3 = 0xcc, CALL = 0xe8 };

/* A process that has mapped a file as code. */
struct target {
    pid_t pid;
    int file;
    struct stat stat;
    uint8_t *code; /* where, in the process as in the test */
};

static void on_trap(int number)
{
}

static struct target begin(const void *bytes, size_t size, int rights, bool traps)
{
    char path[] = "/tmp/tracectl-text-XXXXXX";
    struct target target = {.file = mkstemp(path)};

    cr_assert_geq(target.file, 0);
    unlink(path);
    cr_assert_eq(write(target.file, bytes, size), (ssize_t)size);
    cr_assert_eq(ftruncate(target.file, 2L * PAGE), 0);
    cr_assert_eq(fstat(target.file, &target.stat), 0);
    if (traps)
        signal(SIGTRAP, on_trap);
    target.code = mmap(NULL, 2L * PAGE, rights, MAP_PRIVATE, target.file, 0);
    cr_assert_neq(target.code, MAP_FAILED);
    target.pid = fork();
    if (!target.pid)
        for (;;)
            pause();
    return target;
}

static void end(const struct target *target)
{
    kill(target->pid, SIGKILL);
    waitpid(target->pid, NULL, 0);
    munmap(target->code, 2L * PAGE);
    close(target->file);
}

static void change(const struct target *target, unsigned at, uint8_t byte)
{
    char path[64];
    int memory;

    snprintf(path, sizeof(path), "/proc/%d/mem", (int)target->pid);
    memory = open(path, O_RDWR | O_CLOEXEC);
    cr_assert_eq(pwrite(memory, &byte, 1, (off_t)(uintptr_t)(target->code + at)), 1);
    close(memory);
}

static struct text_diff diff_of(const struct target *target)
{
    struct text_diff diff = {0};

    cr_assert_eq(text_diff_read(target->pid, target->stat.st_dev, target->stat.st_ino, &diff), 0);
    return diff;
}

static const uint8_t code[] = {0x55, 0x0f, 0x1f, 0x44, 0, 0, 0xb8, 1, 0, 0, 0, 0xc3};
#define NOP5 1 /* offset of the no-op of five bytes */
#define MOVE 6 /* of an instruction with an operand */

Test(text_diff, code_that_is_as_in_the_file)
{
    struct target target = begin(code, sizeof(code), PROT_READ | PROT_EXEC, false);
    AUTO_TEXT_DIFF struct text_diff diff = diff_of(&target);

    cr_assert_eq(diff.mapped.count, 1);
    cr_assert_eq(diff.mapped.items[0].start, 0);
    cr_assert_eq(diff.mapped.items[0].end, 2 * PAGE);
    cr_assert_eq(diff.different.count, 0);
    cr_assert_eq(diff.breakpoints.count, 0);
    end(&target);
}

Test(text_diff, other_bytes_and_breakpoints_are_told_apart)
{
    struct target target = begin(code, sizeof(code), PROT_READ | PROT_EXEC, false);

    change(&target, MOVE + 1, 2);
    change(&target, PAGE + 5, 0x90);
    change(&target, 0, INT3);
    AUTO_TEXT_DIFF struct text_diff diff = diff_of(&target);

    cr_assert_eq(diff.different.count, 2);
    cr_assert(text_stretches_overlap(&diff.different, MOVE + 1, MOVE + 2));
    cr_assert(text_stretches_overlap(&diff.different, PAGE + 5, PAGE + 6));
    cr_assert_not(text_stretches_overlap(&diff.different, 0, MOVE + 1));
    cr_assert_eq(diff.breakpoints.count, 1);
    cr_assert_eq(diff.breakpoints.items[0].start, 0);
    end(&target);
}

Test(text_diff, a_breakpoint_may_be_the_own_one_of_a_process_that_handles_traps)
{
    struct target target = begin(code, sizeof(code), PROT_READ | PROT_EXEC, true);

    change(&target, 0, INT3);
    AUTO_TEXT_DIFF struct text_diff diff = diff_of(&target);

    cr_assert_eq(diff.breakpoints.count, 0);
    cr_assert(text_stretches_overlap(&diff.different, 0, 1));
    end(&target);
}

Test(text_diff, all_of_a_mapping_that_is_writable)
{
    struct target target = begin(code, sizeof(code), PROT_READ | PROT_WRITE | PROT_EXEC, false);
    AUTO_TEXT_DIFF struct text_diff diff = diff_of(&target);

    cr_assert_eq(diff.different.count, 1);
    cr_assert_eq(diff.different.items[0].end, 2 * PAGE);
    end(&target);
}

Test(text_diff, of_a_process_that_has_ended_there_is_none)
{
    struct target target = begin(code, sizeof(code), PROT_READ | PROT_EXEC, false);
    struct text_diff diff = {0};

    end(&target);
    cr_assert_eq(text_diff_read(target.pid, target.stat.st_dev, target.stat.st_ino, &diff), -ESRCH);
}

Test(text_sites, what_stands_where_probes_were_placed)
{
    const unsigned long offsets[] = {0, NOP5, MOVE, PAGE, 9 * PAGE};
    struct target target = begin(code, sizeof(code), PROT_READ | PROT_EXEC, false);
    enum text_site found[5];

    change(&target, 0, INT3);
    change(&target, NOP5, CALL); /* the kernel's way to make a probe there cheap */
    change(&target, MOVE, CALL);
    AUTO_TEXT_SITES struct text_sites sites = {0};

    cr_assert_eq(text_sites_open(target.pid, &sites), 0);
    cr_assert(text_sites_have(&sites, target.stat.st_dev, target.stat.st_ino));
    cr_assert_not(text_sites_have(&sites, target.stat.st_dev, target.stat.st_ino + 1));
    text_sites_read(&sites, target.stat.st_dev, target.stat.st_ino, offsets, 5, found);
    cr_assert_eq(found[0], TEXT_SITE_PROBED);
    cr_assert_eq(found[1], TEXT_SITE_PROBED);
    cr_assert_eq(found[2], TEXT_SITE_OTHER);
    cr_assert_eq(found[3], TEXT_SITE_OTHER); /* the file's page */
    cr_assert_eq(found[4], TEXT_SITE_UNMAPPED);
    end(&target);
}

/* ------------------------------------------------------------------------------------ against a plan */

/* Function f, probed at its second instruction. */
static struct target begin_image(struct traced_image *image, struct image_function *function,
                                 struct plan_probe *probe, struct plan *plan)
{
    static unsigned long offset = TINY_TEXT_OFFSET + MOVE;
    const struct tiny_symbol symbol = {
        .name = "f", .size = sizeof(code), .info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)};
    const struct tiny_elf tiny = {
        .text = code, .text_size = sizeof(code), .symbols = &symbol, .symbol_count = 1, .entry = TINY_TEXT};
    uint8_t bytes[TINY_MAX];
    struct target target = begin(bytes, tiny_elf_build(&tiny, bytes), PROT_READ | PROT_EXEC, false);

    *function = (struct image_function){
        .name = "f", .address = TINY_TEXT, .size = sizeof(code), .file_offset = TINY_TEXT_OFFSET};
    *probe = (struct plan_probe){
        .address = TINY_TEXT + MOVE, .file_offset = TINY_TEXT_OFFSET + MOVE, .kind = PLAN_AT_ENTRY};
    *plan = (struct plan){.probes = probe, .count = 1};
    *image = (struct traced_image){.file = target.stat,
                                   .kind = IMAGE_LIBRARY,
                                   .functions = function,
                                   .function_count = 1,
                                   .plan = plan,
                                   .site_count = 1,
                                   .offsets = &offset};
    cr_assert_eq(elf_image_open_fd(target.file, "tiny", &image->elf, NULL), 0);
    return target;
}

Test(text_check, what_counts_is_the_code_up_to_the_probed_instruction)
{
    struct image_function function;
    struct traced_image image;
    struct plan_probe probe;
    struct plan plan;
    struct target target = begin_image(&image, &function, &probe, &plan);
    bool any = true;

    cr_assert_eq(text_check_process(&image, target.pid, true, &any, NULL), 0);
    cr_assert_not(any);
    change(&target, TINY_TEXT_OFFSET + sizeof(code) - 1, 0x90); /* behind it */
    cr_assert_eq(text_check_process(&image, target.pid, true, &any, NULL), 0);
    cr_assert_not(any);
    cr_assert_null(image.differs);
    change(&target, TINY_TEXT_OFFSET + MOVE + 4, 1); /* its operand */
    cr_assert_eq(text_check_process(&image, target.pid, true, &any, NULL), 0);
    cr_assert(any);
    cr_assert(image.differs[0]);
    free(image.differs);
    elf_image_free(image.elf);
    end(&target);
}

Test(text_check, probes_are_known_by_their_places)
{
    struct image_function function;
    struct traced_image image;
    struct plan_probe probe;
    struct plan plan;
    struct target target = begin_image(&image, &function, &probe, &plan);

    change(&target, TINY_TEXT_OFFSET, INT3); /* another tool's */
    cr_assert_not(text_check_has_probes(&image, target.pid));
    change(&target, TINY_TEXT_OFFSET + MOVE, INT3);
    cr_assert(text_check_has_probes(&image, target.pid));
    elf_image_free(image.elf);
    end(&target);
}
