/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Memory whose faults another thread of the process serves, slowly. */
#include "collector/process/target_memory.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096u
#define PAGES 40u
#define ANSWER_US 250000

/* Answers each fault after a quarter of a second. */
static void serve(int faults)
{
    static char page[PAGE] __attribute__((aligned(PAGE)));
    struct uffd_msg message;

    while (read(faults, &message, sizeof(message)) == (ssize_t)sizeof(message)) {
        struct uffdio_copy copy = {.dst = message.arg.pagefault.address & ~(__u64)(PAGE - 1),
                                   .src = (__u64)(uintptr_t)page,
                                   .len = PAGE};

        usleep(ANSWER_US);
        ioctl(faults, UFFDIO_COPY, &copy);
    }
}

/* A child with such memory at the address; 0: there is no userfaultfd(2) here. */
static pid_t start_slow(void *memory)
{
    struct uffdio_register range = {.range = {(__u64)(uintptr_t)memory, (__u64)PAGES * PAGE},
                                    .mode = UFFDIO_REGISTER_MODE_MISSING};
    struct uffdio_api api = {.api = UFFD_API};
    int ready[2], faults;
    char said = 0;
    pid_t child;

    cr_assert_eq(pipe(ready), 0);
    child = fork();
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
        said = faults >= 0 && !ioctl(faults, UFFDIO_API, &api) && !ioctl(faults, UFFDIO_REGISTER, &range);
        if (write(ready[1], &said, 1) == 1 && said)
            serve(faults);
        _exit(0);
    }
    close(ready[1]);
    cr_assert_eq(read(ready[0], &said, 1), 1);
    close(ready[0]);
    if (said)
        return child;
    waitpid(child, NULL, 0);
    return 0;
}

Test(target_memory, all_reads_of_a_process_together_have_one_limit, .timeout = 60)
{
    char *memory =
        mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pid_t child = start_slow(memory);
    unsigned answered = 0;
    char byte;

    if (!child)
        cr_skip_test("no userfaultfd");
    while (answered < PAGES && target_memory_read(child, (uintptr_t)memory + answered * PAGE, &byte, 1) == 1)
        answered++;
    /* Two seconds of quarters, and what is forgiven meanwhile. */
    cr_expect_leq(answered, 10, "%u pages were waited for", answered);
    cr_expect_eq(target_memory_read(child, (uintptr_t)&child, &byte, 1), 0, "it has had its time");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}
