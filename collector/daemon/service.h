/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The daemon: looks for the processes of its targets, has each recorded by a process of its own (worker.h),
 * keeps them within their limits, and answers on its socket. It has no store open and no probe in place
 * itself, so that nothing that goes wrong with a recording can end it.
 */
#ifndef TRACECTL_COLLECTOR_DAEMON_SERVICE_H
#define TRACECTL_COLLECTOR_DAEMON_SERVICE_H

struct error;

/* Runs until SIGTERM or SIGINT; SIGHUP reads the file again. Says on standard error what happens (log.h).
 * Changes the umask and the signal mask of the process. */
int service_run(const char *config_path, struct error *err);

#endif
