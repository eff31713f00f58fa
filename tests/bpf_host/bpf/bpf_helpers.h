/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stands in for libbpf's bpf_helpers.h when bpf/ is compiled as ordinary C: the helpers become functions of
 * kernel_side.c, maps become tables there that are found by the address of the map's variable.
 */
#ifndef TESTS_BPF_HOST_BPF_HELPERS_H
#define TESTS_BPF_HOST_BPF_HELPERS_H

#define SEC(name)
#define __ksym
#define __weak
#define __noinline __attribute__((noinline))
#define barrier() __asm__ volatile("" ::: "memory")
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define bpf_ksym_exists(function) 1
#define __uint(name, value) int(*name)[value]
#define __type(name, value) __typeof__(value) *name

struct task_struct;

/* All maps of the programs have keys of 4 bytes and values of at most 160. */
void *host_lookup(void *map, const void *key);
long host_update(void *map, const void *key, const void *value, unsigned long long size);
long host_delete(void *map, const void *key);
void *host_reserve(void *map, unsigned long long size);
long host_output(void *map, const void *data, unsigned long long size);
long host_pop(void *map, __u32 *value);
long host_push(void *map, const __u32 *value);
void host_submit(void *record, unsigned long long flags);

#define bpf_map_lookup_elem(map, key) host_lookup(map, key)
#define bpf_map_update_elem(map, key, value, flags) host_update(map, key, value, sizeof(*(value)))
#define bpf_map_delete_elem(map, key) host_delete(map, key)
#define bpf_map_pop_elem(map, value) host_pop(map, value)
#define bpf_map_push_elem(map, value, flags) host_push(map, value)
#define bpf_ringbuf_output(map, data, size, flags) host_output(map, data, size)
#define bpf_ringbuf_reserve(map, size, flags) host_reserve(map, size)
#define bpf_ringbuf_submit(record, flags) host_submit(record, flags)

unsigned long long bpf_ktime_get_ns(void);
unsigned bpf_get_prandom_u32(void);
unsigned long long bpf_jiffies64(void);
long bpf_loop(unsigned turns, void *callback, void *context, unsigned long long flags);
struct task_struct *bpf_get_current_task_btf(void);
unsigned long long bpf_get_attach_cookie(void *context);
long bpf_probe_read_user(void *to, unsigned size, const void *from);
long bpf_send_signal(unsigned signal);
long bpf_send_signal_thread(unsigned signal);
long bpf_find_vma(struct task_struct *task, unsigned long long address, void *callback, void *context,
                  unsigned long long flags);

#endif
