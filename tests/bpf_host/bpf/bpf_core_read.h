/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Stands in for libbpf's bpf_core_read.h: the kernel's structs are those of vmlinux.h, and are read as such.
 */
#ifndef TESTS_BPF_HOST_BPF_CORE_READ_H
#define TESTS_BPF_HOST_BPF_CORE_READ_H

#define HOST_READ_1(from, a) ((from)->a)
#define HOST_READ_2(from, a, b) ((from)->a->b)
#define HOST_READ_3(from, a, b, c) ((from)->a->b->c)
#define HOST_READ_CHOOSE(from, a, b, c, read, ...) read
#define BPF_CORE_READ(...) HOST_READ_CHOOSE(__VA_ARGS__, HOST_READ_3, HOST_READ_2, HOST_READ_1)(__VA_ARGS__)
#define BPF_CORE_READ_INTO(to, from, a) (*(to) = (from)->a)
#define bpf_core_field_exists(type, field) 1
#define bpf_core_type_id_kernel(type) 0
#define bpf_core_enum_value(type, value) ((unsigned long)(value))

static inline long bpf_probe_read_kernel(void *to, unsigned size, const void *from)
{
    __builtin_memcpy(to, from, size);
    return 0;
}

#endif
