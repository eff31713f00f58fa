# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Included by the Makefile: everything that tests, measures and demonstrates.
#
# make test       packages, build, then all of the following; the last line is "N passed, N failed"
# make unit       Criterion tests of every folder, and of the BPF logic compiled for the host; T=NAME builds and runs those
#                 with NAME in their path, and shows all that they print
# make e2e        tests/e2e/*.sh: record, query and compare real programs; E2E="record.sh signals.sh" picks some
# make harm       tests/harm/run: programs that probes might hurt, and what tracectl says of them; HARM=REGEX picks rows
# make fuzz       every fuzzer for FUZZ_SECONDS (5)
# make san        unit tests and some e2e tests of a build with AddressSanitizer and UBSan
# make kernels    tests/kernels/run: boots Debian's 6.1 and 6.12 kernels under qemu and records there (some minutes; the
#                 processor is emulated); KERNELS=6.12 picks some
# make lint, make bench, make demo
# make bench-capture   what capturing costs, beside bpftrace, callgrind and uftrace (10 minutes; BENCH_QUICK=1: 2)
# make bench-store     what keeping and asking costs, beside zstd, xz, lz4, gzip, a plain SQLite table and uftrace's
#                      own format, of what it records; TRACES=DIR adds the sets of .u16 files below DIR
# make bench-analysis  what lattice, similarity, clustering and B-score of 10,000 threads take, beside SciPy; nested loop
#                      recognition, of the sets of .u16 files below TRACES=DIR, too; 200,000 stacks in order
# make bench-stat      how long stat -p takes of 10,000 threads; how often it finds the rank that stalls (half an hour)
# make bench-stat-faults  how often stat finds the rank at fault, of 20 hangs for each kind of fault, of 32 ranks (long;
#                      tests/bench/stat_faults -n 5 -r 4: less)
# make bench-stat-servers  what stat -p does to servers under load, and whether others see the same calls (6 minutes)
# make bench-cascade   what the sinks of the sample service take when its planted cascades are hit (a minute)
# make bench-accuracy  how often the thread at fault leads the suspects, in recordings of programs with faults (10
#                      minutes)

FUZZ_SECONDS ?= 5
SAN_FLAGS := address,undefined
SAN_O := $(O)-$(subst $(comma),-,$(SAN_FLAGS))
ifneq ($(SAN),)
PLAIN_O := $(O:-$(subst $(comma),-,$(SAN))=)
else
PLAIN_O := $(O)
endif

# ------------------------------------------------------------------------------------------ sample programs

# All but the exceptions to the rule are built alike: -O1 -g, threads, as a PIE. Not with the project's CFLAGS or
# sanitizers: they are what is measured, not what is tested.
P := $(PLAIN_O)/tests/programs
PROGRAM_FLAGS := -D_GNU_SOURCE -Wall -Wextra -Wno-unused-parameter -Wno-infinite-recursion -g -pthread
PROGRAMS := $(patsubst tests/programs/%.c,$(P)/%,$(filter-out %/releases.c %/poisson.c %/mpi_faults.c %/mpi_yield.c,$(wildcard tests/programs/*.c))) \
	$(patsubst tests/programs/%.cc,$(P)/%,$(wildcard tests/programs/*.cc)) \
	$(P)/million_stripped $(P)/million_frames $(P)/busy_static $(P)/forks_nop5 $(P)/recursion_nonpie \
	$(P)/recursion_pg $(P)/profiled_pg $(P)/release_1 $(P)/release_2 $(P)/poisson_O0 $(P)/poisson_O2 $(P)/heat_O0 $(P)/heat_O2 \
	$(P)/libmpi_faults.so $(P)/libmpi_yield.so $(P)/cascade_service

$(P)/%: tests/programs/%.c $(wildcard tests/programs/*.h)
	$(say) PROG $@
	@mkdir -p $(dir $@)
	$(Q)gcc $(PROGRAM_FLAGS) -O1 -o $@ $< $(PROGRAM_LIBS)

$(P)/%: tests/programs/%.cc $(wildcard tests/programs/*.h)
	$(say) PROG $@
	@mkdir -p $(dir $@)
	$(Q)g++ $(PROGRAM_FLAGS) -O1 -o $@ $<

$(P)/odd_even_sort $(P)/ilcs_tsp $(P)/leap_frog: $(P)/%: tests/programs/%.c tests/programs/planted.h
	$(say) PROG $@
	@mkdir -p $(dir $@)
	$(Q)mpicc $(PROGRAM_FLAGS) -O1 -o $@ $<

$(P)/ilcs_tsp: PROGRAM_FLAGS += -fopenmp

# One program in two versions.
$(P)/release_%: tests/programs/releases.c
	$(say) PROG $@
	@mkdir -p $(dir $@)
	$(Q)gcc $(PROGRAM_FLAGS) -O1 -DRELEASE=$* -o $@ $<

$(P)/poisson_%: tests/programs/poisson.c tests/programs/planted.h
	$(say) PROG $@
	@mkdir -p $(dir $@)
	$(Q)mpicc $(PROGRAM_FLAGS) -$* -o $@ $<

# What it is about is not to be inlined.
$(P)/heat_%: tests/programs/heat.f90
	$(say) PROG $@
	@mkdir -p $(dir $@)/$*.modules
	$(Q)gfortran -g -$* -fno-inline -fopenmp -J $(dir $@)/$*.modules -o $@ $<

# To be preloaded into MPI programs.
$(P)/libmpi_%.so: tests/programs/mpi_%.c
	$(say) PROG $@
	@mkdir -p $(dir $@)
	$(Q)mpicc $(PROGRAM_FLAGS) -O1 -fPIC -shared -o $@ $<

# A service of several processes, in several files.
$(P)/cascade_service: $(wildcard tests/programs/cascade/*.c) tests/programs/cascade/service.h
	$(say) PROG $@
	@mkdir -p $(dir $@)
	$(Q)gcc $(PROGRAM_FLAGS) -O1 -o $@ $(filter %.c,$^)

$(P)/cascade_service: PROGRAM_FLAGS += -fno-inline
$(P)/tail_calls: PROGRAM_FLAGS += -foptimize-sibling-calls
$(P)/static_hello: PROGRAM_FLAGS += -static
$(P)/call_lines: PROGRAM_LIBS := -lm

$(P)/million_stripped: $(P)/million
	$(say) STRIP $@
	$(Q)strip -o $@ $<

# Every function begins with a push, which the kernel emulates: the cheapest probes.
$(P)/million_frames: tests/programs/million.c
	$(say) PROG $@
	@mkdir -p $(dir $@)
	$(Q)gcc $(PROGRAM_FLAGS) -O0 -o $@ $<

# With the functions of the C library: more than a thousand probes.
$(P)/busy_static: tests/programs/busy.c
	$(say) PROG $@
	@mkdir -p $(dir $@)
	$(Q)gcc $(PROGRAM_FLAGS) -O1 -static -o $@ $<

# Five-byte nops at every entry: where the kernel optimises probes on them, fork children of a probed process die.
$(P)/forks_nop5: tests/programs/forks.c
	$(say) PROG $@
	@mkdir -p $(dir $@)
	$(Q)gcc $(PROGRAM_FLAGS) -O1 -fno-pie -pg -mfentry -mnop-mcount -c -o $@.o $<
	$(Q)gcc -no-pie -o $@ $@.o

$(P)/recursion_nonpie: tests/programs/recursion.c tests/programs/truth.h
	$(say) PROG $@
	@mkdir -p $(dir $@)
	$(Q)gcc $(PROGRAM_FLAGS) -O2 -fno-pie -no-pie -fomit-frame-pointer -o $@ $<

# What uftrace records.
$(P)/%_pg: tests/programs/%.c $(wildcard tests/programs/*.h)
	$(say) PROG $@
	@mkdir -p $(dir $@)
	$(Q)gcc $(PROGRAM_FLAGS) -O1 -pg -o $@ $<

programs: $(PROGRAMS)

include tests/harm/harm.mk

# ------------------------------------------------------------------------------------------ unit tests

# tests/unit mirrors the tree. A test below tests/unit/LAYER is linked with that layer and with what the layer may use,
# and nothing else. As archives: a test takes out of the last one only what it needs, and main() of the tool stays out
# of the way.
L := $(O)/tests/lib
LAYERS := cli collector analyzer image store base
uses_base := base
uses_store := store base
uses_image := image base
uses_collector := collector analyzer image store base
uses_analyzer := analyzer image store base
uses_cli := cli collector analyzer image store base
objects_base = $(BASE)
objects_store = $(STORE)
objects_image = $(IMAGE)
objects_collector = $(COLLECTOR)
objects_analyzer = $(ANALYZER)
objects_cli = $(filter-out $(O)/cli/main.o,$(CLI))

define archive_rule
$(L)/$(1).a: $$(objects_$(1))
	@mkdir -p $$(dir $$@)
	$$(Q)rm -f $$@ && ar rcsT $$@ $$^
endef
$(foreach layer,$(LAYERS),$(eval $(call archive_rule,$(layer))))

all_test_sources := $(shell find tests/unit tests/bpf_host -name '*.c' 2>/dev/null | sort)
test_sources := $(filter $(foreach s,$(all_test_sources),$(if $(filter test_%,$(notdir $(s))),$(s))),$(all_test_sources))
UNIT_TESTS := $(patsubst %.c,$(O)/%,$(test_sources))
ifneq ($(T),)
UNIT_TESTS := $(foreach t,$(UNIT_TESTS),$(if $(findstring $(T),$(t)),$(t)))
endif
# Sources without test_ beside a test, or at the top of its layer, are helpers of that test.
test_helpers := $(filter-out $(test_sources),$(all_test_sources))
folders_of_helpers = $(dir $(1)) tests/unit/$(word 3,$(subst /, ,$(1)))/
helpers_of = $(patsubst %.c,$(O)/%.o,$(foreach h,$(test_helpers),$(if $(filter $(call folders_of_helpers,$(1)),$(dir $(h))),$(h)))) \
	$(helpers_$(word 3,$(subst /, ,$(1))))

# tests/unit/mutated has the whole tool inside, and stores as the tests of store/ make them.
helpers_mutated = $(L)/tracectl_main.o $(O)/tests/unit/store/fixture.o $(O)/tests/unit/store/go_fixture.o
# SQLite's shell loads it there.
$(O)/tests/unit/mutated/test_mutated_stores: | $(O)/tracestore.so
# Times are computed of stores as the tests of store/ make them.
helpers_analyzer = $(O)/tests/unit/store/model.o
$(L)/tracectl_main.o: $(O)/cli/main.o
	@mkdir -p $(dir $@)
	$(Q)objcopy --redefine-sym main=tracectl_main $< $@

# $(1): test source, $(2): folder that it tests
define unit_rule
$(patsubst %.c,$(O)/%,$(1)): $(patsubst %.c,$(O)/%.o,$(1)) $(call helpers_of,$(1)) $(patsubst %,$(L)/%.a,$(uses_$(2)))
	$$(say) LINK $$@
	$$(Q)$$(CC) $$(ALL_LDFLAGS) -o $$@ $$^ -lcriterion $$(PKG_LIBS)
endef
layer_of = $(or $(filter $(LAYERS),$(subst mutated,cli,$(word 3,$(subst /, ,$(1))))),collector)
$(foreach s,$(test_sources),$(eval $(call unit_rule,$(s),$(call layer_of,$(s)))))

# The BPF programs' logic, compiled as ordinary C: the stub headers of tests/bpf_host come first.
$(O)/tests/bpf_host/%.o: ALL_CFLAGS := -Itests/bpf_host $(ALL_CFLAGS)
# Criterion's macros define functions without a prototype.
$(O)/tests/unit/%.o $(O)/tests/bpf_host/%.o: ALL_CFLAGS += -Wno-missing-prototypes

unit-build: $(UNIT_TESTS)

# ------------------------------------------------------------------------------------------ fuzzers

# Every tests/fuzz/fuzz_X.c, with the libraries compiled once more for libFuzzer. tests/fuzz/corpus/X are seeds.
FUZZERS := $(patsubst tests/fuzz/%.c,$(PLAIN_O)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_FLAGS := -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
fuzz_layers := analyzer image store base
fuzz_objects := $(filter-out $(PLAIN_O)/fuzz/analyzer/extension.o,\
	$(foreach layer,$(fuzz_layers),$(patsubst %.c,$(PLAIN_O)/fuzz/%.o,$(call sources,$(layer)))))
# And of the collector the planning of probes, with what it needs, and what reads the daemon's configuration, code to be
# patched, and what targets have written; of serve what reads requests.
fuzz_objects += $(patsubst %,$(PLAIN_O)/fuzz/%.o,tests/fuzz/elf_mutator cli/serve/route \
	$(basename $(wildcard collector/plan/*.c collector/displace/*.c collector/arch/$(ARCH)/*.c)) \
	$(addprefix collector/,images/caller_frames daemon/config daemon/match daemon/service_target flight/flight_trigger go/delays go/program go/targets go/usages \
		inline/area inline/inline_image inline/reader inline/reader_checks inline/reader_threads \
		process/map_lines process/proc_numbers process/process process/process_name process/target_memory sync/functions sync/targets uprobe/unpack))
$(PLAIN_O)/fuzz/collector/inline/area.o: | $(AGENT)

$(PLAIN_O)/fuzz/%.o: %.c
	$(say) FUZZ $@
	@mkdir -p $(dir $@)
	$(Q)$(CLANG) -std=gnu11 -D_GNU_SOURCE -g -fno-omit-frame-pointer -I. -I$(PLAIN_O) $(FUZZ_FLAGS) $(PKG_CFLAGS) \
		-DTRACECTL_VERSION='"fuzz"' -MMD -MP -c -o $@ $<

$(PLAIN_O)/fuzz/libraries.a: $(fuzz_objects)
	$(Q)rm -f $@ && ar rcsT $@ $^

$(PLAIN_O)/fuzz/fuzz_%: $(PLAIN_O)/fuzz/tests/fuzz/fuzz_%.o $(PLAIN_O)/fuzz/libraries.a
	$(say) LINK $@
	$(Q)$(CLANG) -fsanitize=fuzzer,address,undefined -o $@ $^ $(PKG_LIBS)

fuzz-build: $(FUZZERS)

# ------------------------------------------------------------------------------------------ what people call

export FUZZ_SECONDS
RUN_TESTS = O=$(PLAIN_O) SAN_O=$(SAN_O) PKG_CFLAGS="$(PKG_CFLAGS)" tests/run

packages-%:
	$(Q)tools/install-packages $(subst -, ,$*)

test: packages-build-demo-test-lint
	$(Q)$(MAKE) all programs harm-programs unit-build
	$(Q)$(MAKE) fuzz-build
	$(Q)$(MAKE) SAN=$(SAN_FLAGS) O=$(SAN_O) $(SAN_O)/tracectl unit-build
	$(Q)$(RUN_TESTS) lint unit fuzz e2e harm san

ifneq ($(SAN),)
# make SAN=address,undefined unit|e2e: the tests on the sanitized build.
unit: unit-build
	$(Q)O=$(O) tests/run unit
e2e: $(O)/tracectl
	$(Q)$(MAKE) SAN= O=$(PLAIN_O) programs
	$(Q)O=$(O) PROGRAMS=$(PLAIN_O)/tests/programs tests/run e2e $(E2E)
else
unit: unit-build
ifneq ($(T),)
	$(Q)$(if $(UNIT_TESTS),,echo "no unit test has '$(T)' in its path" >&2; exit 1;) status=0; \
		for test in $(UNIT_TESTS); do $$test --verbose=1 || status=1; done; exit $$status
else
	$(Q)$(RUN_TESTS) unit
endif
e2e: all programs
	$(Q)$(RUN_TESTS) e2e $(E2E)
endif

harm: all programs harm-programs
	$(Q)$(RUN_TESTS) harm

fuzz: fuzz-build
	$(Q)$(RUN_TESTS) fuzz

san: programs
	$(Q)$(MAKE) SAN=$(SAN_FLAGS) O=$(SAN_O) $(SAN_O)/tracectl unit-build
	$(Q)$(RUN_TESTS) san

# The tests that need neither a kernel feature nor root.
check: all programs unit-build
	$(Q)$(RUN_TESTS) lint unit

lint: packages-build-test-lint $(SKELETONS) $(STORE_SQL) $(REPORT_CSS) $(FLAME_GRAPH_JS) $(O)/tracestore.h
	$(Q)$(RUN_TESTS) lint

bench: packages-build-demo-test
	$(Q)$(MAKE) all programs
	$(Q)O=$(O) tests/bench/run

bench-capture: packages-build-demo-test-bench
	$(Q)$(MAKE) all programs
	$(Q)O=$(O) tests/bench/capture

bench-always-on: packages-build-demo-test-bench
	$(Q)$(MAKE) all
	$(Q)O=$(O) tests/bench/always_on

bench-sync: packages-build-demo-test-bench
	$(Q)$(MAKE) all programs
	$(Q)O=$(O) tests/bench/sync

bench-inline: packages-build-demo-test-bench
	$(Q)$(MAKE) all
	$(Q)O=$(O) tests/bench/inline

# Long runs on real servers, and with many threads and forks: not a part of CI.
stress: packages-build-demo-test-bench
	$(Q)$(MAKE) all $(P)/busy $(P)/busy_static
	$(Q)O=$(O) tests/stress/churn
	$(Q)PROGRAMS=$(P) TRACECTL=$(O)/tracectl MEMORY=1000000000 tests/stress/leaks 200
	$(Q)O=$(O) tests/stress/attach_cycles
	$(Q)PROGRAMS=$(P) TRACECTL=$(O)/tracectl tests/stress/kills
	$(Q)SESSION_KILLS=0 $(O)/tests/unit/collector/test_session_kill
	$(Q)O=$(O) tests/stress/daemon
	$(Q)O=$(O) tests/stress/soak

# What measures the codecs, with the store's objects but for the list of codecs.
$(O)/tests/bench/codec_bench: $(addprefix $(O)/tests/bench/,codec_bench.o codec_parlot.o) \
	$(filter-out $(O)/store/bytes/codec.o,$(STORE)) $(BASE)
	$(say) LINK $@
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(PKG_LIBS)

bench-store: packages-build-demo-test-bench
	$(Q)$(MAKE) all programs $(O)/tests/bench/codec_bench
	$(Q)O=$(O) tests/bench/store

# What measures the collector's work for a call from inline probes: its library, with an image table of the bench's own.
$(O)/tests/bench/inline_records_bench: $(O)/tests/bench/inline_records_bench.o $(patsubst %,$(L)/%.a,$(uses_collector))
	$(say) LINK $@
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(PKG_LIBS)
$(O)/tests/bench/inline_records_bench.o: ALL_CFLAGS += -Wno-missing-prototypes

# What measures the analyses, with the analyzer's objects.
ANALYSIS_BENCHES := $(addprefix $(O)/tests/bench/,concept_bench linkage_bench nlr_bench cascade_bench order_bench)
$(ANALYSIS_BENCHES): %: %.o $(ANALYZER) $(IMAGE) $(STORE) $(BASE)
	$(say) LINK $@
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(PKG_LIBS)

bench-analysis: packages-build-demo-test-bench
	$(Q)$(MAKE) $(ANALYSIS_BENCHES)
	$(Q)O=$(O) tests/bench/analysis

bench-stat: packages-build-demo-test
	$(Q)$(MAKE) all programs
	$(Q)O=$(O) tests/bench/stat

bench-stat-faults: packages-build-demo-test
	$(Q)$(MAKE) all programs
	$(Q)O=$(O) tests/bench/stat_faults

bench-stat-servers: packages-build-bench-test
	$(Q)$(MAKE) all
	$(Q)O=$(O) tests/bench/stat_servers

bench-cascade: packages-build-demo-test
	$(Q)$(MAKE) all programs
	$(Q)O=$(O) tests/bench/cascade

bench-accuracy: packages-build-demo-test
	$(Q)$(MAKE) all programs
	$(Q)O=$(O) tests/bench/accuracy

# Needs qemu and downloads kernels: not a part of make test.
kernels: packages-build-kernels
	$(Q)$(MAKE) all $(P)/forty $(P)/forks $(P)/busy
	$(Q)O=$(O) PROGRAMS=$(P) tests/kernels/run $(KERNELS)

demo: packages-build-demo
	$(Q)$(MAKE) all $(P)/odd_even_sort
	$(Q)O=$(O) tools/demo

.PHONY: programs unit-build fuzz-build test unit e2e harm fuzz san check lint bench bench-always-on bench-capture bench-inline stress bench-store \
	bench-sync bench-analysis bench-cascade bench-stat bench-stat-faults bench-stat-servers bench-accuracy demo kernels
.SECONDARY:
