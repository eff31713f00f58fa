/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Copies of pages of code are given back, and only those that are as in the file. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "collector/inline/text_pages.h"

#define PAGE 4096u
#define PAGES 12u
/* A page in front of the mapping; the last one is not whole. */
#define FILE_BYTES (PAGE + PAGES * PAGE - 100)

static struct {
    atomic_bool ready;
    uint8_t *code;
} * shared;

static uint8_t wanted[PAGES * PAGE]; /* what the mapping has, by the file */
static struct code_mapping mapping;
static pid_t pid;
static int memory;

static void child_main(int file, bool locked)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* With sanitizers mlock() does nothing. */
    shared->code = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, PAGE);
    if (shared->code == MAP_FAILED || (locked && syscall(SYS_mlock, shared->code, PAGES * PAGE)))
        _exit(1);
    atomic_store(&shared->ready, true);
    for (;;)
        pause();
}

static void begin(bool locked)
{
    char path[] = "/tmp/text_pages.XXXXXX", mem[64];
    int file = mkstemp(path);

    cr_assert_geq(file, 0);
    for (size_t i = 0; i < FILE_BYTES - PAGE; i++)
        wanted[i] = (uint8_t)(i / PAGE * 16 + i % 13);
    cr_assert_eq(pwrite(file, wanted, FILE_BYTES - PAGE, PAGE), FILE_BYTES - PAGE);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(shared, MAP_FAILED);
    pid = fork();
    if (!pid)
        child_main(file, locked);
    while (!atomic_load(&shared->ready) && !waitpid(pid, NULL, WNOHANG))
        usleep(100);
    mapping = (struct code_mapping){
        .start = (uint64_t)shared->code, .end = (uint64_t)shared->code + PAGES * PAGE, .offset = PAGE};
    snprintf(mapping.link, sizeof(mapping.link), "/proc/self/fd/%d", file);
    snprintf(mem, sizeof(mem), "/proc/%d/mem", (int)pid);
    memory = open(mem, O_RDWR | O_CLOEXEC);
    cr_assert_geq(memory, 0);
    unlink(path);
}

static void end(void)
{
    close(memory);
    kill(pid, SIGKILL);
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
}

/* A byte is written into the page, and the one that was there after it. */
static void write_and_undo(size_t page)
{
    const uint8_t breakpoint = 0xcc;
    off_t at = (off_t)(mapping.start + page * PAGE + 7);

    cr_assert_eq(pwrite(memory, &breakpoint, 1, at), 1);
    cr_assert_eq(pwrite(memory, &wanted[page * PAGE + 7], 1, at), 1);
}

/* The pages that are copies, a letter each. */
static const char *copies(void)
{
    static char said[PAGES + 1];
    uint64_t words[PAGES];
    char path[64];
    int file;

    snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pid);
    file = open(path, O_RDONLY | O_CLOEXEC);
    cr_assert_eq(pread(file, words, sizeof(words), (off_t)(mapping.start / PAGE * 8)), sizeof(words));
    close(file);
    for (size_t i = 0; i < PAGES; i++)
        said[i] = words[i] >> 63 && !(words[i] >> 61 & 1) ? 'c' : '.';
    return said;
}

static int give_back(void *context, struct remote *remote, struct error *err)
{
    (void)err;
    text_pages_give_back(remote, &mapping, context);
    return 0;
}

static void run_on(bool *changed)
{
    struct error err = {0};

    cr_assert_eq(remote_session(pid, give_back, changed, &err), 0, "%s", err.message);
}

static void run(void)
{
    run_on(NULL);
}

static void has_wanted(void)
{
    uint8_t now[sizeof(wanted)];

    cr_assert_eq(pread(memory, now, sizeof(now), (off_t)mapping.start), sizeof(now));
    cr_assert_arr_eq(now, wanted, sizeof(now));
}

Test(text_pages, copies_as_in_the_file_are_given_back)
{
    begin(false);
    write_and_undo(0);
    write_and_undo(4);
    write_and_undo(5);
    write_and_undo(PAGES - 1);
    cr_assert_str_eq(copies(), "c...cc.....c");
    run();
    cr_assert_str_eq(copies(), "............");
    has_wanted();
    end();
}

Test(text_pages, only_those_that_have_changed_are_looked_at)
{
    bool changed[PAGES] = {[2] = true, [5] = true, [6] = true};

    begin(false);
    for (size_t i = 1; i < 7; i++)
        write_and_undo(i);
    cr_assert_str_eq(copies(), ".cccccc.....");
    run_on(changed);
    cr_assert_str_eq(copies(), ".c.cc.......");
    has_wanted();
    end();
}

Test(text_pages, a_page_with_something_else_stays)
{
    const uint8_t breakpoint = 0xcc;

    begin(false);
    write_and_undo(2);
    write_and_undo(3);
    write_and_undo(4);
    cr_assert_eq(pwrite(memory, &breakpoint, 1, (off_t)(mapping.start + 3 * PAGE)), 1);
    run();
    cr_assert_str_eq(copies(), "...c........");
    wanted[3 * PAGE] = breakpoint;
    has_wanted();
    end();
}

Test(text_pages, locked_memory_stays)
{
    begin(true);
    write_and_undo(2);
    run();
    cr_assert_str_eq(copies(), "..c.........");
    has_wanted();
    end();
}

Test(text_pages, a_file_that_cannot_be_opened)
{
    begin(false);
    write_and_undo(2);
    strcpy(mapping.link, "/nowhere");
    run();
    cr_assert_str_eq(copies(), "..c.........");
    end();
}
