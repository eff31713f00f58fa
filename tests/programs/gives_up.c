/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: gives_up HOW
 *
 * A service that works in a child with fewer rights than its own: `users` changes the user, `capabilities`
 * gives up one, `namespace` makes a user namespace, and `none` gives up nothing. Ends with 0 if the child's
 * memory for records is its own in the first three and its parent's in the last. Prints how often each of the
 * two has called work().
 */
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int capset(cap_user_header_t header,
           const cap_user_data_t data); /* the C library's, which does not declare it */

#define OTHER 65534
#define CALLS 5000

static volatile unsigned long sum;

__attribute__((noinline)) void work(unsigned value)
{
    sum += value;
    __asm__ volatile("" : : : "memory");
}

static void work_on(unsigned calls)
{
    for (unsigned i = 0; i < calls; i++)
        work(i);
}

/* The number of the file that the records go to; 0: there is none. */
static unsigned long rings(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    unsigned long inode = 0, found = 0;
    char line[512];

    while (maps && fgets(line, sizeof(line), maps))
        if (strstr(line, "memfd:tracectl rings") && sscanf(line, "%*s %*s %*s %*s %lu", &inode) == 1)
            found = inode;
    if (maps)
        fclose(maps);
    return found;
}

static int drop_a_capability(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];

    if (syscall(SYS_capget, &header, data))
        return -1;
    data[0].permitted &= ~(1u << CAP_SYS_CHROOT);
    data[0].effective &= data[0].permitted;
    return capset(&header, data);
}

static int give_up(const char *how)
{
    if (!strcmp(how, "users"))
        return setgroups(0, NULL) || setresgid(OTHER, OTHER, OTHER) || setresuid(OTHER, OTHER, OTHER);
    if (!strcmp(how, "capabilities"))
        return drop_a_capability();
    if (!strcmp(how, "namespace"))
        return unshare(CLONE_NEWUSER);
    return 0;
}

static int child(const char *how, unsigned long parents)
{
    int shares = !strcmp(how, "none");

    work_on(CALLS);
    if (give_up(how)) {
        perror(how);
        return 2;
    }
    work_on(CALLS);
    return (rings() == parents) == shares && rings() ? 0 : 1;
}

int main(int count, char **arguments)
{
    const char *how = count > 1 ? arguments[1] : "none";
    int status;
    pid_t pid;

    work_on(CALLS);
    pid = fork();
    if (!pid)
        _exit(child(how, rings()));
    work_on(CALLS);
    if (waitpid(pid, &status, 0) != pid)
        return 3;
    work_on(CALLS);
    printf("%d %d\n%d %d\n", (int)getpid(), 3 * CALLS, (int)pid, 2 * CALLS);
    return status ? 4 : 0;
}
