/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A kernel in a test tube: the BPF programs run as C functions, and what they write is collected. */
#ifndef TESTS_BPF_HOST_KERNEL_SIDE_H
#define TESTS_BPF_HOST_KERNEL_SIDE_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/wire.h"

/* Forgets everything: maps, records, counters. */
void kernel_reset(void);

/* Room for so many more records in the main ring and in the overflow ring. */
void kernel_set_room(size_t ring, size_t overflow);

/* Calls are packed from now on, with slots for so many threads, of at most 8. */
void kernel_set_packing(unsigned slots);
struct packed_slot *kernel_packed_slot(uint32_t slot);
unsigned kernel_free_slots(void);

struct wire_event;
/* What a hit of the slot's thread comes to, and what comes before another record of it. */
int kernel_pack(uint32_t slot, const struct wire_event *event, uint64_t ns);
int kernel_flush(uint32_t slot);

/* Room for so many entries in each hash map. */
void kernel_set_map_room(size_t entries);

void kernel_trace(uint32_t tgid);
/* With these flags (enum process_flags); code at 0x400000 to 0x500000 cannot throw. */
void kernel_trace_as(uint32_t tgid, uint32_t flags);
uint32_t kernel_process_flags(uint32_t tgid);
int kernel_is_traced(uint32_t tgid);
int kernel_is_held(uint32_t tgid);
unsigned kernel_stops_sent(void);
unsigned kernel_children_stopped(void);

/* Whether forked children have a controlling terminal. */
void kernel_set_terminal(int terminal);

/* Runs the session program as thread `tid` of `tgid`. Returns what it returns. */
int kernel_call(uint32_t tgid, uint32_t tid, uint64_t sp, uint64_t cookie);
int kernel_return(uint32_t tgid, uint32_t tid, uint64_t sp, uint64_t cookie);

/* The current thread's system calls go elsewhere first: a set of bits by enum syscall_work_bit. */
void kernel_set_syscall_work(uint64_t bits);

/* And its filter allows calls with these numbers, and no others. */
void kernel_set_allowed_calls(const unsigned *numbers, size_t count);

/* The process has the kernel's page for probes there; 0: it has none. */
void kernel_set_probe_page(uint64_t address);
/* A return probe of somebody has replaced `address` at `slot`; the innermost comes last. At most 16. */
void kernel_add_return_probe(uint64_t slot, uint64_t address);

/* The timer's tick; the recording is in this phase (enum recording_phase); the address of the probed
 * instruction. */
void kernel_tick(void);
void kernel_enter(uint32_t entered);
void kernel_set_instruction(uint64_t address);

/* What a CPU may spend in a tick; that probes are being moved to another link; what is counted of a probe, of
 * the first 64. */
void kernel_set_budget(uint32_t ns);
void kernel_set_trigger(uint32_t share); /* of 2^32 - 1 */
void kernel_set_counting(int on);        /* calls are counted, and not recorded */
void kernel_set_relinking(int on);
struct budget_slot *kernel_budget_slot(uint32_t index);

/* The dynamic linker of a process with `threads` threads has mapped libraries. A thread that waits is let go
 * in this turn, of 1 ms; 0: never. */
void kernel_libraries(uint32_t tgid, uint32_t tid, int threads, uint64_t cookie);

/* The main thread of such a process calls mprotect() or the like, at the begin of its mapping; `kind`: enum
 * rewrite_gate_kind. */
void kernel_protect(uint32_t tgid, int threads, uint64_t kind, const uint64_t arguments[5]);
/* The mapping of kernel_set_mapping() has these rights (VM_), and is of a file or not. */
void kernel_set_code(uint64_t flags, int of_file);
void kernel_set_let_go(unsigned turn);
int kernel_is_waiting(uint32_t tid);

/* The target's memory from `start` on; `bytes` is not copied. Other addresses are read as said below. */
void kernel_set_memory(uint64_t start, const void *bytes, size_t size);

/* The maps of the probes on Go programs, and how goroutines are held up. */
void kernel_set_go_program(uint32_t program, const struct go_fields *fields);
void kernel_set_go_probe(uint32_t index, const struct go_probe *probe);
void kernel_set_go_delay(uint32_t index, const struct go_delay *delay);
struct go_schedule *kernel_go_schedule(uint32_t worker);
/* The process is executed for that worker. */
void kernel_set_go_worker(uint32_t tgid, uint32_t worker);

struct kernel_registers {
    uint64_t ax, cx, dx, bx, sp, bp, si, di, r8, r9, r10, r11, r12, r13, r14,
        r15; /* as instructions number them */
    uint64_t ip, flags;
};

/* Thread `tid` of `tgid` meets probe `index` of a Go program. */
void kernel_go_hit(uint32_t tgid, uint32_t tid, uint32_t index, const struct kernel_registers *at);
unsigned kernel_threads_held(void);

/* Thread `tid` of `tgid` meets a probe on a function that synchronises. */
void kernel_sync_hit(uint32_t tgid, uint32_t tid, uint64_t cookie, const struct kernel_registers *at);

/* What is recorded of a system call; a call of it, from its beginning to its end with that result. */
void kernel_set_sync_call(uint32_t number, const struct sync_call *call);
void kernel_system_call(uint32_t tgid, uint32_t tid, uint32_t number, const uint64_t arguments[6],
                        int64_t result);

/* The one socket that processes have, as descriptor KERNEL_SOCKET. Ports as numbers, 0: none. */
enum { KERNEL_SOCKET = 3, KERNEL_SOCKET_INODE = 77, KERNEL_NET = 5 };
struct kernel_socket {
    uint16_t family, type, local_port, remote_port;
    uint32_t local, remote;
    int is_tcp, had_fin;
    uint32_t copied, next, written; /* TCP: copied_seq, rcv_nxt, write_seq */
};
void kernel_set_socket(const struct kernel_socket *socket);

/* The alternate signal stack of all threads from here on. */
void kernel_set_signal_stack(uint64_t start, uint64_t size);

/* The main thread's stack ends at `top`. */
void kernel_set_main_stack(uint64_t top);

/* The one mapping of the process, and the thread block (fs) of its threads. */
void kernel_set_mapping(uint64_t start, uint64_t end, uint64_t thread_block);
unsigned kernel_mapping_lookups(void);

/* What the target's stack holds at the address that is read; `readable` 0: the read faults. */
void kernel_set_user_word(uint64_t value, int readable);

/* The same for one address, of which the last 16 are remembered by (address / 8) modulo 16. */
void kernel_set_stack_word(uint64_t address, uint64_t value);

void kernel_fork(uint32_t parent_tgid, uint32_t parent_tid, uint32_t tgid, uint32_t tid);
/* The same for a child on its parent's memory and thread control block, as clone() with these flags makes it.
 */
void kernel_clone(uint32_t parent_tgid, uint32_t parent_tid, uint32_t tgid, uint32_t tid, uint64_t flags);
/* The same for a child with memory of its own, and maybe a user namespace. */
void kernel_fork_process(uint32_t parent_tgid, uint32_t tgid, int in_namespace);
/* The kernel asks whether the process has a capability (include/uapi/linux/capability.h), in its user
 * namespace or in one `below` it. */
void kernel_capability(uint32_t tgid, int capability, int below);
/* The current thread takes its slots. */
void kernel_claim(uint32_t tgid, uint32_t tid, uint32_t ticket, uint32_t area);
/* The process has that area; one of its threads is about to wait, and says which area it has; whether threads
 * of an area may wait. */
void kernel_give_area(uint32_t tgid, uint32_t area);
void kernel_ask(uint32_t tgid, uint32_t said);
bool kernel_may_wait(uint32_t area);
void kernel_exec(uint32_t tgid, uint32_t old_tid);
/* The same with a parent that notices stops, one that has let the process have its own session, or one that
 * traces it on our behalf. */
enum kernel_parent { PARENT_ORDINARY, PARENT_SHELL, PARENT_DEBUGGER, PARENT_DAEMON, PARENT_THREAD_HOLDER };
void kernel_exec_as(uint32_t tgid, uint32_t old_tid, enum kernel_parent parent);
void kernel_exit(uint32_t tgid, uint32_t tid, int last, uint32_t exit_code, int group_exit);

/* The records in the order of their submission; NULL past the end. */
const void *kernel_record(size_t index);
size_t kernel_records(void);
size_t kernel_record_size(size_t index);
int kernel_record_woke(size_t index);

/* What a thread has lost and not reported. */
uint32_t kernel_pending_calls(uint32_t tid);
uint32_t kernel_pending_returns(uint32_t tid);
uint32_t kernel_pending_go(uint32_t tid);
uint32_t kernel_pending_sync(uint32_t tid);
uint64_t kernel_losing_threads(void);
uint64_t kernel_unplaced(void);
uint64_t kernel_life_cycle_lost(void);
uint64_t kernel_processes_lost(void);

#endif
