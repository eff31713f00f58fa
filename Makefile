# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# make            build/tracectl, build/libtracestore.{a,so}, build/tracestore.so (SQLite extension), man pages
# make test       install what is needed, build, run every test      (SAN=address,undefined: with sanitizers)
# make demo       install what is needed, build, record real programs, show a diff
# make bench      print what recording, storing and analysing cost, as a table and as JSON
# make bench-capture  what capturing costs beside other tracers (ten minutes; BENCH_QUICK=1: two)
# make stress         hundreds of attachments to servers under load; threads, forks and signals for ten minutes; the
#                     daemon and its targets killed again and again; a day of the daemon in an hour
# make bench-always-on  what record -p with budgets takes from redis-server, nginx, PostgreSQL and etcd, beside bpftrace and
#                     perf (a quarter of an hour; BENCH_QUICK=1: three minutes)
# make bench-sync     what record --sync takes from a service and from PostgreSQL (ten minutes; BENCH_QUICK=1: three)
# make bench-inline   what recording every call of whole programs costs, with inline probes and without (BENCH_QUICK=1)
# make bench-store    what storing and asking costs beside other compressors, plain SQLite and uftrace
# make compdb     compile_commands.json, for clangd and other tools
# make hooks      the pre-commit hook of this clone: tools/pre-commit
# make lint       clang-format, clang-tidy, cppcheck, warnings of gcc and clang
# make install    PREFIX (/usr/local), DESTDIR, LIBDIR (PREFIX/lib), PKGCONFIGDIR, ZSHDIR, PYTHONDIR (PREFIX/lib/tracectl)
# make deb        build/tracectl_VERSION_ARCHITECTURE.deb, for Debian 12
#
# V=1 shows the commands, O=DIR builds somewhere else, CC=clang is fine.

O ?= build
CC ?= cc
CLANG ?= clang
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool) bpftool)
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
PKGCONFIGDIR ?= $(LIBDIR)/pkgconfig
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions
PYTHONDIR ?= $(PREFIX)/lib/tracectl
VERSION := $(shell sed -n 's/^## \[\([0-9.]*\)\].*/\1/p' CHANGELOG.md 2>/dev/null | head -n 1)
comma := ,
ifneq ($(SAN),)
O := $(O)-$(subst $(comma),-,$(SAN))
endif

ifeq ($(V),1)
Q :=
say = @:
else
Q := @
say = @printf '  %-7s %s\n'
MAKEFLAGS += --no-print-directory
endif

LIBS := libpq libbpf libelf libdw liblzma sqlite3 libzstd capstone jansson zlib libedit ncursesw otf2 libgvc libmicrohttpd
CFLAGS ?= -O2 -g
WARNINGS := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
	-Wvla -Wformat=2 -Wno-unused-parameter
ALL_CFLAGS := -std=gnu11 -D_GNU_SOURCE $(WARNINGS) -fPIC -fno-omit-frame-pointer -I. -I$(O) \
	-DTRACECTL_VERSION='"$(if $(VERSION),$(VERSION),0.1.0)"' $(CFLAGS)
ifneq ($(SAN),)
ALL_CFLAGS += -fsanitize=$(SAN) -fno-sanitize-recover=all
ALL_LDFLAGS := -fsanitize=$(SAN)
endif
PKG_CFLAGS = $(shell pkg-config --cflags $(LIBS) 2>/dev/null)
PKG_LIBS = $(shell pkg-config --libs $(LIBS) 2>/dev/null) -liberty -lm -lpthread -ldl

ARCH ?= $(shell uname -m)
sources = $(sort $(wildcard $(1)/*.c $(1)/*/*.c $(1)/arch/$(ARCH)/*.c))
objects = $(patsubst %.c,$(O)/%.o,$(call sources,$(1)))

BASE := $(call objects,base)
STORE := $(call objects,store)
IMAGE := $(call objects,image)
COLLECTOR := $(call objects,collector)
ANALYZER := $(filter-out $(O)/analyzer/extension.o,$(call objects,analyzer))
CLI := $(call objects,cli)
LIBRARIES := $(COLLECTOR) $(ANALYZER) $(IMAGE) $(STORE) $(BASE)
# libtracestore and the SQLite extension are without what is tracectl's and needs libotf2 or jansson.
TRACESTORE := $(filter-out $(O)/store/export/% $(O)/store/import/import_chrome%.o,$(STORE)) $(BASE)

all: $(O)/tracectl $(O)/tracestore.so library man

$(O)/tracectl: $(CLI) $(LIBRARIES)
	$(say) LINK $@
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(PKG_LIBS)

$(O)/libtracestore.a: $(TRACESTORE)
	$(say) AR $@
	$(Q)rm -f $@ && ar rcs $@ $^

# libtracestore for other programs: one header (store/api/tracestore.h with base/error.h in it), a shared library that
# exports the functions of that header and nothing else, and what pkg-config needs.
SONAME := libtracestore.so.0
STORE_LIBS := libzstd zlib
$(O)/tracestore.h: store/api/tracestore.h base/error.h
	$(say) HEADER $@
	@mkdir -p $(dir $@)
	$(Q)sed -e '/^struct error;/{r base/error.h' -e 'd}' store/api/tracestore.h > $@

$(O)/libtracestore.map: $(O)/tracestore.h
	$(say) EXPORTS $@
	$(Q){ echo '{ global:'; grep -oE '\<(error|tracestore|trace_returns|trace_writer|thread_writer|event_iter)_[a-z_]+\(' $< | \
		sort -u | tr '(' ';'; echo 'local: *; };'; } > $@

$(O)/$(SONAME): $(TRACESTORE) $(O)/libtracestore.map
	$(say) LINK $@
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -Wl,-soname,$(SONAME) -Wl,--version-script=$(O)/libtracestore.map -o $@ \
		$(TRACESTORE) $(shell pkg-config --libs sqlite3 $(STORE_LIBS) 2>/dev/null)

$(O)/libtracestore.so: $(O)/$(SONAME)
	$(Q)ln -sf $(SONAME) $@

$(O)/tracestore.pc: store/api/tracestore.pc.in CHANGELOG.md
	$(say) PC $@
	@mkdir -p $(dir $@)
	$(Q)sed -e 's|@VERSION@|$(if $(VERSION),$(VERSION),0.1.0)|; s|@LIBS@|sqlite3 $(STORE_LIBS)|' $< > $@

library: $(O)/libtracestore.a $(O)/libtracestore.so $(O)/tracestore.h $(O)/tracestore.pc

# The loadable extension sees SQLite through the pointer that the loading program hands over: its objects are
# compiled once more, with SQLITE_CORE undefined (see analyzer/extension.c). It has the tables of store/ and, of the
# analyzer, what the table of loops needs.
EXTENSION := $(TRACESTORE) $(addprefix $(O)/analyzer/,extension.o $(addprefix loops/,vtab_loops.o thread_nest.o nlr.o loop_table.o))
$(O)/tracestore.so: $(patsubst $(O)/%.o,$(O)/ext/%.o,$(EXTENSION))
	$(say) LINK $@
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -o $@ $^ $(shell pkg-config --libs $(STORE_LIBS) 2>/dev/null)

$(O)/ext/%.o: %.c
	$(say) CC $@
	@mkdir -p $(dir $@)
	$(Q)$(CC) $(ALL_CFLAGS) $(PKG_CFLAGS) -DTRACESTORE_EXTENSION -MMD -MP -c -o $@ $<

$(O)/%.o: %.c
	$(say) CC $@
	@mkdir -p $(dir $@)
	$(Q)$(CC) $(ALL_CFLAGS) $(PKG_CFLAGS) -MMD -MP -c -o $@ $<

# A text as the C string $(1).
c_string = sed -e '1i static const char $(1)[] =' -e 's/\\/\\\\/g; s/"/\\"/g; s/.*/    "&\\n"/' -e '$$a ;'

# store/db/X.sql as the C string X_sql, in "store/db/X_sql.h".
STORE_SQL := $(patsubst %.sql,$(O)/%_sql.h,$(wildcard store/db/*.sql))
$(O)/store/db/%_sql.h: store/db/%.sql
	$(say) SQL $@
	@mkdir -p $(dir $@)
	$(Q)$(call c_string,$*_sql) $< > $@

# The style sheet of reports as the C string style_css.
REPORT_CSS := $(O)/analyzer/report/style_css.h
$(REPORT_CSS): analyzer/report/style.css
	$(say) CSS $@
	@mkdir -p $(dir $@)
	$(Q)$(call c_string,style_css) $< > $@

# The script of flame graphs as the C string flame_graph_js.
FLAME_GRAPH_JS := $(O)/analyzer/picture/flame_graph_js.h
$(FLAME_GRAPH_JS): analyzer/picture/flame_graph.js
	$(say) JS $@
	@mkdir -p $(dir $@)
	$(Q)$(call c_string,flame_graph_js) $< > $@

# What the pages of `tracectl serve` need, as C strings.
SERVE_ASSETS := $(addprefix $(O)/cli/serve/,serve_css.h serve_js.h openapi_json.h)
$(O)/cli/serve/serve_css.h: analyzer/report/style.css cli/serve/serve.css
$(O)/cli/serve/serve_js.h: cli/serve/serve.js
$(O)/cli/serve/openapi_json.h: cli/serve/openapi.json
$(SERVE_ASSETS):
	$(say) ASSET $@
	@mkdir -p $(dir $@)
	$(Q)cat $^ | $(call c_string,$(basename $(notdir $@))) > $@

$(O)/cli/serve/assets.o: | $(SERVE_ASSETS) $(FLAME_GRAPH_JS)

$(O)/analyzer/picture/flame_graph.o $(O)/fuzz/analyzer/picture/flame_graph.o: | $(FLAME_GRAPH_JS)

$(O)/analyzer/report/html_report.o $(O)/fuzz/analyzer/report/html_report.o: | $(REPORT_CSS)

$(foreach d,$(O) $(O)/ext $(O)/fuzz,$(patsubst %.c,$(d)/%.o,$(call sources,store))): | $(STORE_SQL)

# The agent, which runs inside targets (collector/inline/agent/): flat code without a C library, as the array
# agent_code. General registers only: it runs between any two instructions of somebody else's.
AGENT := $(O)/collector/inline/agent_code.h
AGENT_FLAGS := -std=gnu11 -O2 -ffreestanding -fno-builtin -fPIC -mgeneral-regs-only -mno-red-zone -fno-stack-protector \
	-fcf-protection=none -fno-asynchronous-unwind-tables -fno-jump-tables -Wall -Wextra -Werror -I.
$(AGENT): $(wildcard collector/inline/agent/*) $(addprefix collector/arch/,record.h agent_slots.h time_counter.h $(ARCH)/agent_entry.S)
	$(say) AGENT $@
	@mkdir -p $(dir $@)
	$(Q)$(CC) $(AGENT_FLAGS) -c -o $(@:.h=.o) collector/inline/agent/agent.c
	$(Q)$(CC) -c -o $(@:.h=_entry.o) collector/arch/$(ARCH)/agent_entry.S
	$(Q)ld -T collector/inline/agent/agent.ld -e agent_entry -o $(@:.h=.elf) $(@:.h=_entry.o) $(@:.h=.o)
	$(Q)objcopy -O binary -j .text $(@:.h=.elf) $(@:.h=.bin)
	$(Q){ echo 'static const unsigned char agent_code[] = {'; od -An -v -tu1 $(@:.h=.bin) | \
		sed 's/  *\([0-9]\)/\1/; s/  */, /g; s/$$/,/'; echo '};'; } > $@

# BPF programs: bpf/X.bpf.c is one object and one skeleton, bpf/X.skel.h with the struct X_bpf.
SKELETONS := $(patsubst %.bpf.c,$(O)/%.skel.h,$(wildcard bpf/*.bpf.c))
BPF_CFLAGS := -target bpf -mcpu=v3 -g -O2 -Wall -Wextra -Werror -Wno-unused-parameter -D__TARGET_ARCH_x86 -I.
$(O)/bpf/%.bpf.o: bpf/%.bpf.c
	$(say) BPF $@
	@mkdir -p $(dir $@)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<

$(O)/bpf/%.skel.h: $(O)/bpf/%.bpf.o
	$(say) SKEL $@
	$(Q)$(BPFTOOL) gen skeleton $< name $*_bpf > $@.tmp && mv $@.tmp $@

$(COLLECTOR): | $(SKELETONS) $(AGENT)

# Man pages come out of the option tables that --help prints.
COMMANDS := $(patsubst cmd_%.c,%,$(notdir $(wildcard cli/*/cmd_*.c)))
GO_COMMANDS := check explore tree timeline model coverage locks layout
FLEET_COMMANDS := init runs top query diff verify gc
MAN := $(O)/man/tracectl.1 $(COMMANDS:%=$(O)/man/tracectl-%.1) $(GO_COMMANDS:%=$(O)/man/tracectl-go-%.1) \
	$(FLEET_COMMANDS:%=$(O)/man/tracectl-fleet-%.1)
$(O)/man/tracectl.1: $(O)/tracectl
	$(say) MAN $@
	@mkdir -p $(dir $@)
	$(Q)$(O)/tracectl manual > $@
$(O)/man/tracectl-%.1: $(O)/tracectl
	$(say) MAN $@
	@mkdir -p $(dir $@)
	$(Q)$(O)/tracectl manual $* > $@

man: $(MAN)

include tests/tests.mk

# What tests/e2e/live_stack.sh compares live stacks with: the collector's own code in a program of its own.
$(O)/tests/e2e/live_verdicts: $(O)/tests/e2e/live_verdicts.o $(LIBRARIES)
	$(say) LINK $@
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(PKG_LIBS)
programs: $(O)/tests/e2e/live_verdicts

install: all
	install -d $(addprefix $(DESTDIR),$(PREFIX)/bin $(PREFIX)/include $(LIBDIR) $(PREFIX)/lib/tracectl $(PKGCONFIGDIR) \
		$(PREFIX)/share/man/man1)
	install -m 755 $(O)/tracectl $(DESTDIR)$(PREFIX)/bin/
	install -m 755 $(O)/tracestore.so $(DESTDIR)$(PREFIX)/lib/tracectl/
	install -m 755 $(O)/$(SONAME) $(DESTDIR)$(LIBDIR)/
	ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/libtracestore.so
	install -m 644 $(O)/libtracestore.a $(DESTDIR)$(LIBDIR)/
	install -m 644 $(O)/tracestore.h $(DESTDIR)$(PREFIX)/include/
	sed 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(patsubst $(PREFIX)/%,$${prefix}/%,$(LIBDIR))|' $(O)/tracestore.pc > \
		$(DESTDIR)$(PKGCONFIGDIR)/tracestore.pc
	install -m 644 $(MAN) $(DESTDIR)$(PREFIX)/share/man/man1/
	install -D -m 644 tools/completion/tracectl.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/tracectl
	install -D -m 644 tools/completion/_tracectl $(DESTDIR)$(ZSHDIR)/_tracectl
	install -D -m 644 tools/completion/tracectl.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/tracectl.fish
	install -D -m 644 tools/python/tracectl.py $(DESTDIR)$(PYTHONDIR)/tracectl.py

deb: all
	$(Q)O=$(O) tools/package $(O)

# What each source is compiled with, as a line of JSON each.
COMPDB_FLAGS = $(subst ",\",$(CC) $(1) $(ALL_CFLAGS) $(PKG_CFLAGS) $(2))
COMPDB_SOURCES := $(foreach layer,base store image collector analyzer cli,$(call sources,$(layer))) $(all_test_sources)
compdb: export FLAGS = $(call COMPDB_FLAGS)
compdb: export HOST_FLAGS = $(call COMPDB_FLAGS,-Itests/bpf_host,-Wno-missing-prototypes)
compdb: export UNIT_FLAGS = $(call COMPDB_FLAGS,,-Wno-missing-prototypes)
compdb: export BPF_FLAGS = $(CLANG) $(BPF_CFLAGS)
compdb: $(SKELETONS) $(AGENT) $(STORE_SQL) $(REPORT_CSS) $(FLAME_GRAPH_JS) $(SERVE_ASSETS)
	$(say) COMPDB compile_commands.json
	$(Q){ echo '['; for file in $(COMPDB_SOURCES) $(wildcard bpf/*.bpf.c); do \
		case $$file in bpf/*) flags=$$BPF_FLAGS ;; tests/bpf_host/*) flags=$$HOST_FLAGS ;; \
			tests/*) flags=$$UNIT_FLAGS ;; *) flags=$$FLAGS ;; esac; \
		printf '{"directory": "%s", "file": "%s", "command": "%s -c %s"},\n' '$(CURDIR)' "$$file" "$$flags" "$$file"; \
	done | sed '$$s/,$$//'; echo ']'; } > compile_commands.json

hooks:
	ln -sf ../../tools/pre-commit .git/hooks/pre-commit

clean:
	rm -rf $(O)

-include $(shell find $(O) -name '*.d' 2>/dev/null)

.PHONY: all library man compdb hooks install deb clean
.DELETE_ON_ERROR:
