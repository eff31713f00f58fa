/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The daemon's recordings: their beginning and their end. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "collector/daemon/log.h"
#include "collector/daemon/state.h"

#define SECOND_NS ((uint64_t)1000000000)
#define REST_NS (2 * SECOND_NS) /* after the first failure; doubled with each */
#define REST_DOUBLINGS 7
#define SLICE_NS (SECOND_NS / 2)

static void release_worker(struct worker *worker)
{
    munmap(worker->page, sizeof(*worker->page));
    free(worker->target);
}

static uint64_t min_ns(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* In the child: nothing of the daemon's stays open but its log. */
static int work(const struct service *service, const struct service_target *target,
                const struct worker *worker)
{
    const struct worker_order order = {
        .config = &service->config,
        .target = target,
        .process = &worker->process,
        .page = worker->page,
        .daemon = service->pid,
        .slice_ns = min_ns(SLICE_NS, service->config.scan_ns / 2),
    };

    close(service->listener);
    close(service->signals);
    return worker_run(&order);
}

void service_begin(struct service *service, const struct service_target *target,
                   const struct service_process *process)
{
    struct worker worker = {.process = *process, .begun_ns = clock_ns(CLOCK_MONOTONIC)};

    if (!service_has_place(service, target, process))
        return;
    worker.page = mmap(NULL, sizeof(*worker.page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (worker.page == MAP_FAILED)
        return; /* the next scan tries again */
    worker.target = strdup(target->name);
    worker.pid = -1;
    if (worker.target &&
        !array_reserve(&service->workers, &service->worker_capacity, service->worker_count + 1))
        worker.pid = fork();
    if (worker.pid < 0) {
        release_worker(&worker);
        return;
    }
    if (!worker.pid)
        _exit(work(service, target, &worker));
    service->workers[service->worker_count++] = worker;
    service->counters.begun++;
    service_log("info", "begun", "target", target->name, "pid", service_number(process->pid), "path",
                process->path, "recorder", service_number(worker.pid));
}

void service_stop_worker(struct service *service, struct worker *worker, const char *why)
{
    if (worker->stopping)
        return;
    worker->stopping = true;
    kill(worker->pid, SIGTERM);
    service_log("info", "ending", "target", worker->target, "recorder", service_number(worker->pid), "why",
                why);
}

/* ------------------------------------------------------------------------------------ rests */

static struct rest *find_rest(const struct service *service, const struct service_process *process)
{
    for (size_t i = 0; i < service->rest_count; i++)
        if (service->rests[i].pid == process->pid && service->rests[i].started == process->started)
            return &service->rests[i];
    return NULL;
}

bool service_rests(const struct service *service, const struct service_process *process, uint64_t now)
{
    const struct rest *rest = find_rest(service, process);

    return rest && now < rest->until_ns;
}

/* Longer with every failure, so that a target that cannot be recorded costs nothing. */
static void send_to_rest(struct service *service, const struct service_process *process)
{
    struct rest *rest = find_rest(service, process);

    if (!rest) {
        if (array_reserve(&service->rests, &service->rest_capacity, service->rest_count + 1))
            return;
        rest = &service->rests[service->rest_count++];
        *rest = (struct rest){.pid = process->pid, .started = process->started};
    }
    if (rest->failures < REST_DOUBLINGS)
        rest->failures++;
    rest->until_ns = clock_ns(CLOCK_MONOTONIC) + (REST_NS << rest->failures);
}

static void end_rest(struct service *service, const struct service_process *process)
{
    struct rest *rest = find_rest(service, process);

    if (rest)
        *rest = service->rests[--service->rest_count];
}

/* ------------------------------------------------------------------------------------ ends */

static bool has_failed(int status)
{
    return !WIFEXITED(status) || WEXITSTATUS(status) == WORKER_FAILED;
}

static void say_end(struct service *service, struct worker *worker, int status)
{
    const struct worker_figures *figures = worker_figures(worker);
    const char *run = service_number(figures->run);

    worker->page->error[sizeof(worker->page->error) - 1] = '\0';
    if (!has_failed(status)) {
        service->counters.ended++;
        if (WEXITSTATUS(status) == WORKER_GONE)
            service_log("info", "gone", "target", worker->target, "pid", service_number(worker->process.pid),
                        "run", run, "why", worker->page->error);
        else
            service_log("info", "ended", "target", worker->target, "pid", service_number(worker->process.pid),
                        "run", run);
        return;
    }
    service->counters.failed++;
    if (WIFSIGNALED(status))
        service_log("error", "recorder-died", "target", worker->target, "signal",
                    service_number(WTERMSIG(status)), "run", run);
    else
        service_log("error", "failed", "target", worker->target, "pid", service_number(worker->process.pid),
                    "run", run, "why", worker->page->error);
}

void service_reap(struct service *service)
{
    for (size_t i = 0; i < service->worker_count;) {
        struct worker *worker = &service->workers[i];
        struct rusage usage;
        int status;

        if (wait4(worker->pid, &status, WNOHANG, &usage) != worker->pid) {
            i++;
            continue;
        }
        service->past_cpu_ns += (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * SECOND_NS +
                                (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
        say_end(service, worker, status);
        if (has_failed(status) || worker->over)
            send_to_rest(service, &worker->process);
        else
            end_rest(service, &worker->process);
        release_worker(worker);
        *worker = service->workers[--service->worker_count];
    }
}
