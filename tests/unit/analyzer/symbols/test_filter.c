/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "analyzer/symbols/filter.h"
#include "analyzer/symbols/symbols.h"
#include "base/error.h"

static bool keeps(const char *spec, const char *custom, const char *name)
{
    struct filter *filter = NULL;
    struct error err = {0};
    bool kept;
    const struct filter_function function = {.name = name};

    cr_assert_eq(filter_new(spec, custom, &filter, &err), 0, "%s", err.message);
    kept = filter_keeps(filter, &function);
    filter_free(filter);
    return kept;
}

/* `names` are separated by blanks; those behind a '-' are dropped, the others kept. */
static void expect(const char *spec, const char *custom, const char *names)
{
    char copy[1024], *rest = copy, *name;

    cr_assert_lt(strlen(names), sizeof(copy));
    strcpy(copy, names);
    while ((name = strsep(&rest, " "))) {
        bool wanted = *name != '-';

        name += !wanted;
        cr_assert_eq(keeps(spec, custom, name), wanted, "%s %s %s", spec ? spec : "no filter",
                     wanted ? "drops" : "keeps", name);
    }
}

Test(filter, keeps_everything_by_default)
{
    expect(NULL, NULL, "main MPI_Send MPI_Send@plt _ZN6Domain1xEi");
    expect("", NULL, "main memcpy@plt");
    expect("everything", NULL, "main memcpy@plt");
    expect("returns", NULL, "main memcpy@plt");
}

Test(filter, predefined_sets)
{
    expect("mpi", NULL,
           "MPI_Send MPI_Finalize MPI_Comm_rank mpi_send_ -main -PMPI_Send -MPID_Send -my_MPI_Send");
    expect("mpiall", NULL, "MPI_Send PMPI_Send MPID_Send MPIR_Err -main");
    expect("mpicol", NULL,
           "MPI_Barrier MPI_Allreduce MPI_Bcast MPI_Ibcast MPI_Alltoallv -MPI_Send -MPI_Barriers");
    expect("mpisr", NULL, "MPI_Send MPI_Isend MPI_Recv MPI_Irecv MPI_Wait -MPI_Waitall -MPI_Barrier");
    expect("mpi-internal", NULL, "MPID_Send MPIR_Wait_impl ompi_request_wait -MPI_Send -main");
    expect("omp", NULL, "GOMP_parallel omp_get_thread_num GOMP_critical_start -gomp_team -my_omp_");
    expect("ompcrit", NULL, "GOMP_critical_start GOMP_critical_name_end -GOMP_parallel -omp_set_lock");
    expect("ompmutex", NULL, "omp_set_lock omp_unset_nest_lock gomp_mutex_lock_slow -GOMP_critical_start");
    expect("mem", NULL,
           "memcpy __memcpy_avx memset malloc AllocateNodes free _Znwm _ZdlPv -strcpy -freeze -main");
    expect("alloc", NULL,
           "malloc calloc realloc free posix_memalign aligned_alloc __libc_malloc _Znam -memcpy "
           "-AllocateNodes");
    expect("syscalls", NULL,
           "read pwrite64 openat __libc_fork waitpid mmap futex epoll_wait sendmsg shmget rt_sigaction "
           "-fread -strlen -readline -timer");
    expect("go-runtime", NULL,
           "runtime.mallocgc runtime/internal/atomic.Cas internal/runtime/maps.New gogo memeqbody "
           "type:.eq.main.T -main.main -fmt.Println -runtime_init");
    expect("go-std", NULL,
           "fmt.Println net/http.(*conn).serve runtime.mallocgc -main.main -github.com/a/b.F -format");
    expect("go-user", NULL,
           "main.main main.(*T).run main.Map[go.shape.int] github.com/a/b.(*T).F mine/sub.F -fmt.Println "
           "-net/http.Get -runtime.mallocgc -main -f.part.0 -f._omp_fn.0 -libc.so.6+0x1234 -_ZN1a1bEv.cold");
    expect("cxx-std", NULL,
           "_ZNSt6vectorIiSaIiEE9push_backEOi _ZSt4moveIiEvT_ _ZNKSs4sizeEv _ZN9__gnu_cxx1xEv __cxa_throw "
           "-_ZN6Domain1xEi -main");
    expect("cxx-user", NULL, "_ZN6Domain1xEi _Z4testRSt6vectorIiSaIiEE -_ZSt4moveIiEvT_ -_Znwm -main");
    expect("net", NULL, "socket send recvmsg tcp_close sched_yield getaddrinfo -sender -main");
    expect("poll", NULL, "poll epoll_wait sched_yield select -selection -main");
    expect("str", NULL, "strlen strcpy strncmp strtok __strdup wcslen strcasecmp -strange -main");
    expect("pthread", NULL, "pthread_mutex_lock __pthread_once sem_wait thrd_create -thread");
}

Test(filter, sets_are_united_and_custom_adds)
{
    expect("mpi,mem", NULL, "MPI_Send memcpy -main");
    expect("mpi", "^CPU_", "MPI_Send CPU_Exec -my_CPU_");
    expect(NULL, "^CPU_", "CPU_Exec -main -MPI_Send");
}

Test(filter, the_stub_suffix_does_not_matter_to_sets)
{
    expect("mpi", NULL, "MPI_Send@plt -memcpy@plt");
    expect("mpisr", "^CPU_Exec$", "MPI_Send@plt CPU_Exec@plt");
}

Test(filter, stubs_are_removed_unless_a_set_keeps_them)
{
    expect("plt", NULL, "main MPI_Send -MPI_Send@plt");
    expect("plt,mpi", NULL, "MPI_Send@plt -memcpy@plt -main");
    expect("@plt", NULL, "MPI_Send@plt -main");
}

Test(filter, terms_with_a_mark_drop_what_others_keep)
{
    expect("!mem", NULL, "main MPI_Send -memcpy -memcpy@plt -malloc");
    expect("-mem", NULL, "main -memcpy");
    expect("!mem,!mpi", NULL, "main -memcpy -MPI_Send");
    expect("mpi,!mpisr", NULL, "MPI_Barrier -MPI_Send -main");
    expect("!mpisr,mpi", NULL, "MPI_Barrier -MPI_Send -main");
    expect("everything,!@plt", NULL, "main -puts@plt");
    expect("mpi,!@plt", NULL, "MPI_Send -MPI_Send@plt");
    expect("!mem,plt", NULL, "main -puts@plt -memcpy");
    expect("!mpi", "^MPI_Send$", "-MPI_Send -MPI_Recv -main");
    expect("!everything", NULL, "-main");
}

Test(filter, expressions_of_the_user)
{
    expect("/^CPU_/", NULL, "CPU_Exec -my_CPU_");
    expect("/^a{2,3}$/,mpi", NULL, "aa aaa MPI_Send -a -aaaa");
    expect("/net/http/ , mpi", NULL, "net/http.Get MPI_Send -net.Dial");
    expect("!/^CPU_/", NULL, "main -CPU_Exec");
    expect("/@plt$/", NULL, "puts@plt -puts");
}

static bool keeps_function(const char *spec, const struct filter_function *function)
{
    struct filter *filter = NULL;
    struct error err = {0};
    bool kept;

    cr_assert_eq(filter_new(spec, NULL, &filter, &err), 0, "%s", err.message);
    kept = filter_keeps(filter, function);
    filter_free(filter);
    return kept;
}

Test(filter, all_names_of_a_function_are_asked)
{
    static char *const send_names[] = {"PMPI_Send", NULL}, *const mangled[] = {"_ZN3foo3barEi", NULL},
                       *const stub_names[] = {"strchr@plt", NULL};
    const struct filter_function send = {.name = "MPI_Send", .aliases = send_names};
    const struct filter_function internal = {.name = "PMPI_Send"};
    const struct filter_function folded = {.name = "plain", .aliases = mangled};
    const struct filter_function stub = {.name = "index@plt", .aliases = stub_names};

    cr_assert(keeps_function("mpi", &send));
    cr_assert(keeps_function("/^PMPI_/", &send));
    cr_assert_not(keeps_function("everything,!/^PMPI_/", &send));
    cr_assert(keeps_function("mpi,!mpi-internal", &send), "it is MPI's own name of a public function");
    cr_assert(keeps_function("mpi-internal", &internal));
    cr_assert(keeps_function("/^foo::bar/", &folded), "aliases are demangled");
    cr_assert(keeps_function("/^plain$/", &folded));
    cr_assert_not(keeps_function("/^foo::baz/", &folded));
    cr_assert(keeps_function("/^strchr$/", &stub));
    cr_assert(keeps_function("@plt", &stub));
}

Test(filter, images_and_source_folders)
{
    const struct filter_function copy = {"memcpy", NULL, "/usr/lib/libc.so.6", "string/memcpy.c", NULL};
    const struct filter_function receive = {"tcp_in", NULL, "/opt/x/server", "/build/x/src/net/tcp.c", NULL};
    const struct filter_function unknown = {.name = "f"};

    cr_assert(keeps_function("image:libc*", &copy));
    cr_assert(keeps_function("image:/usr/lib/*", &copy));
    cr_assert_not(keeps_function("image:libc", &copy));
    cr_assert_not(keeps_function("image:libc*", &receive));
    cr_assert_not(keeps_function("!image:libc*", &copy));
    cr_assert(keeps_function("!image:libc*", &receive));
    cr_assert(keeps_function("source:src/net/", &receive));
    cr_assert(keeps_function("source:src/net", &receive));
    cr_assert(keeps_function("source:tcp.*", &receive));
    cr_assert_not(keeps_function("source:src/ne", &receive));
    cr_assert_not(keeps_function("source:src/net/", &copy));
    cr_assert_not(keeps_function("source:*", &unknown));
    cr_assert_not(keeps_function("image:*", &unknown));
    cr_assert(keeps_function("!source:*,!image:*", &unknown));
}

Test(filter, says_what_a_recorder_must_know)
{
    struct filter *filter = NULL;

    cr_assert_eq(filter_new("mpi,image:lib[mc]*", NULL, &filter, NULL), 0);
    cr_assert(filter_takes_image(filter, NULL));
    cr_assert(filter_takes_image(filter, "/lib/libm.so.6"));
    cr_assert_not(filter_takes_image(filter, "/lib/libz.so.1"));
    cr_assert_not(filter_asks_source(filter));
    cr_assert_not(filter_is_for_reading(filter));
    filter_free(filter);
    cr_assert_eq(filter_new("!image:libc*,source:src,!returns", NULL, &filter, NULL), 0);
    cr_assert_not(filter_takes_image(filter, NULL));
    cr_assert(filter_asks_source(filter));
    cr_assert(filter_is_for_reading(filter));
    cr_assert(filter_keeps_returns(filter));
    filter_free(filter);
}

static struct filter *parse(const char *spec)
{
    struct filter *filter = NULL;
    struct error err = {0};

    cr_assert_eq(filter_new(spec, "^CPU_Exec$", &filter, &err), 0, "%s", err.message);
    return filter;
}

Test(filter, codes_of_the_papers)
{
    struct filter *filter = parse("11.mem.ompcrit.cust.0K10");

    cr_assert_not(filter_keeps_returns(filter));
    cr_assert_eq(filter_max_body(filter), 10);
    filter_free(filter);
    filter = parse("01.mem.ompcrit.cust.0K50");
    cr_assert(filter_keeps_returns(filter));
    cr_assert_eq(filter_max_body(filter), 50);
    filter_free(filter);
    expect("11.mem.ompcrit.cust.0K10", "^CPU_Exec$",
           "memcpy@plt GOMP_critical_start@plt CPU_Exec -MPI_Send -main");
    expect("11.plt.mem.cust.0K10", NULL, "memcpy puts@plt -main");
    expect("11.mem.cust.1K10", NULL, "memcpy@plt main -puts@plt");
    expect("10.mem.cust.1K10", NULL, "memcpy@plt main puts@plt");
    expect("11.mpicol.cust.0K38", NULL, "MPI_Bcast@plt -MPI_Send@plt -main");
}

Test(filter, refuses_what_it_does_not_know)
{
    static const char *const wrong[] = {"mpj",
                                        "mpi,,mem",
                                        "mpi,",
                                        "!",
                                        "!plt",
                                        "!!mem",
                                        "/(/",
                                        "//",
                                        "/abc",
                                        "image:",
                                        "!source:",
                                        "mpi mem",
                                        "11.mem.cust",
                                        "11.mem.0K0",
                                        "11.mem.0K1001",
                                        "11.mem.2K10",
                                        "11.nonsense.0K10",
                                        "11.mem.0K10x",
                                        "11..0K10",
                                        "11.mem.0K99999999999999999999"};
    struct filter *filter = NULL;
    struct error expression = {0};

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct error err = {0};

        cr_assert_eq(filter_new(wrong[i], NULL, &filter, &err), -EINVAL, "%s is taken", wrong[i]);
        cr_assert_not_null(strstr(err.message, "filter '"), "%s", err.message);
    }
    cr_assert_eq(filter_new(NULL, "(", &filter, &expression), -EINVAL);
    cr_assert_not_null(strstr(expression.message, "regular expression '('"));
    cr_assert_null(filter);
}

Test(symbols, stubs_lose_their_suffix_where_it_says_nothing)
{
    struct symbol_table table = {0};
    uint32_t send = 0, copy = 0, again = 0;

    cr_assert_eq(symbols_add(&table, "MPI_Send@plt", NULL, &send), 0);
    cr_assert_eq(symbols_add(&table, "memcpy@plt", NULL, &copy), 0);
    cr_assert_eq(symbols_add(&table, "MPI_Send@plt", NULL, &again), 0);
    cr_assert_eq(send, again);
    cr_assert_neq(send, copy);
    cr_assert_str_eq(symbols_name(&table, send), "MPI_Send");
    cr_assert_eq(symbols_mention(&table, "MPI_Send"), 0);
    cr_assert_str_eq(symbols_name(&table, send), "MPI_Send@plt");
    cr_assert_str_eq(symbols_name(&table, copy), "memcpy");
    cr_assert_str_eq(symbols_name(&table, SYMBOL_RETURN), "return");
    symbols_release(&table);
}

Test(symbols, demangled_names_are_for_people)
{
    struct symbol_table table = {0};
    uint32_t symbol = 0;

    cr_assert_eq(symbols_add(&table, "_Z1fi@plt", "f(int)@plt", &symbol), 0);
    cr_assert_str_eq(symbols_name(&table, symbol), "_Z1fi");
    cr_assert_str_eq(symbols_demangled(&table, symbol), "f(int)");
    symbols_release(&table);
}
