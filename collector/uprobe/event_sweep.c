/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Deletes definitions of events that nobody uses. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "bpf/event_users.skel.h"
#include "collector/uprobe/bpf_messages.h"
#include "collector/uprobe/kernel_features.h"
#include "collector/uprobe/probe_events.h"

#define FOLDER "events/" PROBE_EVENTS_GROUP
#define AT_ONCE 512
#define LOCK_TRIES 50
#define LOCK_POLL_US 20000

DEFINE_CLEANUP(cleanup_dir, DIR *, closedir)
DEFINE_CLEANUP(cleanup_event_users, struct event_users_bpf *, event_users_bpf__destroy)

struct defined {
    char name[32];
    int fd; /* of its file `enable` */
    uint64_t id;
    bool unused;
};

/* As the program in bpf/event_users.bpf.c writes them. */
struct user_record {
    uint32_t fd, number, users;
};

/* The file `enable` of an event, or -1: there is none, or somebody has it written to the trace buffer. */
static int open_enable(int list, const char *name)
{
    char path[48], enabled = '1';
    AUTO_CLOSE int fd = -1;

    snprintf(path, sizeof(path), "%s/enable", name);
    fd = openat(list, path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && read(fd, &enabled, 1) == 1 && enabled == '0' ? take_fd(&fd) : -1;
}

static size_t open_events(int folder, struct defined *ret_events, size_t capacity)
{
    CLEANUP(cleanup_dir) DIR *list = fdopendir(openat(folder, FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const struct dirent *entry;
    size_t count = 0;

    while (count < capacity && list && (entry = readdir(list))) {
        struct defined *event = &ret_events[count];

        if (*entry->d_name != 'e' || strlen(entry->d_name) != PROBE_EVENTS_NAME)
            continue; /* "enable" is the group's own */
        *event = (struct defined){.fd = open_enable(dirfd(list), entry->d_name)};
        memcpy(event->name, entry->d_name, PROBE_EVENTS_NAME);
        if (event->fd >= 0 && probe_events_id(folder, event->name, &event->id))
            close(take_fd(&event->fd));
        count += event->fd >= 0;
    }
    return count;
}

static void find_unused(int iterator, struct defined *events, size_t count)
{
    struct user_record records[256];
    ssize_t size;

    while ((size = read(iterator, records, sizeof(records))) > 0)
        for (size_t i = 0; i < (size_t)size / sizeof(*records); i++)
            for (size_t k = 0; k < count; k++)
                if (events[k].fd == (int)records[i].fd)
                    events[k].unused = records[i].number == events[k].id && !records[i].users;
}

/* With the lock: no event gets its first user meanwhile. */
static void sweep_by(int folder, int lock, const struct event_users_bpf *users)
{
    static struct defined events[AT_ONCE];
    size_t count = open_events(folder, events, AT_ONCE);
    AUTO_CLOSE int iterator = count ? bpf_iter_create(bpf_link__fd(users->links.list_event_users)) : -1;

    if (iterator >= 0)
        find_unused(iterator, events, count);
    for (size_t i = 0; i < count; i++)
        close(events[i].fd);
    for (size_t i = 0; i < count; i++)
        if (events[i].unused)
            probe_events_undefine(lock, events[i].name);
}

static int lock_soon(int folder)
{
    int lock = probe_events_lock(folder, true);

    for (int i = 0; i < LOCK_TRIES && lock == -EWOULDBLOCK; i++) {
        usleep(LOCK_POLL_US);
        lock = probe_events_lock(folder, true);
    }
    return lock;
}

/* Without copies of the recorder's descriptors: none of its events is to live longer by them. */
static void sweep(int folder)
{
    CLEANUP(cleanup_event_users) struct event_users_bpf *users = NULL;
    int lock;

    if (dup2(folder, STDERR_FILENO + 1) < 0)
        return;
    folder = STDERR_FILENO + 1;
    close_range((unsigned)folder + 1, ~0u, 0);
    bpf_messages_begin();
    users = event_users_bpf__open_and_load();
    if (!users)
        return;
    users->bss->reader = (uint32_t)getpid();
    if (event_users_bpf__attach(users))
        return;
    lock = lock_soon(folder);
    if (lock < 0)
        return;
    sweep_by(folder, lock, users);
    probe_events_unlock(lock);
}

void probe_events_sweep(void)
{
    int folder = kernel_probe_way() == PROBE_WAY_EVENTS ? probe_events_folder() : -1;
    pid_t pid;

    if (folder < 0 || faccessat(folder, FOLDER, F_OK, 0))
        return;
    pid = fork();
    if (!pid) {
        prctl(PR_SET_NAME, "tracectl-sweep");
        setsid(); /* Ctrl-C and the terminal's hang-up are for the recorder */
        sweep(folder);
        _exit(0);
    }
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}
