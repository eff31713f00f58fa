/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Every command on stores that are damaged or hostile: none dies, none takes more than ten seconds of the
 * processor or a gigabyte. Commands run in this program, in one child for each store, so that it costs
 * milliseconds and not the start of forty processes; the child's successor goes on behind a command that
 * ended it.
 *
 * TRACECTL_MUTATIONS: how many stores (12), TRACECTL_MUTATIONS_FROM: the number of the first one;
 * TRACECTL_MUTATED: a store to change instead of the one that is made here; TRACECTL_MUTATED_COMMAND: only commands
 * that begin so. What fails is kept in
 * /tmp/tracectl-mutated-NUMBER.db.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../store/go_fixture.h"
#include "analyzer/loops/vtab_loops.h"
#include "base/array.h"
#include "cli/common/command.h"
#include "store/db/db.h"
#include "store/sql/vtab.h"
#include "store/streams/sync_events.h"
#include "store_mutation.h"

#define MOST_SECONDS 10
#define MOST_MEMORY_KB (1 << 20)
#define EXIT_SANITIZER 99

/* What sanitizers end with, to be told from what a command returns. */
const char *__asan_default_options(void);
const char *__ubsan_default_options(void);
const char *__asan_default_options(void)
{
    return "exitcode=99:detect_leaks=0:allocator_may_return_null=1";
}
const char *__ubsan_default_options(void)
{
    return "exitcode=99:print_stacktrace=1";
}

int tracectl_main(int argc, char **argv); /* main() of cli/main.c, by another name */

static const char *const commands[] = {
    "runs",
    "runs --json",
    "show 1",
    "show --json 2",
    "verify",
    "verify --json",
    "calls 1",
    "calls --raw --json 2 0.0",
    "calls latest",
    "top 1",
    "top --json 2",
    "nlr 1",
    "nlr --json 2",
    "lattice 1",
    "lattice --json --full 2",
    "jsm 1",
    "cluster 1",
    "rank 1 2",
    "diff 1 2",
    "diff --json 2 1",
    "report 1 2 -o -",
    "report 2 -o -",
    "export -f chrome 1",
    "export -f csv 1",
    "export -f folded 1",
    "export -f dot 1",
    "export -f json 2",
    "export -f perfetto 1",
    "export -f otf2 -o otf2 1",
    "export -f chrome --from=0.000001 2",
    "locks 1",
    "cascade --sink=f3 1",
    "cascade --sink=f3 1 2",
    "stat 1",
    "stat --json 2",
    "go tree 1",
    "go tree --json 2",
    "go timeline 1",
    "go coverage 1",
    "go locks 1",

    "go check 1",
    "query SELECT*FROM\tcalls",
    "query SELECT*FROM\tevents",
    "query SELECT*FROM\tgoroutines",
    "query SELECT*FROM\tgo_blocks",
    "query SELECT*FROM\tgo_events",
    "query SELECT*FROM\tsync_events",
    "query SELECT*FROM\tcall_edges",
    "query SELECT*FROM\tloops",
    "query SELECT*FROM\tfunction_calls",
    "query SELECT*FROM\tevent_sites",
    "query SELECT*FROM\topen_calls",
    "query SELECT*FROM\tfunction_names\tWHERE\tfunction_names\tMATCH\t'f12'",
    "query SELECT*FROM\tsegment_functions",
    "query SELECT*FROM\tjournal_functions",
    "query SELECT*FROM\thb_edges\tWHERE\trun_id=1",
    "query SELECT*FROM\tcascades('1','f3')",
    "slow 1 f3",
    "slow --json 2 f3",
    "merge -o merged.db mutated.db good.db",
    "extension",
    "sqlite3",
    "export -f chrome -o chrome.json 1",
    "import -f chrome chrome.json -n again",
    "recover -o new.db",
    "verify -d new.db",
    "recover -d window.db",
    "recover",
    "verify",
    "gc --keep-runs 1",
    "rm 2",
    "rm 1",
    "runs"};

/* Of a child and its parent. */
struct progress {
    size_t command;        /* that is running */
    struct timespec began; /* processor time of the child */
    double longest;        /* seconds of the processor */
    size_t longest_command, finished;
};

static struct progress *progress;
static char base[128] = "base.db";

/* ------------------------------------------------------------------------------------------ a good store */

static void write_run(struct fixture *fixture, bool ended)
{
    struct generator generator = {7};
    AUTO_FREE struct process_event *events = calloc(400, sizeof(*events));
    struct process_writer *go = fixture_go_program(fixture);
    const struct sync_process_description process = {.process_id = fixture->process_id, .from_ns = 7};
    struct process_writer *sync = NULL;
    struct process_event event = {.ns = 1000, .kind = SYNC_MUTEX_LOCK};

    for (int i = 0; i < 3; i++) {
        const char *const labels[] = {"0.0", "0.1", "0.2"};
        struct stream stream = {0};

        stream_generate(&stream, (enum stream_kind)(i * 2 + ended), 3, 700);
        write_events(
            fixture_thread(fixture, labels[i], i == 2 ? TRACE_RETURNS_INFERRED : TRACE_RETURNS_PROBED),
            &stream, 0, stream.count);
        stream_release(&stream);
    }
    go_events_of_program(&generator, 3, events, 400);
    for (size_t i = 0; i < 400; i++)
        cr_assert_eq(process_writer_append(go, &events[i]), 0);
    cr_assert_eq(trace_writer_sync_process(fixture->writer, &process, &sync, NULL), 0);
    for (unsigned i = 0; i < 60; i++) {
        event.ns += 10;
        event.thread = 1 + i / 2 % 3;
        event.object = 1 + i / 6 % 4;
        event.phase = i % 4 < 2 ? SYNC_BEGIN : SYNC_AT;
        event.kind = i % 4 < 2 ? SYNC_MUTEX_LOCK : SYNC_MUTEX_UNLOCK;
        cr_assert_eq(process_writer_append(sync, &event), 0);
    }
    cr_assert_eq(trace_writer_loss(fixture->writer, 4000, 3, "buffer full", NULL), 0);
    cr_assert_eq(trace_writer_tag(fixture->writer, "size", "10", NULL), 0);
    cr_assert_eq(trace_writer_flush(fixture->writer, 90000, NULL), 0);
    if (ended)
        cr_assert_eq(trace_writer_end(fixture->writer, 100000, 0, NULL), 0);
}

/* Two runs with events of every kind; the recorder of the second one was killed. */
static void make_store(struct fixture *fixture)
{
    const struct trace_run_description run = {.name = "cut", .command = "./prog", .started_ns = 2000};
    const struct trace_process_description process = {
        .pid = 77, .rank = -1, .exe = "/bin/prog", .argv = "prog"};
    const struct trace_writer_options small = {.segment_bytes = 300};

    fixture_open(fixture, &small);
    fixture_functions(fixture, 30);
    write_run(fixture, true);
    trace_writer_free(fixture->writer);
    cr_assert_eq(trace_writer_begin(fixture->store, &run, &small, &fixture->writer, NULL), 0);
    cr_assert_eq(trace_writer_process(fixture->writer, &process, &fixture->process_id, NULL), 0);
    write_run(fixture, false);
    trace_writer_free(fixture->writer);
    fixture->writer = NULL;
    run_sql(tracestore_db(fixture->store), "UPDATE runs SET recorder = 'x 1 1'");
    tracestore_free(fixture->store);
    fixture->store = NULL;
}

/* ------------------------------------------------------------------------------------------ commands */

static void copy_file(const char *from, const char *to)
{
    AUTO_CLOSE int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    char bytes[65536];
    ssize_t size;

    cr_assert(in >= 0 && out >= 0);
    while ((size = read(in, bytes, sizeof(bytes))) > 0)
        cr_assert_eq(write(out, bytes, (size_t)size), size);
}

/* Statements on the tables that the extension adds. */
static const char *const tables[] = {"SELECT * FROM calls",
                                     "SELECT * FROM events",
                                     "SELECT * FROM call_counts",
                                     "SELECT * FROM call_edges",
                                     "SELECT * FROM loops",
                                     "SELECT * FROM goroutines",
                                     "SELECT * FROM go_events",
                                     "SELECT * FROM go_blocks",
                                     "SELECT * FROM sync_events",
                                     "SELECT * FROM function_calls",
                                     "SELECT * FROM segment_functions",
                                     "SELECT * FROM journal_functions",
                                     "SELECT * FROM open_calls"};

/* What tracestore.so does in a program with SQLite, and then some queries. */
static void use_extension(const char *path)
{
    sqlite3 *db;

    if (sqlite3_open(path, &db) == SQLITE_OK && tracestore_register_in(db, NULL) == SQLITE_OK &&
        loops_register_vtab(db) == SQLITE_OK)
        for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
            sqlite3_exec(db, tables[i], NULL, NULL, NULL);
    sqlite3_close(db);
}

/* The sanitizer that is part of this program, which has to come first where the extension is loaded. */
static void preload_sanitizer(void)
{
    AUTO_FCLOSE FILE *maps = fopen("/proc/self/maps", "re");
    char line[512], *path;

    while (maps && fgets(line, sizeof(line), maps))
        if ((path = strchr(line, '/')) && strstr(path, "/libasan.")) {
            path[strcspn(path, "\n")] = '\0';
            setenv("LD_PRELOAD", path, 1);
            return;
        }
}

/* What SQLite's own shell is told, with tracestore.so of this build: it goes on behind statements that fail. */
static void write_script(const char *path)
{
    AUTO_FCLOSE FILE *script = fopen(path, "we");
    char program[256], *end;
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);

    cr_assert(script && length > 0);
    program[length] = '\0';
    for (int up = 0; up < 4 && (end = strrchr(program, '/')); up++) /* tests/unit/mutated/PROGRAM */
        *end = '\0';
    fprintf(script, ".load %s/tracestore.so\nSELECT count(*) FROM call_graph;\n", program);
    for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
        fprintf(script, "%s;\n", tables[i]);
}

static void execute_shell(void)
{
    const struct rlimit seconds = {MOST_SECONDS, MOST_SECONDS};
    int script = open("shell.sql", O_RDONLY);

    dup2(script, STDIN_FILENO);
    setenv("ASAN_OPTIONS", __asan_default_options(), 1);
    setenv("UBSAN_OPTIONS", __ubsan_default_options(), 1);
    preload_sanitizer();
    setrlimit(RLIMIT_CPU, &seconds);
    execlp("sqlite3", "sqlite3", "mutated.db", NULL);
    _exit(EXIT_SANITIZER);
}

static void use_shell(void)
{
    int status = 0;
    pid_t shell = fork();

    if (!shell)
        execute_shell();
    if (shell < 0 || waitpid(shell, &status, 0) != shell || WIFSIGNALED(status) ||
        WEXITSTATUS(status) == EXIT_SANITIZER)
        _exit(EXIT_SANITIZER);
}

static void run_command(const char *text)
{
    char line[256], *arguments[16] = {(char *)"tracectl", (char *)"-d", (char *)"mutated.db"}, *rest;
    int count = 3;

    snprintf(line, sizeof(line), "%s", text);
    for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        arguments[count++] = word;
    for (int i = 3; i < count; i++) /* SQL in one word */
        for (char *tab = arguments[i]; (tab = strchr(tab, '\t'));)
            *tab = ' ';
    if (!strcmp(text, "extension")) {
        use_extension("mutated.db");
        return;
    }
    if (!strcmp(text, "sqlite3")) {
        use_shell();
        return;
    }
    if (!strcmp(text,
                "recover -d window.db")) { /* the store is what a flight recorder left beside another one */
        copy_file(base, "window.db");
        copy_file("before.db", "window.db-flight-9999999-1");
    }
    tracectl_main(count, arguments);
}

static double seconds_since(const struct timespec *began)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)(now.tv_sec - began->tv_sec) + (double)(now.tv_nsec - began->tv_nsec) / 1e9;
}

static void run_commands(size_t from)
{
    const struct itimerval limit = {.it_value = {.tv_sec = MOST_SECONDS}};
    const char *only = getenv("TRACECTL_MUTATED_COMMAND");
    int out = open("/dev/null", O_RDWR), err = open("stderr", O_WRONLY | O_CREAT | O_TRUNC, 0600);

    dup2(out, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    for (size_t i = from; i < ARRAY_SIZE(commands); i++) {
        if (only && strncmp(commands[i], only, strlen(only)) != 0)
            continue;
        progress->command = i;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &progress->began);
        setitimer(ITIMER_PROF, &limit, NULL);
        cli = (struct cli){0};
        run_command(commands[i]);
        if (seconds_since(&progress->began) > progress->longest) {
            progress->longest = seconds_since(&progress->began);
            progress->longest_command = i;
        }
        progress->finished++;
    }
    _exit(0);
}

/* ------------------------------------------------------------------------------------------ all of it */

static void keep_finding(uint64_t number, int status, long memory)
{
    char path[64];

    snprintf(path, sizeof(path), "/tmp/tracectl-mutated-%llu.db", (unsigned long long)number);
    copy_file("before.db", path);
    snprintf(path, sizeof(path), "/tmp/tracectl-mutated-%llu.txt", (unsigned long long)number);
    copy_file("stderr", path);
    fprintf(stderr, "# store %llu: 'tracectl %s' ended with %s %d, %ld KiB; see %s\n",
            (unsigned long long)number, commands[progress->command],
            WIFSIGNALED(status) ? "signal" : "status",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), memory, path);
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
    return remove(path);
}

/* Findings on one store. */
static size_t try_store(uint64_t number, long *largest)
{
    size_t findings = 0;

    copy_file(base, "mutated.db");
    store_mutate("mutated.db", number);
    copy_file("mutated.db", "before.db");
    copy_file(base, "good.db");
    for (size_t from = 0; from < ARRAY_SIZE(commands); from = progress->command + 1) {
        struct rusage usage;
        int status;
        pid_t child = fork();

        cr_assert_geq(child, 0);
        if (!child)
            run_commands(from);
        cr_assert_eq(wait4(child, &status, 0, &usage), child);
        *largest = usage.ru_maxrss > *largest ? usage.ru_maxrss : *largest;
        if (WIFSIGNALED(status) || WEXITSTATUS(status) == EXIT_SANITIZER ||
            usage.ru_maxrss > MOST_MEMORY_KB) {
            findings++;
            keep_finding(number, status, usage.ru_maxrss);
        }
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            break;
    }
    nftw("otf2", remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    for (const char *const *file =
             (const char *const[]){"mutated.db", "mutated.db-wal", "mutated.db-shm", "new.db", "window.db",
                                   "good.db", "merged.db", "chrome.json", "window.db-flight-9999999-1", NULL};
         *file; file++)
        unlink(*file);
    return findings;
}

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text ? strtoull(text, NULL, 10) : otherwise;
}

Test(mutated_stores, no_command_dies, .timeout = 14400)
{
    uint64_t count = number_of("TRACECTL_MUTATIONS", 12), from = number_of("TRACECTL_MUTATIONS_FROM", 1);
    struct fixture fixture;
    size_t findings = 0;
    long largest = 0;

    make_store(&fixture);
    cr_assert_eq(chdir(fixture.folder), 0);
    snprintf(base, sizeof(base), "%s",
             getenv("TRACECTL_MUTATED") ? getenv("TRACECTL_MUTATED") : fixture.path);
    write_script("shell.sql");
    progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert(progress != MAP_FAILED);
    for (uint64_t i = 0; i < count; i++)
        findings += try_store(from + i, &largest);
    if (getenv("TRACECTL_MUTATIONS"))
        fprintf(stderr, "# %llu stores, %zu commands, %zu findings; longest %.2f s (%s), largest %ld KiB\n",
                (unsigned long long)count, progress->finished, findings, progress->longest,
                commands[progress->longest_command], largest);
    cr_assert_eq(chdir("/"), 0);
    fixture_close(&fixture);
    cr_assert_eq(findings, 0);
}
