/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/foreign_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "base/aside.h"
#include "base/cleanup.h"
#include "base/error.h"

#define BLOCK 512u /* of st_blocks, whatever the file system's own blocks are */
/* File systems that compress (btrfs, zfs, squashfs) hold at most so many bytes of a program in one on disk.
 */
#define PACKED_MOST 16u
/* Small files may lie in their inodes. */
#define ALWAYS_PLAUSIBLE ((uint64_t)1 << 20)

/* ------------------------------------------------------------------------------------ opening */

/* What is to be opened, or looked at. */
struct place {
    char root[64]; /* "": that of this process */
    char path[PATH_MAX];
    bool served_too; /* by a program */
};

static int reach(const struct place *place)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
    int fd;

    if (!*place->root)
        fd = open(place->path, O_PATH | O_CLOEXEC);
    else {
        AUTO_CLOSE int root = open(place->root, O_PATH | O_DIRECTORY | O_CLOEXEC);

        fd = root < 0 ? -1 : (int)syscall(SYS_openat2, root, place->path, &how, sizeof(how));
    }
    return fd < 0 ? -errno : fd;
}

/* An aside_work; when a program serves the file it is not opened, and the reply is the device. */
static int open_place(const void *request, void *reply, size_t room, int *ret_fd)
{
    const struct place *place = request;
    AUTO_CLOSE int fd = reach(place);
    struct statfs system;
    struct statx known;
    struct stat file;
    char link[64];

    (void)room;
    if (fd < 0)
        return fd;
    if (!place->served_too) {
        if (fstatfs(fd, &system) || statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &known))
            return -errno;
        *(dev_t *)reply = makedev(known.stx_dev_major, known.stx_dev_minor);
        if (system.f_type == FUSE_SUPER_MAGIC)
            return sizeof(dev_t);
    }
    if (fstat(fd, &file))
        return -errno;
    if (!S_ISREG(file.st_mode))
        return -EINVAL;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    *ret_fd = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    return *ret_fd < 0 ? -errno : 0;
}

/* An aside_work. */
static int look_at_place(const void *request, void *reply, size_t room, int *ret_fd)
{
    const struct place *place = request;

    (void)room;
    (void)ret_fd;
    return stat(place->path, reply) ? -errno : (int)sizeof(struct stat);
}

/* Whether root's program serves the file system, or the machine's host: it is mounted here, for no user. */
static bool is_served_by_root(dev_t device)
{
    AUTO_FCLOSE FILE *mounts = fopen("/proc/self/mountinfo", "re");
    AUTO_FREE char *line = NULL;
    size_t size = 0;
    bool found = false;

    while (mounts && !found && getline(&line, &size, mounts) > 0) {
        const char *type = strstr(line, " - ");
        unsigned major, minor;

        if (type && sscanf(line, "%*s %*s %u:%u", &major, &minor) == 2 && makedev(major, minor) == device)
            found = !strncmp(type, " - virtiofs ", 12) || strstr(type, ",user_id=0,");
    }
    return found;
}

static bool is_of_a_process(const char *path)
{
    return !strncmp(path, "/proc/", 6) && path[6] >= '0' && path[6] <= '9';
}

static int open_aside(struct place *place)
{
    dev_t device = 0;
    int fd = -1;
    struct aside_job job = {.work = open_place,
                            .request = place,
                            .request_size = sizeof(*place),
                            .reply = &device,
                            .room = sizeof(device),
                            .ret_fd = &fd};
    int r = aside_do(&job);

    if (r > 0) {
        if (!is_served_by_root(device))
            return -EREMOTE;
        place->served_too = true;
        r = aside_do(&job);
    }
    return r < 0 ? r : fd;
}

int foreign_file_open(const char *path)
{
    struct place place = {0};
    dev_t device = 0;
    int fd = -1, r;

    if (strlen(path) >= sizeof(place.path))
        return -ENAMETOOLONG;
    strcpy(place.path, path);
    if (is_of_a_process(path))
        return open_aside(&place);
    place.served_too = true; /* the user's own choice */
    r = open_place(&place, &device, sizeof(device), &fd);
    return r ? r : fd;
}

int foreign_file_open_below(const char *root, const char *path)
{
    struct place place = {0};

    if (!*root)
        return foreign_file_open(path);
    if (strlen(root) >= sizeof(place.root) || strlen(path) >= sizeof(place.path))
        return -ENAMETOOLONG;
    strcpy(place.root, root);
    strcpy(place.path, path);
    return open_aside(&place);
}

int foreign_file_stat(const char *path, struct stat *ret_file)
{
    struct place place = {0};
    struct aside_job job = {.work = look_at_place,
                            .request = &place,
                            .request_size = sizeof(place),
                            .reply = ret_file,
                            .room = sizeof(*ret_file)};
    int r;

    if (strlen(path) >= sizeof(place.path))
        return -ENAMETOOLONG;
    strcpy(place.path, path);
    r = aside_do(&job);
    return r < 0 ? r : 0;
}

/* ------------------------------------------------------------------------------------ what it holds */

/* Whether the file is one hole. */
static bool is_hole(int fd)
{
    off_t data = lseek(fd, 0, SEEK_DATA);
    bool hole = data < 0 && errno == ENXIO;

    lseek(fd, 0, SEEK_SET);
    return hole;
}

uint64_t foreign_file_plausible(int fd, const struct stat *file)
{
    uint64_t size = file->st_size > 0 ? (uint64_t)file->st_size : 0;
    uint64_t blocks = file->st_blocks > 0 ? (uint64_t)file->st_blocks : 0;
    uint64_t most = ALWAYS_PLAUSIBLE;

    if (blocks > size / BLOCK)
        return size;
    if (!blocks && !is_hole(fd))
        return size; /* a file system that does not tell */
    most += blocks * BLOCK * PACKED_MOST;
    return size < most ? size : most;
}

int foreign_file_read(const char *path, const char *doing, int *ret_fd, struct error *err)
{
    AUTO_CLOSE int fd = foreign_file_open(path);
    struct stat file;

    if (fd == -EINVAL)
        return error_say(err, -EINVAL, "%s %s: not a regular file (copy what it gives into one)", doing,
                         path);
    if (fd < 0)
        return error_set(err, fd, NULL, "%s %s", doing, path);
    if (fstat(fd, &file))
        return error_set(err, -errno, NULL, "%s %s", doing, path);
    if (foreign_file_plausible(fd, &file) < (uint64_t)file.st_size)
        return error_say(err, -EFBIG,
                         "%s %s: nearly all of its %lld bytes are a hole (is the file complete?)", doing,
                         path, (long long)file.st_size);
    *ret_fd = take_fd(&fd);
    return 0;
}

int foreign_file_stream(const char *path, const char *doing, FILE **ret_file, struct error *err)
{
    AUTO_CLOSE int fd = -1;
    int r = foreign_file_read(path, doing, &fd, err);

    if (r < 0)
        return r;
    *ret_file = fdopen(fd, "r");
    if (!*ret_file)
        return error_set(err, -errno, NULL, "%s %s", doing, path);
    take_fd(&fd);
    return 0;
}
