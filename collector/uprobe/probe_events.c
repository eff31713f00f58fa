/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/uprobe/probe_events.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "collector/uprobe/proxy.h"

#define NAME_BYTES 32
#define LINE_BYTES 128

/* ------------------------------------------------------------------------------------ tracefs */

static int folder_fd;

/* Its only instance, in a place that nobody sees. */
static int mount_apart(void)
{
    AUTO_CLOSE int context = fsopen("tracefs", FSOPEN_CLOEXEC);

    if (context < 0 || fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
        return -errno;
    return fsmount(context, FSMOUNT_CLOEXEC, 0);
}

static void open_folder(void)
{
    static const char *const places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        folder_fd = open(places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder_fd >= 0 && !faccessat(folder_fd, "uprobe_events", W_OK, AT_EACCESS))
            return;
        if (folder_fd >= 0)
            close(folder_fd);
    }
    folder_fd = mount_apart();
    if (folder_fd < 0)
        folder_fd = -errno;
}

int probe_events_folder(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, open_folder);
    return folder_fd;
}

/* Without O_TRUNC: that would delete the events of everybody. */
int probe_events_lock(int folder, bool alone)
{
    int events = openat(folder, "uprobe_events", O_WRONLY | O_APPEND | O_CLOEXEC);

    if (events < 0)
        return -errno;
    while (flock(events, alone ? LOCK_EX | LOCK_NB : LOCK_SH)) {
        int r = -errno;

        if (r == -EINTR)
            continue;
        close(events);
        return r;
    }
    return events;
}

void probe_events_unlock(int events)
{
    flock(events, LOCK_UN); /* another process may have a copy of the descriptor */
    close(events);
}

/* ------------------------------------------------------------------------------------ events */

int probe_events_id(int folder, const char *name, uint64_t *ret_id)
{
    char path[NAME_BYTES + 64], text[32];
    AUTO_CLOSE int fd = -1;
    ssize_t size;

    snprintf(path, sizeof(path), "events/" PROBE_EVENTS_GROUP "/%s/id", name);
    fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
    size = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (size < 0)
        return -errno;
    text[size] = '\0';
    *ret_id = strtoul(text, NULL, 10);
    return 0;
}

static int open_event(int folder, const char *name, pid_t pid)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr), .sample_period = 1};
    uint64_t id = 0;
    int r = probe_events_id(folder, name, &id);

    if (r)
        return r;
    attr.config = id;
    r = (int)syscall(SYS_perf_event_open, &attr, pid ? pid : -1, pid ? -1 : sched_getcpu(), -1,
                     PERF_FLAG_FD_CLOEXEC);
    return r < 0 ? -errno : r;
}

void probe_events_undefine(int events, const char *name)
{
    char line[NAME_BYTES + 32];
    int size = snprintf(line, sizeof(line), "-:" PROBE_EVENTS_GROUP "/%s\n", name);
    ssize_t written = write(events, line, (size_t)size);

    (void)written; /* it stays until it is swept */
}

/* ------------------------------------------------------------------------------------ placing */

struct order {
    const struct placement *placement;
    int folder;
    const char *name;
    const char *text; /* the definition */
    size_t size;
};

/* The perf event, with the program. */
static int use(const struct order *order)
{
    const struct placement *placement = order->placement;
    int fd = open_event(order->folder, order->name, placement->pid);
    int r;

    if (fd < 0 || !ioctl(fd, PERF_EVENT_IOC_SET_BPF, placement->program))
        return fd;
    r = -errno;
    close(fd);
    return r;
}

/* In the proxy: system calls and nothing else. */
static int define_and_use(void *context)
{
    const struct order *order = context;
    int events = probe_events_lock(order->folder, false);
    int r;

    if (events < 0)
        return events;
    r = write(events, order->text, order->size) == (ssize_t)order->size ? 0 : -errno;
    if (!r)
        r = use(order);
    if (r < 0)
        probe_events_undefine(events, order->name);
    probe_events_unlock(events);
    return r;
}

/* Nobody else has had the name. */
static int make_name(char *ret_name, size_t size)
{
    unsigned long long number;

    if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
        return -EIO;
    snprintf(ret_name, size, "e%016llx", number);
    return 0;
}

int probe_events_place(const struct placement *placement)
{
    AUTO_FREE char *text = malloc(placement->count * LINE_BYTES + 1);
    char name[NAME_BYTES];
    struct order order = {
        .placement = placement, .folder = probe_events_folder(), .name = name, .text = text};
    int r = make_name(name, sizeof(name));

    if (!text)
        return -ENOMEM;
    if (r || order.folder < 0)
        return r ? r : order.folder;
    for (size_t i = 0; i < placement->count; i++)
        order.size += (size_t)snprintf(text + order.size, LINE_BYTES,
                                       "p:" PROBE_EVENTS_GROUP "/%s /proc/self/fd/%d:0x%lx c=\\0x%llx\n",
                                       name, placement->file, placement->offsets[i],
                                       placement->cookies ? (unsigned long long)placement->cookies[i] : 0ull);
    return proxy_do(define_and_use, &order);
}
