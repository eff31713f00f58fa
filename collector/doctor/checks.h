/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The single checks of `tracectl doctor`. Each fills in `ok` and `detail` by trying the thing itself, in a
 * child process of its own: none relies on another one.
 */
#ifndef TRACECTL_COLLECTOR_DOCTOR_CHECKS_H
#define TRACECTL_COLLECTOR_DOCTOR_CHECKS_H

#include "collector/doctor/self_test.h"

typedef void (*self_check_function)(struct self_check *check);

/* Fills in `ok` and the formatted `detail`. */
void self_check_say(struct self_check *check, bool ok, const char *detail, ...)
    __attribute__((format(printf, 3, 4)));

/* bpf_checks.c: says why the trial could not be made, so that the answer is not known. */
struct trial;
void self_check_not_tried(struct self_check *check, const struct trial *trial, int code);

/* host_checks.c: what stands in files and needs no trial */
void check_kernel(struct self_check *check);
void check_libraries(struct self_check *check);
void check_btf(struct self_check *check);
void check_user_namespace(struct self_check *check);
void check_seccomp(struct self_check *check);

/* privilege_checks.c */
void check_privileges(struct self_check *check);
void check_other_users(struct self_check *check);
void check_map_files(struct self_check *check);
void check_ptrace(struct self_check *check);
void check_tracer(struct self_check *check);

/* bpf_checks.c: one program each */
void check_bpf(struct self_check *check);
void check_programs(struct self_check *check);
void check_ring(struct self_check *check);
void check_tracepoints(struct self_check *check);
void check_all_processes(struct self_check *check);
void check_one_process(struct self_check *check);
void check_cookies(struct self_check *check);
void check_sessions(struct self_check *check);
void check_slots(struct self_check *check);
void check_signals(struct self_check *check);
void check_find_vma(struct self_check *check);
void check_iterators(struct self_check *check);
void check_process_ids(struct self_check *check);
void check_lockdown(struct self_check *check);

/* harm_checks.c: kernels whose probes harm the probed program */
void check_nop5_fork(struct self_check *check);
void check_seccomp_returns(struct self_check *check);
void check_seccomp_nop5(struct self_check *check);

#endif
