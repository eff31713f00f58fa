/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usage: cheats
 *
 * Programs with inline probes that attack their recorder by the memory that both have: what they may write
 * there they make worse than any stub would. Runs itself once for each way, all at the same time, and besides
 * as "cheats honest", which calls honest_work() HONEST times. Each says its process id and what it is. Ends
 * with 0 when all of them do: an attacker when nothing could be written that must not be.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Not by the recorder's own headers: an attacker goes by what it finds. */
#define COUNTS 36864u
#define CHUNK 16384u
#define HEAD 64u
#define RECORD 16u
#define HONEST 20000
#define MARKS 512

static volatile unsigned long sum;
static int failures; /* of what must not go */

__attribute__((noinline)) void work(unsigned value)
{
    sum += value;
    __asm__ volatile("" : : : "memory");
}

__attribute__((noinline)) void honest_work(unsigned value)
{
    sum += value;
    __asm__ volatile("" : : : "memory");
}

static void honest(void)
{
    for (unsigned i = 0; i < HONEST; i++) {
        honest_work(i);
        if (i % 100 == 0)
            usleep(2000);
    }
}

/* ---------------------------------------------------------------------------------------------- what there
 * is */

struct mapping {
    uint8_t *start, *end;
    char rights[5], name[256];
};

/* The first mapping of a memory file of tracectl's whose line has this in its name and that among its rights.
 */
static int find(const char *name, const char *right, struct mapping *ret_mapping)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    struct mapping mapping;
    unsigned long start, end;
    char line[512];
    int found = 0;

    while (maps && !found && fgets(line, sizeof(line), maps)) {
        mapping.name[0] = 0;
        if (sscanf(line, "%lx-%lx %4s %*s %*s %*s %255[^\n]", &start, &end, mapping.rights, mapping.name) < 3)
            continue;
        found = strstr(mapping.name, name) && strstr(mapping.rights, right);
        mapping.start = (uint8_t *)start; /* NOLINT(performance-no-int-to-ptr) */
        mapping.end = (uint8_t *)end;     /* NOLINT(performance-no-int-to-ptr) */
    }
    if (maps)
        fclose(maps);
    if (found)
        *ret_mapping = mapping;
    return found;
}

static struct mapping rings_or_die(void)
{
    struct mapping rings = {0};

    for (int i = 0; i < 100; i++)
        work((unsigned)i);
    if (!find("memfd:tracectl rings", "rw", &rings)) {
        fprintf(stderr, "there are no rings\n");
        exit(3);
    }
    return rings;
}

static uint8_t *chunks_of(const struct mapping *rings)
{
    return rings->start + COUNTS;
}

static void for_each_word(const struct mapping *rings, void (*change)(volatile uint32_t *record))
{
    for (uint8_t *chunk = chunks_of(rings); chunk + CHUNK <= rings->end; chunk += CHUNK)
        for (unsigned at = HEAD; at + RECORD <= CHUNK; at += RECORD)
            if (*(volatile uint32_t *)(chunk + at))
                change((volatile uint32_t *)(chunk + at));
}

static uint8_t *own_chunk(const struct mapping *rings)
{
    uint64_t cursor;

    __asm__ volatile("movq %%fs:0x80,%0" : "=r"(cursor));
    return chunks_of(rings) + ((uint32_t)cursor - 1) / CHUNK * CHUNK;
}

/* ---------------------------------------------------------------------------------------------- ways to
 * cheat */

static void no_such_function(volatile uint32_t *record)
{
    *record = 0x7fffffff;
}

static void no_such_tick(volatile uint32_t *record)
{
    record[3] &= 0xffff;
}

static void cheat_functions(void)
{
    struct mapping rings = rings_or_die();

    for_each_word(&rings, no_such_function);
}

static void cheat_ticks(void)
{
    struct mapping rings = rings_or_die();

    for_each_word(&rings, no_such_tick);
}

/* Every word of the counts, one by one up to where that is noticed. */
static void cheat_counts(void)
{
    struct mapping rings = rings_or_die();

    memset(rings.start, 0xfe, 64);
}

static void cheat_losses(void)
{
    struct mapping rings = rings_or_die();

    memset(own_chunk(&rings) + 8, 0xff,
           HEAD - 8); /* wherever the count is: state and ticket stand before it */
}

static void set_cursor(uint64_t cursor)
{
    __asm__ volatile("movq %0,%%fs:0x80" : : "r"(cursor));
}

/* With probes of the kernel's: a jump would have no room. */
__asm__(
    ".text\n"
    ".globl tiny\n.type tiny,@function\ntiny: push %rbp\n pop %rbp\n ret\n.size tiny,.-tiny\n"
    ".globl tiny_too\n.type tiny_too,@function\ntiny_too: push %rbp\n pop %rbp\n ret\n.size "
    "tiny_too,.-tiny_too\n");
void tiny(void);
void tiny_too(void);

/* Into the head of the own chunk, and into none at all, where everything looks written. */
static void cheat_cursor(void)
{
    struct mapping rings = rings_or_die();
    uint8_t *own = own_chunk(&rings);
    uint64_t offset = (uint64_t)(own - chunks_of(&rings)), cursor;

    __asm__ volatile("movq %%fs:0x80,%0" : "=r"(cursor));
    for (uint8_t *at = own + HEAD + RECORD; at + RECORD <= rings.end; at += RECORD)
        if ((size_t)(at - chunks_of(&rings)) % CHUNK >= HEAD)
            memcpy(at, own + HEAD, RECORD);
    for (unsigned i = 1; i < HEAD; i++) {
        set_cursor(0xffffff0000000000ull | (offset + i));
        tiny();
        set_cursor(0xffffff0000000000ull | (0xfffffff0u + i));
        tiny_too();
    }
    set_cursor(cursor);
}

/* Says that slots with any number were taken, in all areas. */
static void cheat_claims(void)
{
    struct mapping agent = {0};
    void (*claim)(uint32_t ticket, uint32_t area);

    rings_or_die();
    if (!find("memfd:agent of tracectl", "x", &agent))
        exit(3);
    claim = (void (*)(uint32_t, uint32_t))(agent.start + 0x80);
    for (uint32_t area = 0; area < 8; area++)
        for (uint32_t ticket = 0; ticket < 200; ticket++)
            claim(ticket, area);
}

/* Lets all through that is ever called; but whether it allows futex() depends on the arguments, so that nobody may wait
 * by it. */
static int set_filter(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x7fffffff, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog filter = {.len = sizeof(rules) / sizeof(rules[0]), .filter = rules};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

/* Says that threads of all areas must not wait for the recorder. It is believed for its own. */
static void cheat_marks(void)
{
    struct mapping agent = {0}, page = {0};
    void (*ask)(uint32_t area);
    unsigned marks = 0;

    rings_or_die();
    if (!find("memfd:agent of tracectl", "x", &agent) || !find("bpf-map", "r", &page) || set_filter())
        exit(3);
    ask = (void (*)(uint32_t))(agent.start + 0x90);
    for (uint32_t area = 0; area < MARKS; area++)
        ask(area);
    for (uint32_t area = 0; area < MARKS; area++)
        marks += ((volatile uint64_t *)page.start)[area] != 0;
    if (marks != 1) {
        fprintf(stderr, "%u areas are marked\n", marks);
        failures++;
    }
}

/* Waits until the recorder has looked twice: the tick stands at 64 in the head. */
static void wait_for_looks(void)
{
    struct mapping head = {0};
    volatile uint64_t *tick;
    uint64_t last;

    if (!find("memfd:tracectl (deleted)", "r", &head))
        exit(3);
    tick = (volatile uint64_t *)(head.start + 64);
    for (int looks = 0; looks < 3; looks++)
        for (last = *tick; *tick == last;)
            usleep(1000);
}

/* Takes the memory away from under everybody who has it, as far as that goes. */
static void cheat_holes(void)
{
    struct mapping rings = rings_or_die();

    wait_for_looks();
    madvise(rings.start, (size_t)(rings.end - rings.start), MADV_REMOVE);
}

/* Puts other memory where the rings were. */
static void cheat_remap(void)
{
    struct mapping rings = rings_or_die();

    (void)mmap(rings.start, (size_t)(rings.end - rings.start), PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* ---------------------------------------------------------------------------------------------- what must
 * not go */

static void must_fail(const char *what, int result)
{
    if (result >= 0) {
        fprintf(stderr, "%s: that was let through\n", what);
        failures++;
    }
}

/* A descriptor of the file that is mapped there, as far as this process may have one. */
static int reopen(const struct mapping *mapping, int flags)
{
    char path[128];

    snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", (unsigned long)mapping->start,
             (unsigned long)mapping->end);
    return open(path, flags);
}

static void attack_code(const char *name)
{
    struct mapping code = {0};
    char byte = 0;
    int fd;

    if (!find(name, "x", &code)) {
        must_fail("no code to attack", 0);
        return;
    }
    if (code.rights[3] == 's')
        must_fail("mprotect",
                  mprotect(code.start, (size_t)(code.end - code.start), PROT_READ | PROT_WRITE | PROT_EXEC));
    fd = reopen(&code, O_RDWR);
    if (fd < 0)
        return;
    must_fail("write", (int)pwrite(fd, &byte, 1, 0));
    must_fail("truncate", ftruncate(fd, 0));
    must_fail("punch", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
    must_fail("map", mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0);
    must_fail("seal", fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
    close(fd);
}

static void cheat_code(void)
{
    struct mapping rings = rings_or_die(), head = {0};
    int fd;

    attack_code("memfd:tracectl (deleted)");
    attack_code("memfd:agent of tracectl");
    if (find("memfd:tracectl (deleted)", "r-", &head))
        must_fail("mprotect of the head", mprotect(head.start, 4096, PROT_READ | PROT_WRITE));
    fd = reopen(&rings, O_RDWR);
    if (fd < 0)
        return;
    must_fail("truncate of the rings", ftruncate(fd, 4096));
    must_fail("growth of the rings", ftruncate(fd, 1l << 40));
    must_fail("seal of the rings", fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE));
    fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, rings.end - rings.start);
    close(fd);
}

/* ---------------------------------------------------------------------------------------------- all together
 */

static const struct {
    const char *name;
    void (*cheat)(void);
} ways[] = {
    {"functions", cheat_functions}, {"ticks", cheat_ticks},   {"counts", cheat_counts},
    {"losses", cheat_losses},       {"cursor", cheat_cursor}, {"claims", cheat_claims},
    {"holes", cheat_holes},         {"remap", cheat_remap},   {"code", cheat_code},
    {"marks", cheat_marks},         {"honest", honest},
};
#define WAYS (sizeof(ways) / sizeof(*ways))

static int run(const char *how)
{
    printf("%d %s\n", (int)getpid(), how);
    fflush(stdout);
    for (size_t i = 0; i < WAYS; i++)
        if (!strcmp(how, ways[i].name))
            ways[i].cheat();
    for (unsigned i = 0; i < 3000; i++) {
        work(i);
        if (i % 100 == 0)
            usleep(1000);
    }
    return failures != 0;
}

int main(int count, char **arguments)
{
    int result = 0, status;

    if (count > 1)
        return run(arguments[1]);
    for (size_t i = 0; i < WAYS; i++) {
        pid_t child = fork();

        if (!child) {
            execl("/proc/self/exe", "cheats", ways[i].name, (char *)NULL);
            _exit(4);
        }
        if (child < 0)
            return 5;
    }
    while (wait(&status) > 0)
        result |= status != 0;
    return result;
}
