/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Includes the BPF programs themselves: their maps and variables are static to this file. */
#define PACKS_OPTION volatile
#include "bpf/tracectl.bpf.c"

void *memset(void *to, int byte, unsigned long size);

#define MAX_ENTRIES 64
#define MAX_RECORDS 4096
#define NULL ((void *)0)
#define KERNEL_SLOTS 64 /* probes with a budget */

struct entry {
    void *map;
    __u32 key;
    char value[160] __attribute__((aligned(8)));
    int used;
};

#define RECORD_BYTES (sizeof(struct wire_packed) + PACKED_BYTES + PACKED_SLACK)
#define KERNEL_THREADS 8 /* slots of threads */

struct kept_record {
    char bytes[RECORD_BYTES] __attribute__((aligned(8)));
    unsigned long size;
    int submitted;
    int woke;
};

/* One open socket, with all that leads to it. */
static struct {
    struct files_struct files;
    struct fdtable table;
    struct file *open[8];
    struct file file;
    struct inode inode;
    struct super_block block;
    struct socket socket;
    struct tcp_sock tcp; /* its first member is the struct sock */
    struct net net;
} sockets;

static struct {
    struct entry entries[MAX_ENTRIES * 4];
    unsigned long map_room;
    struct kept_record records[MAX_RECORDS];
    unsigned long record_count, ring_room, overflow_room;
    struct task_struct current_task, leader;
    struct signal_struct signal;
    __u64 cookie, user_word, time, jiffies, instruction;
    struct seen_thread seen;
    struct budget_bucket bucket;
    struct budget_slot slots_of_probes[KERNEL_SLOTS];
    struct packed_slot packed[KERNEL_THREADS];
    struct slot_memory memories[KERNEL_THREADS];
    __u32 pool[KERNEL_THREADS];
    unsigned long pool_count;
    unsigned let_go_at; /* turn of a wait in which the collector lets the thread go, 0: never */
    int is_return, readable;
    unsigned stops, child_stops, thread_stops, mapping_lookups;
    int terminal; /* of forked children */
    struct mm_struct mm;
    struct vm_area_struct mapping;
    struct {
        __u64 address, value;
    } slots[16];
    unsigned randoms;
    __u64 filtered[AREAS_THAT_WAIT];
    struct xol_area probe_page;
    struct uprobe_task probes;
    struct return_instance replaced[16];
    unsigned replaced_count;
    __u64 memory_start, memory_size;
    const void *memory;
} kernel;

/* ------------------------------------------------------------------------------------ helpers */

static struct entry *find(void *map, __u32 key)
{
    for (unsigned long i = 0; i < sizeof(kernel.entries) / sizeof(*kernel.entries); i++)
        if (kernel.entries[i].used && kernel.entries[i].map == map && kernel.entries[i].key == key)
            return &kernel.entries[i];
    return NULL;
}

void *host_lookup(void *map, const void *key)
{
    struct entry *entry;

    if (map == (void *)&seen_threads) /* an array: it has all its entries from the beginning */
        return &kernel.seen;
    if (map == (void *)&filtered)
        return &kernel.filtered[*(const __u32 *)key];
    if (map == (void *)&budget_buckets)
        return &kernel.bucket;
    if (map == (void *)&budget_slots)
        return *(const __u32 *)key < KERNEL_SLOTS ? &kernel.slots_of_probes[*(const __u32 *)key] : NULL;
    if (map == (void *)&packed_slots)
        return *(const __u32 *)key < KERNEL_THREADS ? &kernel.packed[*(const __u32 *)key] : NULL;
    if (map == (void *)&slot_memories)
        return *(const __u32 *)key < KERNEL_THREADS ? &kernel.memories[*(const __u32 *)key] : NULL;
    entry = find(map, *(const __u32 *)key);
    return entry ? entry->value : NULL;
}

long host_update(void *map, const void *key, const void *value, unsigned long long size)
{
    struct entry *entry = find(map, *(const __u32 *)key), *free_entry = NULL;
    unsigned long used = 0;

    for (unsigned long i = 0; i < sizeof(kernel.entries) / sizeof(*kernel.entries); i++) {
        if (kernel.entries[i].used && kernel.entries[i].map == map)
            used++;
        else if (!kernel.entries[i].used && !free_entry)
            free_entry = &kernel.entries[i];
    }
    if (!entry && used >= kernel.map_room)
        return -7; /* E2BIG, as the kernel */
    if (!entry)
        entry = free_entry;
    if (!entry)
        return -12;
    entry->map = map;
    entry->key = *(const __u32 *)key;
    entry->used = 1;
    __builtin_memcpy(entry->value, value, size);
    return 0;
}

long host_delete(void *map, const void *key)
{
    struct entry *entry = find(map, *(const __u32 *)key);

    if (!entry)
        return -2;
    entry->used = 0;
    return 0;
}

void *host_reserve(void *map, unsigned long long size)
{
    unsigned long *room = map == (void *)&ring ? &kernel.ring_room : &kernel.overflow_room;

    if (!*room || kernel.record_count == MAX_RECORDS || size > sizeof(kernel.records[0].bytes))
        return NULL;
    --*room;
    /* A ring's memory is not zeroed: what a program does not write is rubbish. */
    memset(kernel.records[kernel.record_count].bytes, 0xa5, sizeof(kernel.records[0].bytes));
    kernel.records[kernel.record_count].size = size;
    return kernel.records[kernel.record_count++].bytes;
}

long host_output(void *map, const void *data, unsigned long long size)
{
    void *record = host_reserve(map, size);

    if (!record)
        return -11; /* EAGAIN, as the kernel */
    __builtin_memcpy(record, data, size);
    host_submit(record, 0);
    return 0;
}

long host_pop(void *map, __u32 *value)
{
    if (!kernel.pool_count)
        return -2;
    *value = kernel.pool[--kernel.pool_count];
    return 0;
}

long host_push(void *map, const __u32 *value)
{
    if (kernel.pool_count == KERNEL_THREADS)
        return -7;
    kernel.pool[kernel.pool_count++] = *value;
    return 0;
}

void host_submit(void *record, unsigned long long flags)
{
    struct kept_record *kept = record;

    kept->submitted = 1;
    kept->woke = flags == BPF_RB_FORCE_WAKEUP;
}

unsigned long long bpf_ktime_get_ns(void)
{
    return ++kernel.time;
}

unsigned long long bpf_jiffies64(void)
{
    return kernel.jiffies;
}

/* A turn takes a millisecond. */
long bpf_loop(unsigned turns, void *callback, void *context, unsigned long long flags)
{
    long (*turn)(__u64, void *) = callback;
    __u32 tid = (__u32)kernel.current_task.pid;

    for (unsigned i = 0; i < turns; i++) {
        if (i + 1 == kernel.let_go_at)
            host_delete(&waiting, &tid);
        if (turn(i, context))
            return i;
        kernel.time += 1000000;
    }
    return turns;
}

struct task_struct *bpf_get_current_task_btf(void)
{
    return &kernel.current_task;
}

unsigned long long bpf_get_attach_cookie(void *context)
{
    return kernel.cookie;
}

long bpf_probe_read_user(void *to, unsigned size, const void *from)
{
    __u64 start = (__u64)from;

    if (!kernel.readable)
        return -14;
    if (start >= kernel.memory_start && start + size <= kernel.memory_start + kernel.memory_size) {
        __builtin_memcpy(to, (const char *)kernel.memory + (start - kernel.memory_start), size);
        return 0;
    }
    if (size > sizeof(kernel.user_word))
        return -14;
    for (unsigned i = 0; i < sizeof(kernel.slots) / sizeof(*kernel.slots); i++)
        if (kernel.slots[i].address == start) {
            __builtin_memcpy(to, &kernel.slots[i].value, size);
            return 0;
        }
    __builtin_memcpy(to, &kernel.user_word, size);
    return 0;
}

long bpf_send_signal(unsigned signal)
{
    kernel.stops += signal == SIGSTOP;
    return 0;
}

long bpf_send_signal_thread(unsigned signal)
{
    kernel.thread_stops += signal == GO_HOLD_SIGNAL;
    return 0;
}

long bpf_find_vma(struct task_struct *task, unsigned long long address, void *callback, void *context,
                  unsigned long long flags)
{
    long (*look)(struct task_struct *, struct vm_area_struct *, void *) = callback;

    kernel.mapping_lookups++;
    if (address < kernel.mapping.vm_start || address >= kernel.mapping.vm_end)
        return -2;
    look(task, &kernel.mapping, context);
    return 0;
}

int bpf_send_signal_task(struct task_struct *task, int signal, enum pid_type type, __u64 value)
{
    kernel.child_stops += signal == SIGSTOP && type == PIDTYPE_TGID;
    return 0;
}

/* Counts up, so that every other one is below one half. */
unsigned bpf_get_prandom_u32(void)
{
    return (unsigned)kernel.randoms++ * 0x80000000u;
}

bool bpf_session_is_return(void)
{
    return kernel.is_return;
}

/* ------------------------------------------------------------------------------------ the test's side */

#include "tests/bpf_host/kernel_side.h"

void kernel_reset(void)
{
    memset(&kernel, 0, sizeof(kernel));
    memset(&sockets, 0, sizeof(sockets));
    memset(&totals, 0, sizeof(totals));
    memset(go_schedules, 0, sizeof(go_schedules));
    losing_threads = 0;
    generation = 0;
    phase = PHASE_RECORDING;
    relinking = 0;
    budget_ns = 0;
    trigger_share = 0;
    packs = false;
    kernel.map_room = MAX_ENTRIES;
    kernel.ring_room = kernel.overflow_room = MAX_RECORDS;
    kernel.current_task.signal = &kernel.signal;
    kernel.current_task.group_leader = &kernel.leader;
    kernel.current_task.files = &sockets.files;
    kernel.readable = 1;
    kernel.current_task.mm = &kernel.mm;
    kernel.current_task.utask = &kernel.probes;
    kernel_set_main_stack(0x7ffd20000000);
    kernel_set_mapping(0x7ffd00000000, 0x7ffd20000000, 0x7ffd1ffff000);
}

void kernel_set_packing(unsigned slots)
{
    packs = true;
    for (__u32 i = slots; i--;)
        host_push(NULL, &i);
}

struct packed_slot *kernel_packed_slot(uint32_t slot)
{
    return &kernel.packed[slot];
}

unsigned kernel_free_slots(void)
{
    return (unsigned)kernel.pool_count;
}

int kernel_pack(uint32_t slot, const struct wire_event *event, uint64_t ns)
{
    return pack_event(slot, event, ns);
}

int kernel_flush(uint32_t slot)
{
    return flush_slot(slot);
}

size_t kernel_record_size(size_t index)
{
    return kernel.records[index].size;
}

void kernel_set_room(size_t ring_records, size_t overflow_records)
{
    kernel.ring_room = ring_records;
    kernel.overflow_room = overflow_records;
}

void kernel_set_map_room(size_t entries)
{
    kernel.map_room = entries;
}

void kernel_trace(uint32_t tgid)
{
    kernel_trace_as(tgid, PROCESS_TRACED);
}

void kernel_trace_as(uint32_t tgid, uint32_t flags)
{
    const struct process_state state = {.flags = flags, .cannot_throw = {{0x400000, 0x500000}}};

    bpf_map_update_elem(&processes, &tgid, &state, BPF_ANY);
    processes_changed();
}

uint32_t kernel_process_flags(uint32_t tgid)
{
    const struct process_state *state = bpf_map_lookup_elem(&processes, &tgid);

    return state ? state->flags : 0;
}

void kernel_tick(void)
{
    kernel.jiffies++;
}

void kernel_set_budget(uint32_t ns)
{
    budget_ns = ns;
}

void kernel_set_counting(int on)
{
    count_only = (__u32)on;
}

void kernel_set_trigger(uint32_t share)
{
    trigger_share = share;
}

void kernel_set_relinking(int on)
{
    relinking = (__u32)on;
}

struct budget_slot *kernel_budget_slot(uint32_t index)
{
    return &kernel.slots_of_probes[index];
}

void kernel_enter(uint32_t entered)
{
    phase = entered;
}

void kernel_set_instruction(uint64_t address)
{
    kernel.instruction = address;
}

void kernel_set_let_go(unsigned turn)
{
    kernel.let_go_at = turn;
}

int kernel_is_waiting(uint32_t tid)
{
    return bpf_map_lookup_elem(&waiting, &tid) != NULL;
}

void kernel_libraries(uint32_t tgid, uint32_t tid, int threads, uint64_t cookie)
{
    static char group;
    struct task_struct parent = {.signal = &kernel.signal};
    struct pt_regs registers = {0};

    kernel.signal.nr_threads = threads;
    kernel.signal.pids[PIDTYPE_PGID] = (struct pid *)&group;
    kernel.current_task.real_parent = &parent;
    kernel.cookie = cookie;

    kernel.current_task.tgid = (int)tgid;
    kernel.current_task.pid = (int)tid;
    on_libraries(&registers);
}

void kernel_protect(uint32_t tgid, int threads, uint64_t kind, const uint64_t arguments[5])
{
    static char group;
    struct task_struct parent = {.signal = &kernel.signal};
    struct pt_regs registers = {.di = arguments[0],
                                .si = arguments[1],
                                .dx = arguments[2],
                                .cx = arguments[3],
                                .r8 = arguments[4],
                                .ip = kernel.mapping.vm_start};

    kernel.signal.nr_threads = threads;
    kernel.signal.pids[PIDTYPE_PGID] = (struct pid *)&group;
    kernel.current_task.real_parent = &parent;
    kernel.cookie = kind;
    kernel.current_task.tgid = kernel.current_task.pid = (int)tgid;
    on_protect(&registers);
}

void kernel_set_code(uint64_t flags, int of_file)
{
    static char file;

    kernel.mapping.vm_flags = flags;
    kernel.mapping.vm_file = of_file ? (struct file *)&file : NULL;
}

int kernel_is_traced(uint32_t tgid)
{
    return bpf_map_lookup_elem(&processes, &tgid) != NULL;
}

int kernel_is_held(uint32_t tgid)
{
    return bpf_map_lookup_elem(&held, &tgid) != NULL;
}

unsigned kernel_children_stopped(void)
{
    return kernel.child_stops;
}

void kernel_set_terminal(int terminal)
{
    kernel.terminal = terminal;
}

unsigned kernel_threads_held(void)
{
    return kernel.thread_stops;
}

unsigned kernel_stops_sent(void)
{
    return kernel.stops;
}

void kernel_set_stack_word(uint64_t address, uint64_t value)
{
    kernel.slots[address / 8 % 16].address = address;
    kernel.slots[address / 8 % 16].value = value;
}

static int run_session(uint32_t tgid, uint32_t tid, uint64_t sp, uint64_t cookie, int is_return)
{
    struct pt_regs registers = {.sp = sp, .ip = kernel.instruction};

    kernel.current_task.tgid = (int)tgid;
    kernel.current_task.pid = (int)tid;
    kernel.cookie = cookie;
    kernel.is_return = is_return;
    return on_session(&registers);
}

int kernel_call(uint32_t tgid, uint32_t tid, uint64_t sp, uint64_t cookie)
{
    return run_session(tgid, tid, sp, cookie, 0);
}

int kernel_return(uint32_t tgid, uint32_t tid, uint64_t sp, uint64_t cookie)
{
    return run_session(tgid, tid, sp, cookie, 1);
}

void kernel_set_syscall_work(uint64_t bits)
{
    kernel.current_task.thread_info.syscall_work = bits;
}

static struct seccomp_filter filter;

void kernel_set_allowed_calls(const unsigned *numbers, size_t count)
{
    memset(&filter, 0, sizeof(filter));
    for (size_t i = 0; i < count; i++)
        filter.cache.allow_native[numbers[i] / 64] |= 1ul << numbers[i] % 64;
    kernel.current_task.seccomp.filter = &filter;
}

void kernel_set_probe_page(uint64_t address)
{
    kernel.probe_page.vaddr = address;
    kernel.mm.uprobes_state.xol_area = address ? &kernel.probe_page : NULL;
}

void kernel_add_return_probe(uint64_t slot, uint64_t address)
{
    struct return_instance *instance = &kernel.replaced[kernel.replaced_count++];

    instance->stack = slot;
    instance->orig_ret_vaddr = address;
    instance->next = kernel.probes.return_instances;
    kernel.probes.return_instances = instance;
}

void kernel_set_memory(uint64_t start, const void *bytes, size_t size)
{
    kernel.memory_start = start;
    kernel.memory = bytes;
    kernel.memory_size = size;
}

void kernel_set_go_program(uint32_t program, const struct go_fields *fields)
{
    bpf_map_update_elem(&go_programs, &program, fields, BPF_ANY);
}

void kernel_set_go_probe(uint32_t index, const struct go_probe *probe)
{
    bpf_map_update_elem(&go_probes, &index, probe, BPF_ANY);
}

void kernel_set_go_delay(uint32_t index, const struct go_delay *delay)
{
    bpf_map_update_elem(&go_delays, &index, delay, BPF_ANY);
}

struct go_schedule *kernel_go_schedule(uint32_t worker)
{
    return &go_schedules[worker];
}

void kernel_set_go_worker(uint32_t tgid, uint32_t worker)
{
    struct process_state *state = bpf_map_lookup_elem(&processes, &tgid);

    if (state)
        state->worker = worker;
}

static struct pt_regs registers_of(const struct kernel_registers *at)
{
    return (struct pt_regs){.r15 = at->r15,
                            .r14 = at->r14,
                            .r13 = at->r13,
                            .r12 = at->r12,
                            .bp = at->bp,
                            .bx = at->bx,
                            .r11 = at->r11,
                            .r10 = at->r10,
                            .r9 = at->r9,
                            .r8 = at->r8,
                            .ax = at->ax,
                            .cx = at->cx,
                            .dx = at->dx,
                            .si = at->si,
                            .di = at->di,
                            .ip = at->ip,
                            .flags = at->flags,
                            .sp = at->sp};
}

void kernel_sync_hit(uint32_t tgid, uint32_t tid, uint64_t cookie, const struct kernel_registers *at)
{
    struct pt_regs registers = registers_of(at);

    kernel.current_task.tgid = (int)tgid;
    kernel.current_task.pid = (int)tid;
    kernel.cookie = cookie;
    on_sync(&registers);
}

void kernel_set_sync_call(uint32_t number, const struct sync_call *call)
{
    bpf_map_update_elem(&sync_calls, &number, call, BPF_ANY);
}

void kernel_system_call(uint32_t tgid, uint32_t tid, uint32_t number, const uint64_t arguments[6],
                        int64_t result)
{
    struct pt_regs registers = {.di = arguments[0],
                                .si = arguments[1],
                                .dx = arguments[2],
                                .r10 = arguments[3],
                                .r8 = arguments[4],
                                .r9 = arguments[5],
                                .orig_ax = number};
    struct bpf_raw_tracepoint_args begin = {{(__u64)&registers, number}},
                                   end = {{(__u64)&registers, (__u64)result}};

    kernel.current_task.tgid = (int)tgid;
    kernel.current_task.pid = (int)tid;
    on_sys_enter(&begin);
    on_sys_exit(&end);
}

void kernel_set_socket(const struct kernel_socket *socket)
{
    struct sock *sk = &sockets.tcp.inet_conn.icsk_inet.sk;
    struct sock_common *common = &sk->__sk_common;

    sockets.files.fdt = &sockets.table;
    sockets.table.max_fds = sizeof(sockets.open) / sizeof(*sockets.open);
    sockets.table.fd = sockets.open;
    sockets.open[KERNEL_SOCKET] = &sockets.file;
    sockets.file.f_inode = &sockets.inode;
    sockets.file.private_data = &sockets.socket;
    sockets.inode.i_mode = SYNC_S_IFSOCK;
    sockets.inode.i_ino = KERNEL_SOCKET_INODE;
    sockets.inode.i_sb = &sockets.block;
    sockets.socket.type = (short)socket->type;
    sockets.socket.sk = sk;
    common->skc_family = socket->family;
    common->skc_net.net = &sockets.net;
    sockets.net.ns.inum = KERNEL_NET;
    common->skc_rcv_saddr = socket->local;
    common->skc_daddr = socket->remote;
    common->skc_num = socket->local_port;
    common->skc_dport = (__u16)(socket->remote_port << 8 | socket->remote_port >> 8);
    common->skc_flags = socket->had_fin ? 1ul << SYNC_SOCK_DONE : 0;
    sk->sk_protocol = socket->is_tcp ? SYNC_PROTOCOL_TCP : 17;
    sockets.tcp.copied_seq = socket->copied;
    sockets.tcp.rcv_nxt = socket->next;
    sockets.tcp.write_seq = socket->written;
}

void kernel_go_hit(uint32_t tgid, uint32_t tid, uint32_t index, const struct kernel_registers *at)
{
    struct pt_regs registers = registers_of(at);

    kernel.current_task.tgid = (int)tgid;
    kernel.current_task.pid = (int)tid;
    kernel.cookie = index;
    on_go(&registers);
}

void kernel_set_signal_stack(uint64_t start, uint64_t size)
{
    kernel.current_task.sas_ss_sp = start;
    kernel.current_task.sas_ss_size = size;
}

void kernel_set_main_stack(uint64_t top)
{
    kernel.mm.start_stack = top;
}

void kernel_set_mapping(uint64_t start, uint64_t end, uint64_t thread_block)
{
    kernel.mapping.vm_start = start;
    kernel.mapping.vm_end = end;
    kernel.current_task.thread.fsbase = thread_block;
}

unsigned kernel_mapping_lookups(void)
{
    return kernel.mapping_lookups;
}

void kernel_set_user_word(uint64_t value, int readable)
{
    kernel.user_word = value;
    kernel.readable = readable;
}

/* The rights of all processes, and those in a user namespace below. */
static struct user_namespace namespaces[] = {{.level = 0}, {.level = 1}};
static const struct cred creds[] = {{.user_ns = &namespaces[0]}, {.user_ns = &namespaces[1]}};

static void fork_with(uint32_t parent_tgid, uint32_t parent_tid, uint32_t tgid, uint32_t tid,
                      const struct cred *cred, struct mm_struct *memory)
{
    struct task_struct parent = {.tgid = (int)parent_tgid, .pid = (int)parent_tid, .cred = &creds[0]};
    struct signal_struct signal = {.tty = kernel.terminal ? (struct tty_struct *)&kernel : NULL};
    struct task_struct child = {
        .tgid = (int)tgid, .pid = (int)tid, .signal = &signal, .cred = cred, .mm = memory};

    on_fork(&parent, &child);
}

void kernel_fork(uint32_t parent_tgid, uint32_t parent_tid, uint32_t tgid, uint32_t tid)
{
    fork_with(parent_tgid, parent_tid, tgid, tid, &creds[0], NULL);
}

void kernel_fork_process(uint32_t parent_tgid, uint32_t tgid, int in_namespace)
{
    static struct mm_struct memory;

    fork_with(parent_tgid, parent_tgid, tgid, tgid, &creds[in_namespace ? 1 : 0], &memory);
}

void kernel_capability(uint32_t tgid, int capability, int below)
{
    struct signal_struct above_signal = {0}, signal = {0};
    struct task_struct above = {.tgid = 1000, .signal = &above_signal};

    kernel.current_task.tgid = kernel.current_task.pid = (int)tgid;
    kernel.current_task.signal = &signal;
    kernel.current_task.real_parent = kernel.current_task.parent = &above;
    kernel.current_task.cred = &creds[0];
    on_capability(&creds[0], &namespaces[below ? 1 : 0], NULL, capability, 0);
    kernel.current_task.signal = NULL;
    kernel.current_task.real_parent = kernel.current_task.parent = NULL;
}

void kernel_clone(uint32_t parent_tgid, uint32_t parent_tid, uint32_t tgid, uint32_t tid, uint64_t flags)
{
    static char group;
    struct signal_struct signal = {0};
    struct task_struct above = {.tgid = 1000, .signal = &signal};
    struct task_struct child = {.tgid = (int)tgid, .pid = (int)tid, .signal = &signal, .cred = &creds[0]};

    kernel.current_task.cred = &creds[0];
    signal.pids[PIDTYPE_PGID] = signal.pids[PIDTYPE_SID] = (struct pid *)&group;
    kernel.current_task.tgid = (int)parent_tgid;
    kernel.current_task.pid = (int)parent_tid;
    kernel.current_task.signal = &signal;
    kernel.current_task.real_parent = kernel.current_task.parent = &above;
    child.mm = kernel.current_task.mm;
    child.thread = kernel.current_task.thread;
    on_new_task(&child, flags);
    on_fork(&kernel.current_task, &child);
    kernel.current_task.signal = NULL;
    kernel.current_task.real_parent = kernel.current_task.parent = NULL;
}

void kernel_claim(uint32_t tgid, uint32_t tid, uint32_t ticket, uint32_t area)
{
    struct pt_regs ctx = {.di = ticket, .si = area};

    kernel.current_task.tgid = (int)tgid;
    kernel.current_task.pid = (int)tid;
    on_claim(&ctx);
}

void kernel_give_area(uint32_t tgid, uint32_t area)
{
    bpf_map_update_elem(&areas, &tgid, &area, BPF_ANY);
}

void kernel_ask(uint32_t tgid, uint32_t said)
{
    struct pt_regs ctx = {.di = said};

    kernel.current_task.tgid = (int)tgid;
    kernel.current_task.pid = (int)tgid;
    on_ask(&ctx);
}

bool kernel_may_wait(uint32_t area)
{
    return area >= AREAS_THAT_WAIT || !kernel.filtered[area];
}

void kernel_exec_as(uint32_t tgid, uint32_t old_tid, enum kernel_parent parent)
{
    static char group, parent_group, session, own_session;
    struct signal_struct parent_signal = {0}, signal = {0};
    struct task_struct parent_task = {.tgid = 1000, .signal = &parent_signal};
    struct task_struct task = {.tgid = (int)tgid,
                               .pid = (int)tgid,
                               .signal = &signal,
                               .real_parent = &parent_task,
                               .parent = &parent_task,
                               .ptrace = parent == PARENT_DEBUGGER || parent == PARENT_THREAD_HOLDER};

    holder = parent == PARENT_THREAD_HOLDER ? (__u32)parent_task.tgid : 0;
    parent_signal.pids[PIDTYPE_PGID] = (struct pid *)&parent_group;
    parent_signal.pids[PIDTYPE_SID] = (struct pid *)&session;
    signal.pids[PIDTYPE_PGID] =
        (struct pid *)(parent == PARENT_SHELL || parent == PARENT_DAEMON ? &group : &parent_group);
    signal.pids[PIDTYPE_SID] = (struct pid *)(parent == PARENT_DAEMON ? &own_session : &session);
    on_exec(&task, (int)old_tid);
}

void kernel_exec(uint32_t tgid, uint32_t old_tid)
{
    kernel_exec_as(tgid, old_tid, PARENT_ORDINARY);
}

void kernel_exit(uint32_t tgid, uint32_t tid, int last, uint32_t exit_code, int group_exit)
{
    struct task_struct leader = {.exit_code = (int)exit_code};
    struct signal_struct signal = {.live = {.counter = last ? 0 : 1},
                                   .group_exit_code = group_exit ? (int)exit_code : 0,
                                   .flags = group_exit ? SIGNAL_GROUP_EXIT : 0};
    struct task_struct task = {.tgid = (int)tgid,
                               .pid = (int)tid,
                               .exit_code = group_exit ? 0 : (int)exit_code,
                               .signal = &signal,
                               .group_leader = &leader,
                               .comm = "worker"};

    on_task_exit(&task);
}

const void *kernel_record(size_t index)
{
    return index < kernel.record_count && kernel.records[index].submitted ? kernel.records[index].bytes
                                                                          : NULL;
}

size_t kernel_records(void)
{
    return kernel.record_count;
}

int kernel_record_woke(size_t index)
{
    return kernel.records[index].woke;
}

uint32_t kernel_pending_calls(uint32_t tid)
{
    const struct loss *loss = host_lookup(&losses, &tid);

    return loss ? loss->calls : 0;
}

uint32_t kernel_pending_returns(uint32_t tid)
{
    const struct loss *loss = host_lookup(&losses, &tid);

    return loss ? loss->returns : 0;
}

uint32_t kernel_pending_go(uint32_t tid)
{
    const struct loss *loss = host_lookup(&losses, &tid);

    return loss ? loss->go : 0;
}

uint32_t kernel_pending_sync(uint32_t tid)
{
    const struct loss *loss = host_lookup(&losses, &tid);

    return loss ? loss->sync : 0;
}

uint64_t kernel_losing_threads(void)
{
    return losing_threads;
}

uint64_t kernel_unplaced(void)
{
    return totals.unplaced;
}

uint64_t kernel_life_cycle_lost(void)
{
    return totals.life_cycle;
}

uint64_t kernel_processes_lost(void)
{
    return totals.processes;
}

void *bpf_rdonly_cast(const void *pointer, __u32 type)
{
    (void)type;
    return (void *)pointer;
}
