/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What libbpf and the kernel's verifier say while BPF programs are loaded: the reason for an error line, and
 * the whole of it for `-v`. By itself libbpf prints to standard error.
 */
#ifndef TRACECTL_COLLECTOR_UPROBE_BPF_MESSAGES_H
#define TRACECTL_COLLECTOR_UPROBE_BPF_MESSAGES_H

struct error;

/* libbpf's messages come here from now on, and this thread's reason is forgotten: due before each load. */
void bpf_messages_begin(void);

/* Why what this thread has loaded since was refused: "on_call: R1 unbounded memory access ...", the last word
 * of the verifier, or libbpf's own where the verifier did not come to it; "" when neither said anything.
 * Valid until the thread's next bpf_messages_begin(). */
const char *bpf_messages_reason(void);

/* Warnings are also handed to `show` from now on, one at a time as libbpf words them, several lines long and
 * with the verifier's log; NULL: no longer. Not to be called while programs are loaded. */
void bpf_messages_show(void (*show)(const char *text));

/* Sets `err` to why `what` ("cannot load BPF programs") failed with `code`: privileges that are missing are
 * only named where it is not the verifier that refused. Returns a negative errno, which is -EPERM for want of
 * privileges and for nothing else. */
int bpf_messages_error(struct error *err, int code, const char *what);

#endif
