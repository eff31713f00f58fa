/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/common/output_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"

/* ------------------------------------------------------------------------------------------ what is read */

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* The file's path with the links of its folders resolved, but not its own; false: the folder does not exist.
 */
static bool resolve_folder(const char *path, char *ret_path, size_t size)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    AUTO_FREE char *folder = slash == path ? strdup("/")
                             : slash       ? strndup(path, (size_t)(slash - path))
                                           : NULL;
    AUTO_FREE char *resolved = realpath(folder ? folder : ".", NULL);
    int length =
        resolved ? snprintf(ret_path, size, "%s/%s", strcmp(resolved, "/") ? resolved : "", name) : -1;

    return length > 0 && (size_t)length < size;
}

/* Whether SQLite would take the file of this name for part of the database: what is there, or what may come.
 */
static bool is_beside(const char *resolved, const char *database)
{
    static const char *const suffixes[] = {"-wal", "-shm", "-journal"};
    size_t length = strlen(database);

    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
        if (!strncmp(resolved, database, length) && !strcmp(resolved + length, suffixes[i]))
            return true;
    return false;
}

/* What this process has opened itself is closed by exec; what the user handed over (`3<file`) is not ours. */
static bool is_own_descriptor(int fd)
{
    int flags = fcntl(fd, F_GETFD);

    return fd > STDERR_FILENO && flags >= 0 && flags & FD_CLOEXEC;
}

static bool descriptor_reads(int fd, const struct stat *output, const char *resolved)
{
    char link[64], name[PATH_MAX];
    struct stat status;
    ssize_t length;

    if (!is_own_descriptor(fd) || fstat(fd, &status) || !S_ISREG(status.st_mode))
        return false;
    if (output && is_same_file(&status, output))
        return true;
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    length = readlink(link, name, sizeof(name) - 1);
    if (length <= 0)
        return false;
    name[length] = '\0';
    return *resolved && is_beside(resolved, name);
}

/* Whether the file belongs to what this process reads. */
static bool output_file_is_read(const char *path)
{
    DIR *descriptors = opendir("/proc/self/fd");
    char resolved[PATH_MAX] = "";
    struct dirent *entry;
    struct stat status;
    bool exists = stat(path, &status) == 0, found = false;

    if (!resolve_folder(path, resolved, sizeof(resolved)))
        *resolved = '\0';
    while (descriptors && !found && (entry = readdir(descriptors)))
        found = descriptor_reads(atoi(entry->d_name), exists ? &status : NULL, resolved);
    if (descriptors)
        closedir(descriptors);
    return found;
}

/* ------------------------------------------------------------------------------------------ opening */

static int cannot_write(const char *path, int code, struct error *err)
{
    return error_set(err, code, NULL, "cannot write %s", path);
}

/* A unique name beside the file; NULL: no memory. */
static char *temporary_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash - path) + 1 : 0;
    uint64_t random = 0;
    char *name;

    if (getrandom(&random, sizeof(random), 0) != sizeof(random) ||
        asprintf(&name, "%.*s.tracectl.%016llx", folder, path, (unsigned long long)random) < 0)
        return NULL;
    return name;
}

/* A new file for what will be at `path`: without a name where the file system can, so that nothing stays
 * behind when this process is killed. Returns a descriptor, or -1. */
static int open_new(struct output_file *file, const char *path)
{
    AUTO_FREE char *folder = strdup(path), *name = temporary_name(path);
    char *slash = folder ? strrchr(folder, '/') : NULL;
    int fd;

    if (!slash || !name)
        return -1;
    slash[slash == folder] = '\0';
    fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT))
        return fd;
    fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0)
        file->temporary = take_pointer(name);
    return fd;
}

/* Gives the new file what the old one has. */
static bool take_over(int fd, const struct stat *old)
{
    struct stat made;

    return fstat(fd, &made) == 0 &&
           ((made.st_uid == old->st_uid && made.st_gid == old->st_gid) ||
            fchown(fd, old->st_uid, old->st_gid) == 0) &&
           fchmod(fd, old->st_mode & 07777) == 0;
}

static bool is_standard_output(const struct stat *status)
{
    struct stat other;

    return (!fstat(STDOUT_FILENO, &other) && is_same_file(status, &other)) ||
           (!fstat(STDERR_FILENO, &other) && is_same_file(status, &other));
}

/* Begins what is to replace `path`, which is a regular file or nothing. False: it has to be written directly,
 * as where the folder cannot be written to but the file can. */
static bool begin_replacing(struct output_file *file, const char *path, const struct stat *old)
{
    char resolved[PATH_MAX];
    int fd;

    if (old ? !realpath(path, resolved) : !resolve_folder(path, resolved, sizeof(resolved)))
        return false;
    /* Which one may be written to is the file's own matter. */
    if (old && access(path, W_OK))
        return false;
    fd = open_new(file, resolved);
    if (fd < 0)
        return false;
    if (!old || take_over(fd, old)) {
        file->path = strdup(resolved);
        file->stream = file->path ? fdopen(fd, "w") : NULL;
    }
    if (file->stream)
        return true;
    close(fd);
    if (file->temporary)
        unlink(file->temporary);
    free(take_pointer(file->temporary));
    free(take_pointer(file->path));
    return false;
}

int output_file_open(struct output_file *file, const char *path, struct error *err)
{
    struct stat status;
    bool exists = stat(path, &status) == 0;
    bool dangling = !exists && lstat(path, &(struct stat){0}) == 0;

    *file = (struct output_file){.called = path};
    if (output_file_is_read(path))
        return error_say(err, -EINVAL,
                         "cannot write %s: it belongs to the store that is being read (name another file)",
                         path);
    if (*path && !dangling && !(exists && (!S_ISREG(status.st_mode) || is_standard_output(&status))) &&
        begin_replacing(file, path, exists ? &status : NULL))
        return 0;
    file->stream = fopen(path, "we");
    return file->stream ? 0 : cannot_write(path, -errno, err);
}

/* ------------------------------------------------------------------------------------------ closing */

/* The complete file takes its name. */
static int replace(struct output_file *file)
{
    char link[64];

    if (!file->temporary) {
        file->temporary = temporary_name(file->path);
        if (!file->temporary)
            return -ENOMEM;
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fileno(file->stream));
        if (linkat(AT_FDCWD, link, AT_FDCWD, file->temporary, AT_SYMLINK_FOLLOW)) {
            free(take_pointer(file->temporary));
            return -errno;
        }
    }
    return rename(file->temporary, file->path) ? -errno : 0;
}

int output_file_close(struct output_file *file, int r, struct error *err)
{
    int code = 0;
    bool replaced = false;

    if (!file->stream)
        return r;
    errno = 0;
    if (fflush(file->stream) || ferror(file->stream)) {
        code = errno ? -errno : -EIO;
        r = 0; /* this is why the writing ended */
    }
    if (file->path && r >= 0 && !code) {
        code = replace(file);
        replaced = !code;
    }
    if (file->temporary && !replaced)
        unlink(file->temporary);
    errno = 0;
    if (fclose(take_pointer(file->stream)) && !code)
        code = errno ? -errno : -EIO;
    free(take_pointer(file->temporary));
    free(take_pointer(file->path));
    if (r < 0)
        return r;
    return code ? cannot_write(file->called, code, err) : 0;
}
