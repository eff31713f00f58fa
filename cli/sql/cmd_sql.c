/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tracectl sql: statement after statement, read only, from a terminal or from standard input.
 *
 * On a terminal Ctrl-C drops the statement that is being written, or ends the query that runs, never the
 * shell. From elsewhere it reads to the end, whatever fails, and then exits with 3 if something has.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/array.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/common/command.h"
#include "cli/common/output.h"
#include "cli/sql/sql_input.h"
#include "cli/sql/sql_names.h"
#include "cli/sql/sql_output.h"

struct sql_shell {
    sqlite3 *db;
    struct statement_guard guard;
    struct sql_input *input;
    enum sql_mode mode;
    bool csv, stats, failed, done;
    char *text; /* of the statement that has begun, from malloc */
    size_t length, capacity;
};

enum { KEY_TIMEOUT = 0x100 };

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct sql_shell *shell = state->input;

    switch (key) {
    case 'c':
        shell->csv = true;
        return 0;
    case KEY_TIMEOUT:
        shell->guard.limit_ns = sql_parse_timeout(arg, state);
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state,
                   "sql takes no arguments: it reads statements from standard input (tracectl query "
                   "runs one)");
        return 0;
    case ARGP_KEY_END:
        if (shell->csv && cli.json)
            argp_error(state, "--csv and --json cannot be combined");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option options[] = {
    {"csv", 'c', 0, 0, "Print comma-separated values, with a header line for each statement", 0},
    SQL_TIMEOUT_OPTION(KEY_TIMEOUT),
    {0},
};
static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "",
    .doc =
        "Run read-only SQL statements on the store, each ended by a semicolon.\vOn a terminal, lines "
        "can be edited, TAB completes the names of tables and columns, and the arrow keys and Ctrl-R "
        "recall earlier input, which is kept in $XDG_STATE_HOME/tracectl/sql_history (default "
        "~/.local/state). Ctrl-C ends the running query, Ctrl-D the shell. Commands: .tables [PATTERN], "
        ".schema [NAME], .mode table|csv|json|line, .stats on|off (time, and segments decoded), .help, "
        ".quit. With --json each statement gives one array of objects. docs/sql.md describes the tables.",
    .children = cli_common_children,
};

/* ------------------------------------------------------------------------------------------ Ctrl-C */

static sqlite3 *interruptible; /* set before the handler is */
static volatile sig_atomic_t interrupted;

/* A statement that has not ended by the second time does not react: the process ends as others do. */
static void on_interrupt(int number)
{
    if (interrupted) {
        signal(number, SIG_DFL);
        raise(number);
    }
    interrupted = 1;
    sqlite3_interrupt(interruptible);
}

/* From a script Ctrl-C ends the script, as it does other programs. */
static void catch_interrupt(struct sql_shell *shell)
{
    const struct sigaction action = {.sa_handler = on_interrupt};

    if (!sql_input_is_terminal(shell->input))
        return;
    interruptible = shell->db;
    /* Of a signal that comes just before the query begins SQLite would know nothing. */
    shell->guard.interrupted = &interrupted;
    sigaction(SIGINT, &action, NULL);
}

/* ------------------------------------------------------------------------------------------ statements */

static void fail(struct sql_shell *shell, const struct error *err)
{
    fflush(stdout);
    cli_fail(err);
    shell->failed = true;
}

static void print_stats(const struct timespec *started, uint64_t decoded)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    fflush(stdout);
    text_print(stderr, "%.3f s, %llu segments decoded\n",
               (double)(now.tv_sec - started->tv_sec) + (double)(now.tv_nsec - started->tv_nsec) / 1e9,
               (unsigned long long)(tracestore_decoded_segments() - decoded));
}

/* Runs the statement and prints its rows. */
static void run_statement(struct sql_shell *shell, sqlite3_stmt *statement)
{
    uint64_t decoded = tracestore_decoded_segments();
    struct error err = {0};
    struct timespec started;
    int r;

    clock_gettime(CLOCK_MONOTONIC, &started);
    statement_guard_begin(&shell->guard);
    r = sql_print(statement, shell->mode);
    if (cli_output_broken()) {
        shell->done = true;
    } else if (r != SQLITE_DONE) {
        sql_fail(shell->db, &shell->guard, &err);
        fail(shell, &err);
    } else if (shell->stats) {
        print_stats(&started, decoded);
    }
    fflush(stdout);
}

/* Runs all statements of a text. One that cannot be prepared ends it: where the next begins is not known. */
static void run_text(struct sql_shell *shell, const char *text)
{
    while (*text && !shell->done) {
        AUTO_STATEMENT *statement = NULL;
        struct error err = {0};

        if (sql_prepare(shell->db, &shell->guard, text, &statement, &text, &err) < 0) {
            fail(shell, &err);
            return;
        }
        if (statement)
            run_statement(shell, statement);
    }
}

/* ------------------------------------------------------------------------------------------ commands */

static void show_rows(struct sql_shell *shell, const char *sql, const char *pattern)
{
    AUTO_STATEMENT *row = NULL;
    struct error err = {0};

    statement_guard_begin(&shell->guard);
    if (sqlite3_prepare_v2(shell->db, sql, -1, &row, NULL) != SQLITE_OK) {
        sql_fail(shell->db, &shell->guard, &err);
        fail(shell, &err);
        return;
    }
    sqlite3_bind_text(row, 1, pattern ? pattern : "%", -1, SQLITE_STATIC);
    while (sqlite3_step(row) == SQLITE_ROW) {
        text_show_lines(stdout, cli_text(row, 0));
        putchar('\n');
    }
}

static void show_tables(struct sql_shell *shell, const char *pattern)
{
    AUTO_FREE char *sql = NULL;

    if (asprintf(&sql, "SELECT name FROM (%s) WHERE name LIKE ?1", sql_tables_query) < 0)
        sql = NULL;
    else
        show_rows(shell, sql, pattern);
}

/* Virtual tables have no text in the schema: theirs is made from their columns. */
static void show_schema(struct sql_shell *shell, const char *pattern)
{
    AUTO_FREE char *virtual_tables = NULL;

    show_rows(
        shell,
        "SELECT sql || ';' FROM (SELECT name, sql FROM main.sqlite_schema UNION ALL"
        " SELECT name, sql FROM temp.sqlite_schema) WHERE name LIKE ?1 AND sql NOTNULL"
        " AND name NOT GLOB 'function_trigrams*' AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY name",
        pattern);
    if (asprintf(&virtual_tables,
                 "SELECT '-- decoded while it is read: ' || t.name || '(' || group_concat(c.name || ' ' || "
                 "c.type, ', ') || ')' FROM (%s) t, pragma_table_info(t.name) c WHERE t.kind = 'virtual'"
                 " AND t.name LIKE ?1 GROUP BY t.name ORDER BY t.name",
                 sql_tables_query) < 0)
        virtual_tables = NULL;
    else
        show_rows(shell, virtual_tables, pattern);
}

static void set_mode(struct sql_shell *shell, const char *name)
{
    static const char *const modes[] = {
        [SQL_TABLE] = "table", [SQL_CSV] = "csv", [SQL_JSON] = "json", [SQL_LINE] = "line"};
    struct error err;

    for (size_t i = 0; name && i < ARRAY_SIZE(modes); i++) {
        if (!strcmp(name, modes[i])) {
            shell->mode = (enum sql_mode)i;
            return;
        }
    }
    error_say(&err, -EINVAL, "mode '%s': no such mode (table, csv, json or line)", name ? name : "");
    fail(shell, &err);
}

static void set_stats(struct sql_shell *shell, const char *word)
{
    shell->stats = !word || strcmp(word, "off") != 0;
}

static void show_help(struct sql_shell *shell, const char *word)
{
    puts(
        ".tables [PATTERN]           tables and views whose names match the LIKE pattern\n"
        ".schema [PATTERN]           their columns\n"
        ".mode table|csv|json|line   how rows are printed\n"
        ".stats on|off               time and decoded segments after each statement\n"
        ".help                       this list\n"
        ".quit                       ends the shell, as Ctrl-D does\n"
        "Everything else is SQL, up to a semicolon. TAB completes names, Ctrl-C ends a query.");
}

static void quit(struct sql_shell *shell, const char *word)
{
    shell->done = true;
}

/* A line that begins with a dot: a command and at most one word. */
static void run_command(struct sql_shell *shell, char *line)
{
    static const struct {
        const char *name;
        void (*run)(struct sql_shell *shell, const char *word);
    } commands[] = {
        {".tables", show_tables}, {".schema", show_schema}, {".mode", set_mode}, {".stats", set_stats},
        {".help", show_help},     {".quit", quit},          {".exit", quit},
    };
    static const char space[] = " \t\r\n;";
    char *rest = NULL, *name = strtok_r(line, space, &rest), *word = strtok_r(NULL, space, &rest);
    struct error err;

    for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
        if (!strcmp(name, commands[i].name)) {
            commands[i].run(shell, word);
            fflush(stdout);
            return;
        }
    }
    error_say(&err, -EINVAL, "command '%s': no such command (.help lists them)", name);
    fail(shell, &err);
}

/* ------------------------------------------------------------------------------------------ lines */

static int append(struct sql_shell *shell, const char *line)
{
    size_t size = strlen(line);

    if (array_reserve(&shell->text, &shell->capacity, shell->length + size + 1) < 0)
        return -ENOMEM;
    memcpy(shell->text + shell->length, line, size + 1);
    shell->length += size;
    return 0;
}

/* Takes a line, and runs what it completes. */
static int take_line(struct sql_shell *shell, const char *line, struct error *err)
{
    bool begins = !shell->length;

    if (begins && !line[strspn(line, " \t\r\n")])
        return 0;
    if (append(shell, line) < 0)
        return error_no_memory(err);
    if (begins && line[strspn(line, " \t")] == '.') {
        sql_input_remember(shell->input, shell->text);
        run_command(shell, shell->text);
        shell->length = 0;
    } else if (sqlite3_complete(shell->text)) {
        sql_input_remember(shell->input, shell->text);
        run_text(shell, shell->text);
        shell->length = 0;
    }
    return 0;
}

static int run_shell(struct sql_shell *shell, struct error *err)
{
    const char *line;
    int r = 0;

    catch_interrupt(shell);
    while (r == 0 && !shell->done) {
        enum sql_line what;

        interrupted = 0;
        what = sql_input_read(shell->input, shell->length > 0, &line);
        if (what == SQL_LINE_END)
            break;
        if (what == SQL_LINE_CANCELLED)
            shell->length = 0;
        else
            r = take_line(shell, line, err);
    }
    if (r == 0 && !shell->done && sql_input_is_terminal(shell->input))
        putchar('\n');
    else if (r == 0 && !shell->done && shell->length)
        run_text(shell, shell->text); /* the last one without its semicolon */
    return r;
}

static void release_shell(struct sql_shell *shell)
{
    statement_guard_release(&shell->guard);
    free(shell->text);
}

static int run(int argc, char **argv)
{
    CLEANUP(release_shell) struct sql_shell shell = {.guard.limit_ns = SQL_TIMEOUT_NS};
    AUTO_STORE struct tracestore *store = NULL;
    struct sql_names *names = NULL;
    struct error err = {0};
    int r;

    cli_parse(&cmd_sql, argc, argv, &shell);
    shell.mode = cli.json ? SQL_JSON : shell.csv ? SQL_CSV : SQL_TABLE;
    r = sql_open(&store, &shell.guard, &err);
    if (r == 0) {
        shell.db = tracestore_db(store);
        r = sql_names_new(shell.db, &names, &err);
    }
    if (r == 0)
        r = sql_input_new(names, &shell.input, &err);
    if (r == 0)
        r = run_shell(&shell, &err);
    sql_input_free(shell.input);
    sql_names_free(names);
    if (r < 0)
        return cli_fail(&err);
    return cli_finish(shell.failed && !isatty(STDIN_FILENO) ? EXIT_FAILED : EXIT_NOTHING_FOUND);
}

const struct command cmd_sql = {
    .name = "sql",
    .summary = "interactive read-only SQL shell",
    .argp = &argp,
    .examples =
        "Explore a store interactively:\n"
        "  tracectl sql\n"
        "Run the statements of a file:\n"
        "  tracectl sql --csv < report.sql\n",
    .run = run,
};
