/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the recordings may take together. Beyond that the one that takes most ends, cleanly, and rests. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "collector/daemon/log.h"
#include "collector/daemon/state.h"

#define SECOND_NS ((uint64_t)1000000000)
#define SAMPLES_OVER_CPU 10 /* in a row: a burst is none */
#define CPU_WEIGHT 0.2      /* of the last second */

/* Processor time and memory that a process has of its own. */
static bool sample_process(pid_t pid, uint64_t *ret_cpu_ns, uint64_t *ret_memory)
{
    char path[64], text[1024];
    unsigned long long user, system, resident, shared;
    FILE *file;
    const char *rest;
    bool good;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (!file)
        return false;
    good = fgets(text, sizeof(text), file) && (rest = strrchr(text, ')')) &&
           sscanf(rest + 1, " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu %llu", &user, &system) == 2;
    fclose(file);
    snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    file = good ? fopen(path, "re") : NULL;
    if (!file)
        return false;
    good = fscanf(file, "%*s %llu %llu", &resident, &shared) == 2;
    fclose(file);
    *ret_cpu_ns = (user + system) * (SECOND_NS / (uint64_t)sysconf(_SC_CLK_TCK));
    *ret_memory = (resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
    return good;
}

static uint64_t file_bytes(const char *path, const char *suffix)
{
    char name[4096];
    struct stat status;

    snprintf(name, sizeof(name), "%s%s", path, suffix);
    return stat(name, &status) ? 0 : (uint64_t)status.st_blocks * 512;
}

/* The recording that takes most, by what it has used since the last look, or by memory; NULL: all are ending.
 */
static struct worker *largest(struct service *service, const uint64_t *amounts)
{
    struct worker *worker = NULL;
    uint64_t most = 0;

    for (size_t i = 0; i < service->worker_count; i++) {
        if (service->workers[i].stopping || amounts[i] < most)
            continue;
        most = amounts[i];
        worker = &service->workers[i];
    }
    return worker;
}

static void end_largest(struct service *service, const uint64_t *amounts, uint64_t *counter, const char *why)
{
    struct worker *worker = largest(service, amounts);

    if (!worker)
        return;
    ++*counter;
    worker->over = true;
    service_stop_worker(service, worker, why);
}

void service_sample_limits(struct service *service)
{
    const struct service_config *config = &service->config;
    const uint64_t now = clock_ns(CLOCK_MONOTONIC);
    const double seconds = (double)(now - service->sampled_ns) / 1e9;
    uint64_t cpu[256] = {0}, memory[256] = {0}, age[256] = {0}, all_cpu = 0;

    service->sampled_ns = now;
    service->memory_bytes = 0;
    for (size_t i = 0; i < service->worker_count && i < 256; i++) {
        struct worker *worker = &service->workers[i];
        uint64_t cpu_ns = worker->cpu_ns;

        if (!sample_process(worker->pid, &cpu_ns, &memory[i]))
            continue;
        cpu[i] = cpu_ns - worker->cpu_ns;
        age[i] = now - worker->begun_ns;
        worker->cpu_ns = cpu_ns;
        worker->memory_bytes = memory[i];
        all_cpu += cpu[i];
        service->memory_bytes += memory[i];
    }
    service->cpu += CPU_WEIGHT * ((double)all_cpu / 1e9 / seconds - service->cpu);
    service->over_cpu = service->cpu > config->cpu ? service->over_cpu + 1 : 0;
    service->store_bytes =
        file_bytes(config->store, "") + file_bytes(config->store, "-wal") + file_bytes(config->store, "-shm");
    if (service->over_cpu >= SAMPLES_OVER_CPU) {
        service->over_cpu = 0;
        end_largest(service, cpu, &service->counters.stopped_cpu, "cpu-limit");
    }
    if (service->memory_bytes > config->memory_bytes)
        end_largest(service, memory, &service->counters.stopped_memory, "memory-limit");
    /* Runs that continue are never deleted: the oldest ends, so that it can be. */
    if (service->store_bytes > config->store_bytes)
        end_largest(service, age, &service->counters.stopped_store, "store-limit");
}
