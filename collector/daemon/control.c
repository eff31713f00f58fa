/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/daemon/control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"

#define CONTROL_WORD 128
#define SERVER_PATIENCE_US 200000
#define CLIENT_PATIENCE_S 10
#define ANSWER_MAX ((size_t)64 << 20)

static int address_of(const char *path, struct sockaddr_un *ret_address, struct error *err)
{
    *ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(ret_address->sun_path))
        return error_say(err, -ENAMETOOLONG, "socket %s: the path is too long (at most %zu bytes)", path,
                         sizeof(ret_address->sun_path) - 1);
    memcpy(ret_address->sun_path, path, strlen(path) + 1);
    return 0;
}

static void be_patient(int fd, time_t seconds, suseconds_t us)
{
    const struct timeval patience = {seconds, us};

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
}

/* Whether a process listens there. */
static bool is_alive(const struct sockaddr_un *address)
{
    AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    return fd >= 0 && (!connect(fd, (const struct sockaddr *)address, sizeof(*address)) || errno == EAGAIN);
}

int control_listen(const char *path, struct error *err)
{
    AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un address;
    struct stat status;
    mode_t mask;
    int r = address_of(path, &address, err);

    if (r)
        return r;
    if (fd < 0)
        return error_set(err, -errno, NULL, "cannot create a socket");
    if (!lstat(path, &status)) {
        if (!S_ISSOCK(status.st_mode))
            return error_say(err, -EEXIST,
                             "socket %s: the path is in use by something else (choose "
                             "another path)",
                             path);
        if (is_alive(&address))
            return error_say(err, -EADDRINUSE, "socket %s: another daemon listens there (stop it first)",
                             path);
        unlink(path);
    }
    mask = umask(0177);
    r = bind(fd, (const struct sockaddr *)&address, sizeof(address)) || listen(fd, 16) ? -errno : 0;
    umask(mask);
    return r ? error_set(err, r, "does its folder exist?", "cannot listen on %s", path) : take_fd(&fd);
}

static bool is_trusted(int fd)
{
    struct ucred peer = {0};
    socklen_t size = sizeof(peer);

    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) && (!peer.uid || peer.uid == geteuid());
}

static void send_all(int fd, const char *text)
{
    size_t left = strlen(text);
    ssize_t sent;

    for (; left; left -= (size_t)sent, text += sent) {
        sent = send(fd, text, left, MSG_NOSIGNAL);
        if (sent <= 0)
            return;
    }
}

bool control_serve(int listener, char *(*answer)(void *context, const char *word), void *context)
{
    AUTO_CLOSE int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    AUTO_FREE char *text = NULL;
    char word[CONTROL_WORD];
    ssize_t got;

    if (fd < 0)
        return true;
    if (!is_trusted(fd))
        return false;
    be_patient(fd, 0, SERVER_PATIENCE_US);
    got = recv(fd, word, sizeof(word) - 1, 0);
    if (got <= 0)
        return true;
    word[got] = '\0';
    word[strcspn(word, "\r\n")] = '\0';
    text = answer(context, word);
    if (text)
        send_all(fd, text);
    return true;
}

static int read_all(int fd, const char *path, char **ret_answer, struct error *err)
{
    AUTO_FREE char *text = NULL;
    size_t size = 0;
    char part[4096];
    ssize_t got;

    while ((got = recv(fd, part, sizeof(part), 0)) > 0) {
        char *grown = size < ANSWER_MAX ? realloc(text, size + (size_t)got + 1) : NULL;

        if (!grown)
            return error_no_memory(err);
        text = grown;
        memcpy(text + size, part, (size_t)got);
        size += (size_t)got;
        text[size] = '\0';
    }
    if (got < 0 && errno != ECONNRESET)
        return error_set(err, -errno, "is the daemon stopped?", "no answer from %s", path);
    if (got < 0 || !text)
        return error_say(err, -EACCES, "%s: no answer (run as root, or as the daemon's user)", path);
    *ret_answer = take_pointer(text);
    return 0;
}

int control_ask(const char *path, const char *word, char **ret_answer, struct error *err)
{
    AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address;
    char line[CONTROL_WORD];
    int r = address_of(path, &address, err);

    if (r)
        return r;
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)))
        return error_set(err, -errno, "is the daemon running?", "cannot reach the daemon at %s", path);
    be_patient(fd, CLIENT_PATIENCE_S, 0);
    snprintf(line, sizeof(line), "%s\n", word);
    send_all(fd, line);
    return read_all(fd, path, ret_answer, err);
}
