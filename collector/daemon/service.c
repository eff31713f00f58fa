/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "collector/daemon/service.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "collector/daemon/control.h"
#include "collector/daemon/log.h"
#include "collector/daemon/state.h"
#include "collector/process/pid_namespace.h"

#define LOOK_NS ((uint64_t)1000000000)
#define MS_NS 1000000u

/* ------------------------------------------------------------------------------------ configuration */

/* A store that others may read would show them what is added to it. */
static int check_store(const struct service_config *config, struct error *err)
{
    struct stat status;

    if (stat(config->store, &status))
        return errno == ENOENT ? 0 : error_set(err, -errno, NULL, "cannot read store %s", config->store);
    if (!S_ISREG(status.st_mode))
        return error_say(err, -EINVAL, "store %s: not a file (choose another path)", config->store);
    if (status.st_mode & (S_IRWXG | S_IRWXO))
        return error_say(err, -EPERM,
                         "store %s: readable by other users (chmod 600, also its -wal and "
                         "-shm files)",
                         config->store);
    return 0;
}

static void stop_all(struct service *service, const char *why)
{
    for (size_t i = 0; i < service->worker_count; i++)
        service_stop_worker(service, &service->workers[i], why);
}

/* Recordings of targets that are the same continue. What concerns all of them ends all of them: they begin
 * again. */
static void end_what_has_changed(struct service *service, const struct service_config *old)
{
    const struct service_config *new = &service->config;

    if (strcmp(old->store, new->store) != 0 || old->memory_bytes != new->memory_bytes ||
        old->store_bytes != new->store_bytes || old->max_recordings != new->max_recordings) {
        stop_all(service, "reload");
        return;
    }
    for (size_t i = 0; i < service->worker_count; i++) {
        const char *name = service->workers[i].target;
        const struct service_target *target = service_config_find(new, name);

        if (!target || !service_target_same(service_config_find(old, name), target))
            service_stop_worker(service, &service->workers[i], "reload");
    }
}

static void reload(struct service *service)
{
    struct service_config old = service->config, new;
    struct error err = {0};
    int r = service_config_read(service->config_path, &new, &err);

    if (!r) {
        if (strcmp(new.socket, old.socket) != 0)
            r = error_say(&err, -EINVAL,
                          "%s: the socket setting has changed (restart the daemon "
                          "to apply it)",
                          service->config_path);
        else
            r = check_store(&new, &err);
        if (r)
            service_config_release(&new);
    }
    if (r) {
        service->counters.bad_reloads++;
        service_log("error", "reload-failed", "why", err.message, "kept", "the old configuration");
        return;
    }
    service->config = new;
    service->newcomer_count = 0; /* targets have new numbers */
    end_what_has_changed(service, &old);
    service_config_release(&old);
    service->counters.reloads++;
    service_log("info", "reloaded", "targets", service_number((long long)new.target_count));
}

/* ------------------------------------------------------------------------------------ events */

static int open_signals(struct error *err)
{
    sigset_t set;
    int fd;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    if (sigprocmask(SIG_BLOCK, &set, NULL))
        return error_set(err, -errno, NULL, "cannot block signals");
    signal(SIGPIPE, SIG_IGN);
    fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? error_set(err, -errno, NULL, "cannot wait for signals") : fd;
}

static void read_signals(struct service *service)
{
    struct signalfd_siginfo info;

    while (read(service->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo == SIGHUP && !service->stopping)
            reload(service);
        if (info.ssi_signo != SIGTERM && info.ssi_signo != SIGINT)
            continue;
        if (!service->stopping)
            service_log("info", "stopping", "recordings", service_number((long long)service->worker_count));
        service->stopping = true;
        stop_all(service, "the daemon ends");
    }
    service_reap(service); /* signals of one kind may have become one */
}

static void work_if_due(struct service *service)
{
    const uint64_t now = clock_ns(CLOCK_MONOTONIC);

    if (now - service->sampled_ns >= LOOK_NS)
        service_sample_limits(service);
    if (service->stopping || now - service->scanned_ns < service->config.scan_ns)
        return;
    service->scanned_ns = now;
    service_scan(service);
}

/* Until the next scan or look is due. */
static int wait_ms(const struct service *service)
{
    const uint64_t now = clock_ns(CLOCK_MONOTONIC);
    const uint64_t scan = service->scanned_ns + service->config.scan_ns, look = service->sampled_ns + LOOK_NS;
    const uint64_t next = !service->stopping && scan < look ? scan : look;

    return next <= now ? 0 : (int)((next - now) / MS_NS) + 1;
}

static void serve_until_stopped(struct service *service)
{
    struct pollfd fds[] = {{service->signals, POLLIN, 0}, {service->listener, POLLIN, 0}};

    service_scan(service);
    while (!service->stopping || service->worker_count) {
        if (poll(fds, 2, wait_ms(service)) > 0) {
            if (fds[0].revents)
                read_signals(service);
            if (fds[1].revents && !control_serve(service->listener, service_answer, service)) {
                service->counters.denied++;
                service_log("warning", "denied", "why", "a client of another user");
            }
        }
        work_if_due(service);
    }
}

/* Core files would show what targets do. */
static void be_private(void)
{
    const struct rlimit none = {0, 0};

    umask(0077);
    setrlimit(RLIMIT_CORE, &none);
}

static int begin(struct service *service, struct error *err)
{
    int r = service_config_read(service->config_path, &service->config, err);

    if (!r)
        r = check_store(&service->config, err);
    if (r)
        return r;
    service->listener = control_listen(service->config.socket, err);
    if (service->listener < 0)
        return service->listener;
    service->signals = open_signals(err);
    return service->signals < 0 ? service->signals : 0;
}

int service_run(const char *config_path, struct error *err)
{
    const uint64_t now = clock_ns(CLOCK_MONOTONIC);
    struct service service = {.config_path = config_path,
                              .pid = getpid(),
                              .signals = -1,
                              .listener = -1,
                              .begun_ns = now,
                              .scanned_ns = now,
                              .sampled_ns = now};
    int r = pid_namespace_check(err);

    be_private();
    if (!r)
        r = begin(&service, err);
    if (!r) {
        service_log("info", "started", "version", TRACECTL_VERSION, "targets",
                    service_number((long long)service.config.target_count), "store", service.config.store);
        serve_until_stopped(&service);
        unlink(service.config.socket);
        service_log("info", "stopped");
    }
    if (service.listener >= 0)
        close(service.listener);
    if (service.signals >= 0)
        close(service.signals);
    free(service.workers);
    free(service.rests);
    free(service.newcomers);
    service_config_release(&service.config);
    return r;
}
