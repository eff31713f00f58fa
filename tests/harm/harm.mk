# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Included by tests.mk: the targets of the harm matrix. A variant of a target is named by its suffix:
#
#   NAME               tests/harm/programs/NAME.c or .cc, or tests/programs/NAME.c or .cc: -O1, as a PIE
#   NAME.instrumented  the same source with -finstrument-functions: counts and logs its own calls
#   NAME.frames .nopie .static .static-pie .nop5 .stripped   other ways to build it
#   NAME.mold .lld .gold .noplt .musl   other linkers, no stubs, another C library
#   NAME.SANITIZER     of HARM_SANITIZERS below
#   NAME.pg                                         profiled by gprof
#   NAME.rust, NAME.go1.19 ...                      Rust, and Go of that version; .stripped and .pie of them
#   NAME.ml.exe, NAME.hs.exe, java/NAME.class       OCaml, Haskell, Java
#
# Calls must be calls in both builds, and the same: nothing is inlined or becomes a jump.

H := $(PLAIN_O)/tests/harm
HARM_FLAGS := $(PROGRAM_FLAGS) -O1 -fno-inline -fno-optimize-sibling-calls -fno-ipa-icf -fno-ipa-cp -fno-ipa-sra \
	-fno-partial-inlining
HARM_INSTRUMENT := -DINSTRUMENTED -fno-omit-frame-pointer -finstrument-functions \
	-finstrument-functions-exclude-file-list=truth.h,/usr/include,/usr/lib
HARM_HEADERS := tests/harm/programs/harm.h tests/programs/truth.h
HARM_GO := 1.19 1.22 1.23

# Sources of the matrix that are built here as C or C++.
HARM_C := $(patsubst tests/harm/programs/%.c,%,$(filter-out %/plugin.c,$(wildcard tests/harm/programs/*.c))) \
	longjmp recursion signals contexts forks threads
HARM_CC := $(patsubst tests/harm/programs/%.cc,%,$(wildcard tests/harm/programs/*.cc)) exceptions
HARM_VARIANTS := forks_hot.frames deep.frames \
	$(foreach p,jumps unwinding,$p.nopie $p.static $p.static-pie $p.stripped) \
	$(foreach v,mold lld gold noplt,sorting.$v unwinding.$v) deep.musl sorting.static-pie \
	deep.nopie deep.static deep.stripped deep.pg sorting.static sorting.stripped forks.nop5 seccomp.frames seccomp.static
HARM_OTHERS := panics.rust panics.rust.stripped plugin.so plugin.so.instrumented \
	$(foreach v,$(HARM_GO),goroutines.go$(v) goroutines.go$(v).stripped goroutines.go$(v).pie)
HARM_OTHERS += collected.ml.exe lazy.hs.exe java/Walked.class
HARM_SANITIZERS := asan lsan tsan ubsan clang-tsan-nopie msan msan-nopie dfsan
HARM_OTHERS += $(addprefix shadowed.,$(HARM_SANITIZERS)) heap_growth.low limited.own locked.raw
HARM_OTHERS += deep.textrel dlopens.textrel plugin.so.textrel deep.patchable deep.xray patches_itself.writable
HARM_PROGRAMS := $(addprefix $(H)/,$(foreach p,$(HARM_C) $(HARM_CC),$p $p.instrumented) $(HARM_VARIANTS) $(HARM_OTHERS))

harm_source = $(firstword $(wildcard $(foreach d,tests/harm/programs tests/programs,$(d)/$(1).c $(d)/$(1).cc)))
harm_compiler = $(if $(filter %.cc,$(call harm_source,$(1))),g++,$(if $(filter .musl,$(2)),musl-gcc,gcc))

# $(1): target without suffix, $(2): the suffix with its dot, $(3): flags
define harm_rule
$(H)/$(1)$(2): $(call harm_source,$(1)) $(HARM_HEADERS)
	$$(say) PROG $$@
	@mkdir -p $$(dir $$@)
	$$(Q)$(call harm_compiler,$(1),$(2)) $$(HARM_FLAGS) -DPLUGIN='"plugin.so$(filter .instrumented .textrel,$(2))"' $(3) -o $$@ $$<
endef
$(foreach p,$(HARM_C) $(HARM_CC),$(eval $(call harm_rule,$p,,)))
$(foreach p,$(HARM_C) $(HARM_CC),$(eval $(call harm_rule,$p,.instrumented,$(HARM_INSTRUMENT) -rdynamic $(H)/instrument.o)))
$(foreach p,$(HARM_C) $(HARM_CC),$(eval $(call harm_rule,$p,.frames,-fno-omit-frame-pointer)))
$(foreach p,$(HARM_C) $(HARM_CC),$(eval $(call harm_rule,$p,.nopie,-fno-pie -no-pie)))
$(foreach p,$(HARM_C) $(HARM_CC),$(eval $(call harm_rule,$p,.static,-static)))
$(foreach p,$(HARM_C) $(HARM_CC),$(eval $(call harm_rule,$p,.static-pie,-static-pie)))
$(foreach p,$(HARM_C) $(HARM_CC),$(eval $(call harm_rule,$p,.mold,-fuse-ld=mold)))
$(foreach p,$(HARM_C) $(HARM_CC),$(eval $(call harm_rule,$p,.lld,-fuse-ld=lld -Wl$(comma)-z$(comma)retpolineplt)))
$(foreach p,$(HARM_C) $(HARM_CC),$(eval $(call harm_rule,$p,.gold,-fuse-ld=gold)))
$(foreach p,$(HARM_C) $(HARM_CC),$(eval $(call harm_rule,$p,.noplt,-fno-plt)))
$(foreach p,$(HARM_C),$(eval $(call harm_rule,$p,.nop5,-fno-pie -no-pie -pg -mfentry -mnop-mcount)))
$(patsubst %,$(H)/%.instrumented,$(HARM_C) $(HARM_CC)): $(H)/instrument.o

$(foreach p,$(HARM_C),$(eval $(call harm_rule,$p,.musl)))

# Linked where nothing fits below the program, so that what is to lie near it could only lie above.
$(eval $(call harm_rule,heap_growth,.low,-fno-pie -no-pie -Wl$(comma)-Ttext-segment=0x20000))
$(eval $(call harm_rule,limited,.own,-DOWN))
$(eval $(call harm_rule,locked,.raw,-DRAW))

# Code that is not in memory as it is in the file, or may come to be so.
$(eval $(call harm_rule,deep,.textrel,-fno-pic -mcmodel=large -pie -Wl$(comma)-z$(comma)notext))
$(eval $(call harm_rule,dlopens,.textrel))
$(eval $(call harm_rule,deep,.patchable,-fpatchable-function-entry=5))
$(eval $(call harm_rule,patches_itself,.writable,-DWRITABLE))
$(H)/deep.xray: tests/harm/programs/deep.c $(HARM_HEADERS)
	$(say) PROG $@
	@mkdir -p $(dir $@)
	$(Q)clang $(PROGRAM_FLAGS) -Wno-unknown-attributes -O1 -fno-inline -fxray-instrument \
		-fxray-instruction-threshold=1 -o $@ $<
$(H)/plugin.so.textrel: tests/harm/programs/plugin.c
	$(say) PROG $@
	@mkdir -p $(dir $@)
	$(Q)gcc $(HARM_FLAGS) -fno-pic -mcmodel=large -shared -Wl,-z,notext -o $@ $<

build_asan := gcc -fsanitize=address
build_lsan := gcc -fsanitize=leak
build_tsan := gcc -fsanitize=thread
build_ubsan := gcc -fsanitize=undefined
build_clang-tsan-nopie := clang -fsanitize=thread -fno-pie -no-pie
build_msan := clang -fsanitize=memory
build_msan-nopie := clang -fsanitize=memory -fno-pie -no-pie
build_dfsan := clang -fsanitize=dataflow
$(patsubst %,$(H)/shadowed.%,$(HARM_SANITIZERS)): $(H)/shadowed.%: tests/harm/programs/shadowed.c $(HARM_HEADERS)
	$(say) PROG $@
	@mkdir -p $(dir $@)
	$(Q)$(build_$*) $(PROGRAM_FLAGS) -Wno-unknown-attributes -O1 -fno-inline -o $@ $<

$(H)/%.stripped: $(H)/%
	$(say) STRIP $@
	$(Q)strip -o $@ $<

$(H)/instrument.o: tests/harm/instrument.c
	$(say) CC $@
	@mkdir -p $(dir $@)
	$(Q)gcc $(PROGRAM_FLAGS) -O2 -Wno-frame-address -fno-omit-frame-pointer -fPIC -c -o $@ $<

$(H)/plugin.so: tests/harm/programs/plugin.c
	$(say) PROG $@
	@mkdir -p $(dir $@)
	$(Q)gcc $(HARM_FLAGS) -fPIC -shared -o $@ $<

$(H)/plugin.so.instrumented: tests/harm/programs/plugin.c
	$(say) PROG $@
	@mkdir -p $(dir $@)
	$(Q)gcc $(HARM_FLAGS) $(HARM_INSTRUMENT) -fPIC -shared -o $@ $<

$(foreach p,$(HARM_C),$(eval $(call harm_rule,$p,.pg,-pg)))

$(H)/%.ml.exe: tests/harm/programs/%.ml
	$(say) OCAMLOPT $@
	@mkdir -p $(H)/ocaml
	$(Q)cp $< $(H)/ocaml/ && cd $(H)/ocaml && ocamlopt -o $(abspath $@) unix.cmxa $(notdir $<)

$(H)/%.hs.exe: tests/harm/programs/%.hs
	$(say) GHC $@
	@mkdir -p $(H)/haskell
	$(Q)ghc -v0 -O1 -outputdir $(H)/haskell -o $@ $<

$(H)/java/%.class: tests/harm/programs/%.java
	$(say) JAVAC $@
	@mkdir -p $(dir $@)
	$(Q)javac -XDignore.symbol.file -nowarn -d $(dir $@) $<

$(H)/%.rust: tests/harm/programs/%.rs
	$(say) RUSTC $@
	@mkdir -p $(dir $@)
	$(Q)env -u MAKEFLAGS -u MFLAGS rustc --edition 2021 -O -g -o $@ $<

# $(1): version, $(2): suffix, $(3): flags
define harm_go_rule
$(H)/%.go$(1)$(2): tests/harm/programs/%.go
	$$(say) GO $$@
	@mkdir -p $$(dir $$@)
	$$(Q)GO111MODULE=off GOTOOLCHAIN=local GOFLAGS= GOCACHE=$$(abspath $(H))/gocache /usr/lib/go-$(1)/bin/go build \
		$(3) -o $$@ $$<
endef
$(foreach v,$(HARM_GO),$(eval $(call harm_go_rule,$(v),,)))
$(foreach v,$(HARM_GO),$(eval $(call harm_go_rule,$(v),.stripped,-ldflags '-s -w')))
$(foreach v,$(HARM_GO),$(eval $(call harm_go_rule,$(v),.pie,-buildmode=pie)))

harm-programs: $(HARM_PROGRAMS)

.PHONY: harm-programs
