/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Stands in for libbpf's bpf_tracing.h: a BPF_PROG is an ordinary function of its arguments. */
#ifndef TESTS_BPF_HOST_BPF_TRACING_H
#define TESTS_BPF_HOST_BPF_TRACING_H

#define BPF_PROG(name, ...) name(__VA_ARGS__)

#endif
