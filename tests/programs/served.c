/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A process of an unprivileged user with memory, or a program, that another program of the user serves and
 * that is never there when somebody else wants it.
 *
 *     served stack FOLDER             a thread's stack lies below pages of a file of a FUSE mount on FOLDER
 *     served uffd                     the same with memory of a userfaultfd(2)
 *     served program FOLDER PROGRAM   runs PROGRAM from a FUSE mount, which answers until it has begun
 *
 *     served impostor                 has a memory file of our name, as recorders make them, with a collector
 * that lives served plain                    has not
 *
 * Prints "ready PID" of that process, and works until it is killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534
#define PAGE 4096u
#define FILE_NODE 2

static char content[4 << 20];
static size_t size = 1 << 20, served_bytes = PAGE; /* reads behind that are not answered */
static volatile bool silent;
volatile long counter;

__attribute__((noinline)) void served_work(void)
{
    counter++;
}

__attribute__((noinline)) void served_loop(void)
{
    for (;;) {
        served_work();
        usleep(2000);
    }
}

/* ------------------------------------------------------------------------------------ the file system */

static void answer(int device, uint64_t unique, int error, const void *data, size_t length)
{
    struct {
        struct fuse_out_header head;
        char data[1 << 17];
    } reply = {.head = {.len = (uint32_t)(sizeof(struct fuse_out_header) + length),
                        .error = error,
                        .unique = unique}};

    memcpy(reply.data, data, length);
    if (write(device, &reply, reply.head.len) < 0)
        return; /* it has been given up */
}

static struct fuse_attr attributes(uint64_t node)
{
    return (struct fuse_attr){.ino = node,
                              .size = node == FILE_NODE ? size : 0,
                              .blocks = size / 512,
                              .mode = node == FILE_NODE ? S_IFREG | 0755 : S_IFDIR | 0755,
                              .nlink = 1,
                              .blksize = PAGE};
}

static void serve_one(int device, const struct fuse_in_header *head, const void *request)
{
    const struct fuse_read_in *read_in = request;
    struct fuse_init_out init = {
        .major = FUSE_KERNEL_VERSION, .minor = 31, .max_readahead = 0, .max_write = PAGE};
    struct fuse_entry_out entry = {
        .nodeid = FILE_NODE, .entry_valid = 1000, .attr_valid = 1000, .attr = attributes(FILE_NODE)};
    struct fuse_attr_out attr = {.attr_valid = 1000, .attr = attributes(head->nodeid)};
    struct fuse_open_out opened = {.open_flags = FOPEN_KEEP_CACHE};

    switch (head->opcode) {
    case FUSE_INIT:
        return answer(device, head->unique, 0, &init, sizeof(init));
    case FUSE_LOOKUP:
        return answer(device, head->unique, 0, &entry, sizeof(entry));
    case FUSE_GETATTR:
        return answer(device, head->unique, 0, &attr, sizeof(attr));
    case FUSE_OPEN:
        return answer(device, head->unique, 0, &opened, sizeof(opened));
    case FUSE_READ:
        if (!silent && read_in->offset + read_in->size <= served_bytes)
            answer(device, head->unique, 0, content + read_in->offset, read_in->size);
        return;
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
        return;
    default:
        return answer(device, head->unique, -ENOSYS, NULL, 0);
    }
}

static void serve(int device)
{
    static _Alignas(8) char buffer[1 << 17];

    while (read(device, buffer, sizeof(buffer)) > 0)
        serve_one(device, (struct fuse_in_header *)buffer, buffer + sizeof(struct fuse_in_header));
}

/* Mounts it on `folder`, for this process and those that it makes; another process serves it. */
static int mount_served(const char *folder)
{
    int device = open("/dev/fuse", O_RDWR);
    char options[128];

    snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%d,group_id=%d", device, NOBODY, NOBODY);
    if (device < 0 || unshare(CLONE_NEWNS) || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("served", folder, "fuse", 0, options))
        return perror("cannot mount"), -1;
    return device;
}

/* ------------------------------------------------------------------------------------ the process */

/* On a stack whose upper pages are others: what called it lies there, as it seems. */
static void work_below(char *upper)
{
    uintptr_t top = (uintptr_t)upper - 256;

    __asm__ volatile("mov %%rsp, %%rbx; mov %0, %%rsp; call served_loop; mov %%rbx, %%rsp" ::"r"(top & ~15ul)
                     : "rbx", "memory");
}

static int on_file(const char *folder)
{
    char path[4096],
        *base = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int file;

    snprintf(path, sizeof(path), "%s/file", folder);
    file = open(path, O_RDONLY);
    if (file < 0 ||
        mmap(base, 32 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file, 0) == MAP_FAILED)
        return perror(path), 1;
    base[0] = 1; /* answered, and copied: the stack */
    work_below(base + PAGE);
    return 0;
}

static int on_missing_memory(int faults)
{
    char *base = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register wanted = {.range = {(uintptr_t)base + 16 * PAGE, 48 * PAGE},
                                     .mode = UFFDIO_REGISTER_MODE_MISSING};

    memset(base, 1, 16 * PAGE);
    if (faults < 0 || ioctl(faults, UFFDIO_API, &api) || ioctl(faults, UFFDIO_REGISTER, &wanted))
        return perror("userfaultfd"), 1;
    work_below(base + 16 * PAGE);
    return 0;
}

/* Every word of the file names a child as the collector, wherever that is looked for; it has the file, too.
 */
static int with_our_name(void)
{
    int file = memfd_create("tracectl", 0);
    uint32_t words[PAGE / sizeof(uint32_t)];
    pid_t child;

    if (ftruncate(file, PAGE) || mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0) == MAP_FAILED)
        return perror("memfd"), 1;
    child = fork();
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        served_loop();
    }
    for (size_t i = 0; i < PAGE / sizeof(uint32_t); i++)
        words[i] = (uint32_t)child;
    if (write(file, words, PAGE) != PAGE)
        return perror("memfd"), 1;
    served_loop();
    return 0;
}

static int run_served(const char *folder)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s/file", folder);
    execl(path, path, "1000000000", (char *)NULL);
    return perror(path), 1;
}

static int target(char **argv, int faults)
{
    if (setgid(NOBODY) || setuid(NOBODY))
        return 1;
    if (!strcmp(argv[1], "plain"))
        served_loop();
    if (!strcmp(argv[1], "impostor"))
        return with_our_name();
    if (!strcmp(argv[1], "uffd"))
        return on_missing_memory(faults);
    return !strcmp(argv[1], "stack") ? on_file(argv[2]) : run_served(argv[2]);
}

static void load(const char *path)
{
    FILE *file = fopen(path, "r");

    size = file ? fread(content, 1, sizeof(content), file) : 0;
    served_bytes = size + (1 << 17);
    if (file)
        fclose(file);
}

static void fall_silent(int signal)
{
    (void)signal;
    silent = true;
}

int main(int argc, char **argv)
{
    bool faults = argc == 2;
    int device = -1;
    pid_t pid, server = 0;

    if (argc < 3 && !faults)
        return 2;
    if (argc == 4)
        load(argv[3]);
    if (!faults && (device = mount_served(argv[2])) < 0)
        return 1;
    signal(SIGUSR1, fall_silent);
    if (!faults && !(server = fork())) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve(device);
        _exit(0);
    }
    if (device >= 0)
        close(device);
    pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        return target(argv, faults ? (int)syscall(SYS_userfaultfd, O_CLOEXEC) : -1);
    }
    usleep(300000);
    if (server && argc == 4)
        kill(server, SIGUSR1);
    printf("ready %d\n", (int)pid);
    fflush(stdout);
    waitpid(pid, NULL, 0);
    return 1;
}
