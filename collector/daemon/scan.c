/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Processes of targets that are not recorded yet. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "collector/daemon/state.h"
#include "collector/process/proc_numbers.h"

#define ANCESTORS_MAX 64

struct kin {
    struct service_identity process;
    pid_t parent;
};

struct candidate {
    struct service_process *process;
    size_t target;
};

struct survey {
    struct kin *kin;
    size_t kin_count, kin_capacity;
    struct candidate *candidates;
    size_t candidate_count, candidate_capacity;
};

static void release_survey(struct survey *survey)
{
    for (size_t i = 0; i < survey->candidate_count; i++)
        free(survey->candidates[i].process);
    free(survey->candidates);
    free(survey->kin);
}

static void add_candidate(struct survey *survey, const struct service_process *process, size_t target)
{
    struct service_process *copy = malloc(sizeof(*copy));

    if (!copy ||
        array_reserve(&survey->candidates, &survey->candidate_capacity, survey->candidate_count + 1)) {
        free(copy);
        return; /* the next scan sees it again */
    }
    *copy = *process;
    survey->candidates[survey->candidate_count++] = (struct candidate){copy, target};
}

static void look_at(const struct service *service, pid_t pid, struct survey *survey)
{
    struct service_process process;

    if (!service_process_read(pid, &process) || service_process_is_own(&process))
        return;
    if (!array_reserve(&survey->kin, &survey->kin_capacity, survey->kin_count + 1))
        survey->kin[survey->kin_count++] = (struct kin){{process.pid, process.started}, process.parent};
    for (size_t i = 0; i < service->config.target_count; i++)
        if (service_target_matches(&service->config.targets[i], &process))
            add_candidate(survey, &process, i);
}

static void survey_processes(const struct service *service, struct survey *survey)
{
    AUTO_PROC_NUMBERS pids;
    pid_t pid;

    proc_numbers_open(&pids, "/proc");
    while ((pid = proc_numbers_next(&pids)) > 0)
        look_at(service, pid, survey);
}

/* NULL: it was not seen. */
static const struct kin *find_kin(const struct survey *survey, pid_t pid)
{
    for (size_t i = 0; i < survey->kin_count; i++)
        if (survey->kin[i].process.pid == pid)
            return &survey->kin[i];
    return NULL;
}

static bool is_same(struct service_identity a, struct service_identity b)
{
    return a.pid == b.pid && a.started == b.started;
}

bool service_has_process(const struct service *service, const char *target, struct service_identity process)
{
    for (size_t i = 0; i < service->worker_count; i++) {
        const struct worker_figures *figures = worker_figures(&service->workers[i]);

        if (strcmp(service->workers[i].target, target) != 0)
            continue;
        if (is_same(process, (struct service_identity){service->workers[i].process.pid,
                                                       service->workers[i].process.started}))
            return true;
        for (size_t p = 0; p < figures->process_count; p++)
            if (is_same(process, figures->processes[p]))
                return true;
    }
    return false;
}

static bool is_candidate(const struct survey *survey, size_t target, pid_t pid)
{
    for (size_t i = 0; i < survey->candidate_count; i++)
        if (survey->candidates[i].target == target && survey->candidates[i].process->pid == pid)
            return true;
    return false;
}

/* Whether the recording of an ancestor has it, or will: recordings follow children. */
static bool has_recorded_ancestor(const struct service *service, const struct survey *survey,
                                  const struct candidate *candidate)
{
    const char *target = service->config.targets[candidate->target].name;
    const struct kin *ancestor = find_kin(survey, candidate->process->parent);

    for (unsigned i = 0; ancestor && i < ANCESTORS_MAX; i++, ancestor = find_kin(survey, ancestor->parent))
        if (is_candidate(survey, candidate->target, ancestor->process.pid) ||
            service_has_process(service, target, ancestor->process))
            return true;
    return false;
}

static bool has_recording(const struct service *service, const char *target)
{
    for (size_t i = 0; i < service->worker_count; i++)
        if (!strcmp(service->workers[i].target, target))
            return true;
    return false;
}

/* A process without a recorded ancestor may yet be recorded: its parent has ended, as that of a service that
 * goes into the background, and the recorder has not told yet. Beside another recording of the target it has
 * to be there for two scans. */
static bool is_known_newcomer(struct service *service, const struct candidate *candidate)
{
    for (size_t i = 0; i < service->newcomer_count; i++) {
        const struct newcomer *newcomer = &service->newcomers[i];

        if (newcomer->pid == candidate->process->pid && newcomer->started == candidate->process->started &&
            newcomer->target == candidate->target)
            return newcomer->round + 2 <= service->round;
    }
    if (!array_reserve(&service->newcomers, &service->newcomer_capacity, service->newcomer_count + 1))
        service->newcomers[service->newcomer_count++] = (struct newcomer){
            candidate->process->pid, candidate->process->started, candidate->target, service->round};
    return false;
}

static void forget_newcomers(struct service *service, const struct survey *survey)
{
    size_t kept = 0;

    for (size_t i = 0; i < service->newcomer_count; i++)
        if (is_candidate(survey, service->newcomers[i].target, service->newcomers[i].pid))
            service->newcomers[kept++] = service->newcomers[i];
    service->newcomer_count = kept;
}

static void forget_rests(struct service *service, const struct survey *survey)
{
    size_t kept = 0;

    for (size_t i = 0; i < service->rest_count; i++)
        if (find_kin(survey, service->rests[i].pid))
            service->rests[kept++] = service->rests[i];
    service->rest_count = kept;
}

void service_scan(struct service *service)
{
    const uint64_t now = clock_ns(CLOCK_MONOTONIC);
    struct survey survey = {0};

    service->round++;
    survey_processes(service, &survey);
    for (size_t i = 0; i < survey.candidate_count; i++) {
        const struct candidate *candidate = &survey.candidates[i];
        const struct service_target *target = &service->config.targets[candidate->target];
        const struct service_identity identity = {candidate->process->pid, candidate->process->started};

        if (service_rests(service, candidate->process, now) ||
            service_has_process(service, target->name, identity) ||
            has_recorded_ancestor(service, &survey, candidate) ||
            (has_recording(service, target->name) && !is_known_newcomer(service, candidate)))
            continue;
        service_begin(service, target, candidate->process);
    }
    forget_newcomers(service, &survey);
    service_forget_excluded(service);
    forget_rests(service, &survey);
    release_survey(&survey);
}
