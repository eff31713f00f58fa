/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: file_rights [COMMAND ARGUMENT...]
 *
 * Prints what rights it runs with, and calls work(); if its file gives it rights, it gives them up in a child that
 * calls work() as well. With a command it executes that instead, from a thread.
 */
#include <linux/capability.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rings.h"

/* The C library's, which does not declare them. syscall() would look as if the program changed its code. */
int capget(cap_user_header_t header, const cap_user_data_t data);
int capset(cap_user_header_t header, const cap_user_data_t data);

#define CALLS 5000

static volatile unsigned long sum;

__attribute__((noinline)) void work(unsigned value)
{
    sum += value;
    __asm__ volatile("" : : : "memory");
}

static void work_on(void)
{
    for (unsigned i = 0; i < CALLS; i++)
        work(i);
}

static void say(const char *who)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {0};
    char name[32] = "";

    capget(&header, data);
    prctl(PR_GET_NAME, name);
    printf("%s %s: user %d %d, group %d %d, capabilities %x, secure %lu\n", who, name, (int)getuid(),
           (int)geteuid(), (int)getgid(), (int)getegid(), data[0].effective, getauxval(AT_SECURE));
    fflush(stdout);
}

/* Memory that the program with its rights writes records to is not the child's. */
static int child(unsigned long parents)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {0};

    if (setresgid(getgid(), getgid(), getgid()) || setresuid(getuid(), getuid(), getuid()) ||
        capset(&header, none))
        return 2;
    for (int i = 0; parents && rings() == parents && i < 10000; i++)
        usleep(1000);
    say("child");
    work_on();
    return parents && rings() == parents ? 3 : 0;
}

static void *execute(void *command)
{
    char **arguments = command;

    execv(arguments[0], arguments);
    return NULL;
}

int main(int count, char **arguments)
{
    unsigned long parents;
    pthread_t executes;
    int status = 0;
    pid_t pid;

    if (count > 1) {
        pthread_create(&executes, NULL, execute, arguments + 1);
        pthread_join(executes, NULL);
        return 127;
    }
    say("program");
    work_on();
    if (!getauxval(AT_SECURE))
        return 7;
    parents = rings();
    pid = fork();
    if (!pid)
        _exit(child(parents));
    return waitpid(pid, &status, 0) != pid || status ? 5 : 7;
}
