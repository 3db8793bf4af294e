# rbdump: build, test, install. `make help` lists the targets.

VERSION := 0.1.0
# The date of this version, which the manual pages show.
DATE := 2026-11-25
prefix ?= /usr/local
bindir = $(prefix)/bin
datadir = $(prefix)/share
mandir = $(datadir)/man
offsetsdir = $(datadir)/rbdump/offsets.d

CC = gcc
JOBS := $(shell nproc)
CFLAGS ?= -O2 -g
PYTHON ?= python3
PKGS = libdw libelf jansson libzstd libprotobuf-c zlib nettle libseccomp $(if $(filter 1,$(KERNEL)),libbpf)

# KERNEL=1: rbdump can sample in the kernel, which needs libbpf, clang and bpftool to build. Default: if they are there.
CLANG = clang
BPFTOOL := $(firstword $(shell command -v bpftool) $(wildcard /usr/sbin/bpftool))
ifndef KERNEL
KERNEL := $(shell pkg-config --atleast-version=1.0 libbpf 2>/dev/null && [ -n '$(BPFTOOL)' ] && \
	$(BPFTOOL) version >/dev/null 2>&1 && echo | $(CLANG) -target bpf -c -x c - -o /dev/null 2>/dev/null && echo 1 || echo 0)
endif

# Each kind of build has its own folder, so that a sanitized build does not replace the plain one.
ifeq ($(SAN),1)
B := build/san
SANFLAGS = -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
# Some tests ask for more memory than there is.
export ASAN_OPTIONS ?= allocator_may_return_null=1
else ifeq ($(FUZZ),1)
B := build/libfuzzer
SANFLAGS = -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
else
B := build
SANFLAGS =
endif

# WERROR=1 turns warnings into errors, as CI does. It is not the default: a newer compiler may have more warnings.
WARNINGS = $(if $(filter 1,$(WERROR)),-Werror) -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wundef \
	-Wwrite-strings -Wvla -Wformat=2 -Wnull-dereference -Wno-missing-field-initializers
ALL_CPPFLAGS = -D_GNU_SOURCE -DRBDUMP_VERSION='"$(VERSION)"' -I$(B)/gen -Idumper -I. $(CPPFLAGS)
ALL_CFLAGS = -std=gnu11 -pthread $(CFLAGS) $(WARNINGS) $(SANFLAGS) $(shell pkg-config --cflags $(PKGS))
ALL_LDLIBS = -pthread -lm -lrt $(LDFLAGS) $(SANFLAGS) $(shell pkg-config --libs $(PKGS))

# What runs in the kernel, and what is not built: either that which samples in the kernel, or that which says that it is absent.
BPF_SOURCES := $(wildcard dumper/kernel/*.bpf.c)
UNBUILT := $(if $(filter 1,$(KERNEL)),dumper/kernel/absent.c,dumper/kernel/programs.c dumper/kernel/maps.c dumper/kernel/ring.c)
SOURCES := $(filter-out $(BPF_SOURCES) $(UNBUILT),$(sort $(wildcard dumper/*.c dumper/*/*.c gen/*.c)))
GENERATED := $(B)/gen/layout_fields.c $(B)/gen/syscalls.c $(B)/gen/flamegraph_page.c $(B)/gen/profile.pb-c.c $(B)/gen/help.c
GENERATED_HEADERS := $(B)/gen/layout_fields.h $(B)/gen/profile.pb-c.h $(if $(filter 1,$(KERNEL)),$(B)/gen/stacks.skel.h)
HEADERS := $(wildcard dumper/*.h dumper/*/*.h gen/*.h)
OBJECTS := $(SOURCES:%.c=$(B)/%.o) $(GENERATED:.c=.o)
LIB_OBJECTS := $(filter-out $(B)/dumper/main.o,$(OBJECTS))

# `make V=1` shows the commands.
say = $(if $(V),,@printf '%-4s%s\n' '$(1)' '$@';)

.DEFAULT_GOAL := all
.PHONY: all
all: $(B)/rbdump manual

$(B)/rbdump: $(OBJECTS) $(B)/.kernel-$(KERNEL)
	$(call say,LD)$(CC) -o $@ $(OBJECTS) $(ALL_LDLIBS)

# Changes if rbdump is built with another KERNEL than last time.
$(B)/.kernel-$(KERNEL):
	@mkdir -p $(B) && rm -f $(B)/.kernel-* && touch $@

# Names the packages that are missing, before the build fails because of them.
$(B)/.needed: Makefile tests/packages
	@CC='$(CC)' tests/packages --needed $(BUILD_PACKAGES)
	@mkdir -p $(B) && touch $@

$(B)/gen/layout_fields.h $(B)/gen/layout_fields.c &: gen/fields.def gen/fields.py | $(B)/.needed
	@mkdir -p $(B)/gen
	$(call say,GEN)$(PYTHON) gen/fields.py gen/fields.def $(B)/gen

$(B)/gen/syscalls.c: gen/syscalls.py | $(B)/.needed
	@mkdir -p $(B)/gen
	$(call say,GEN)$(CC) -E -dM -include asm/unistd_64.h -x c /dev/null | $(PYTHON) gen/syscalls.py $@

$(B)/gen/profile.pb-c.h $(B)/gen/profile.pb-c.c &: dumper/report/pprof/profile.proto | $(B)/.needed
	@mkdir -p $(B)/gen
	$(call say,GEN)protoc-c --proto_path=$(<D) --c_out=$(B)/gen $(<F)

# The program that runs in the kernel, as bytes in a header (bpftool-gen(8)).
$(B)/gen/stacks.bpf.o: dumper/kernel/stacks.bpf.c $(wildcard dumper/kernel/*.h) | $(B)/.needed
	@mkdir -p $(B)/gen
	$(call say,BPF)$(CLANG) -g -O2 -target bpf -mcpu=v3 -Wall $(if $(filter 1,$(WERROR)),-Werror) -D__x86_64__ \
		-I/usr/include/$(shell $(CC) -print-multiarch) -Idumper -c -o $@ $<

$(B)/gen/stacks.skel.h: $(B)/gen/stacks.bpf.o
	$(call say,GEN){ echo '/* NOLINTBEGIN: by bpftool */' && $(BPFTOOL) gen skeleton $< name stacks && \
		echo '/* NOLINTEND */'; } > $@.tmp && mv $@.tmp $@

FLAMEGRAPH := dumper/render/flamegraph
$(B)/gen/flamegraph_page.c: $(wildcard $(FLAMEGRAPH)/*) | $(B)/.needed
	@mkdir -p $(B)/gen
	$(call say,GEN)$(PYTHON) $(FLAMEGRAPH)/embed.py $(B)/gen

# The help text of each verb and its manual page are made from one file.
HELP := dumper/verbs/help
MANUAL := $(B)/man/rbdump.1 $(patsubst $(HELP)/%.txt,$(B)/man/rbdump-%.1,$(filter-out $(HELP)/rbdump.txt,$(wildcard $(HELP)/*.txt)))
.PHONY: manual
manual: $(MANUAL)

$(B)/gen/help.c $(MANUAL) &: $(wildcard $(HELP)/*.txt) $(HELP)/pages.py Makefile | $(B)/.needed
	@mkdir -p $(B)/gen $(B)/man
	$(call say,GEN)$(PYTHON) $(HELP)/pages.py $(VERSION) $(DATE) $(B)/gen/help.c $(B)/man

$(B)/%.o: %.c $(GENERATED_HEADERS)
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/gen/%.o: $(B)/gen/%.c $(GENERATED_HEADERS)
	$(call say,CC)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

FUZZ_DRIVERS = drive drive_recordings drive_heaps

# Unit tests: each tests/unit/test_X.c is one cmocka program. It is linked with all of rbdump except main.c, and with
# the fixtures, which are all other files of tests/unit/. Debug info is left out unless a sanitizer shows it: to link it
# takes a quarter of the time, and 5 MB a program. A debugger wants it: make UNIT_LDFLAGS= build/unit/test_X
UNIT_LDFLAGS = $(if $(SANFLAGS),,-Wl,-S)
UNIT := $(patsubst tests/unit/%.c,$(B)/unit/%,$(sort $(wildcard tests/unit/test_*.c)))
UNIT_FIXTURES := $(patsubst %.c,$(B)/%.o,$(filter-out tests/unit/test_%,$(sort $(wildcard tests/unit/*.c))))
.SECONDARY: $(UNIT_FIXTURES)
UNIT_RUNS := $(FUZZ_DRIVERS:%=$(B)/fuzz/%.run) $(UNIT:%=%.run)
.PHONY: unit $(UNIT_RUNS)
unit:
	@$(MAKE) --no-print-directory -j$(JOBS) -O $(UNIT_RUNS)

$(UNIT_RUNS): %.run: %
	@echo "== $*"; $* $($(*F)_ARGUMENTS)
drive_ARGUMENTS = $(FUZZ_RUNS)
drive_recordings_ARGUMENTS = $(FUZZ_RECORDING_RUNS)
drive_heaps_ARGUMENTS = $(FUZZ_HEAP_RUNS)

$(B)/unit/%: tests/unit/%.c $(LIB_OBJECTS) $(UNIT_FIXTURES)
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -MF $@.d -o $@ $< $(LIB_OBJECTS) $(UNIT_FIXTURES) \
		$(UNIT_LDFLAGS) -lcmocka $(ALL_LDLIBS)

# Fuzzing (tests/fuzz/): `make unit` runs three drivers, each with a fixed number of runs; `make fuzz` runs libFuzzer.
FUZZ_OBJECTS := $(patsubst %,$(B)/tests/fuzz/%.o,facts layouts locks looks mutate recordings records target values waits)
FUZZ_PROGRAM_OBJECTS := $(patsubst %,$(B)/tests/fuzz/%.o,program classes lock_seed objects)
FUZZ_HEAP_OBJECTS := $(patsubst %,$(B)/tests/fuzz/%.o,heaps layouts mutate)
FUZZERS = stacks layouts recordings heaps
FUZZ_RUNS ?= $(if $(filter 1,$(SAN)),30000,100000)
FUZZ_RECORDING_RUNS ?= $(if $(filter 1,$(SAN)),500,4000)
FUZZ_HEAP_RUNS ?= $(if $(filter 1,$(SAN)),500,4000)
FUZZ_SECONDS ?= 60

$(B)/fuzz/drive: $(B)/tests/fuzz/drive.o $(FUZZ_PROGRAM_OBJECTS)
$(B)/fuzz/drive_recordings: $(B)/tests/fuzz/drive_recordings.o
$(B)/fuzz/drive $(B)/fuzz/drive_recordings: $(FUZZ_OBJECTS) $(LIB_OBJECTS)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) -o $@ $^ -Wl,--wrap=memory_read $(ALL_LDLIBS)

# A run of a heap has its own limits, and no files that are mapped.
FUZZ_HEAP_WRAPS = $(patsubst %,-Wl$(comma)--wrap=%,memory_read heap_open_limit heap_graph_read_refs data_files_read)
comma := ,

$(B)/fuzz/drive_heaps: $(B)/tests/fuzz/drive_heaps.o $(patsubst %,$(B)/tests/fuzz/%.o,heap_seed heap_structs objects) \
		$(FUZZ_HEAP_OBJECTS) $(LIB_OBJECTS)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) -o $@ $^ $(FUZZ_HEAP_WRAPS) $(ALL_LDLIBS)

$(B)/fuzz/heaps: $(B)/tests/fuzz/fuzz_heaps.o $(FUZZ_HEAP_OBJECTS) $(LIB_OBJECTS)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) -o $@ $^ -fsanitize=fuzzer $(FUZZ_HEAP_WRAPS) $(ALL_LDLIBS)

$(B)/fuzz/%: $(B)/tests/fuzz/fuzz_%.o $(FUZZ_OBJECTS) $(LIB_OBJECTS)
	@mkdir -p $(@D)
	$(call say,LD)$(CC) -o $@ $^ -fsanitize=fuzzer -Wl,--wrap=memory_read $(ALL_LDLIBS)

# New inputs that the fuzzers find stay in build/libfuzzer/corpus, and the next run starts from these inputs, too.
.PHONY: fuzz
fuzz: packages-fuzz $(FUZZ_DRIVERS:%=$(B)/fuzz/%)
	@$(MAKE) --no-print-directory CC=clang FUZZ=1 $(FUZZERS:%=build/libfuzzer/fuzz/%)
	@mkdir -p $(FUZZERS:%=build/libfuzzer/corpus/%) $(FUZZERS:%=build/libfuzzer/seeds/%)
	set -e; for d in $(FUZZ_DRIVERS); do $(B)/fuzz/$$d --seeds build/libfuzzer/seeds; done
	set -e; for f in $(FUZZERS); do build/libfuzzer/fuzz/$$f -max_len=196608 -max_total_time=$(FUZZ_SECONDS) \
		-timeout=25 -print_final_stats=1 -artifact_prefix=build/libfuzzer/$$f- build/libfuzzer/corpus/$$f \
		build/libfuzzer/seeds/$$f; done

# Probes: programs through which tests see one part of rbdump from outside.
PROBES := $(patsubst tests/probes/%.c,$(B)/tests/probes/%,$(sort $(wildcard tests/probes/*.c)))
.PHONY: probes
probes: $(PROBES)

$(B)/tests/probes/%: tests/probes/%.c $(LIB_OBJECTS)
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -MF $@.d -o $@ $< $(LIB_OBJECTS) $(ALL_LDLIBS)

# npm packages that open what `rbdump report` writes (tests/test_formats.py), in the versions of the lock file.
FORMATS = build/formats/node_modules/.package-lock.json
.PHONY: formats
formats: $(FORMATS)

$(FORMATS): tests/formats/package.json tests/formats/package-lock.json tests/formats/.npmrc
	@mkdir -p build/formats
	@cp $^ build/formats
	$(call say,NPM)cd build/formats && npm ci --loglevel=error
	@touch $@

# ---- packages that must be installed; if there is apt-get, it installs those that are missing

BUILD_PACKAGES = gcc make pkg-config python3 libdw-dev libelf-dev libjansson-dev libzstd-dev libc6-dev \
	libprotobuf-c-dev protobuf-c-compiler zlib1g-dev nettle-dev libseccomp-dev
DEMO_PACKAGES = $(BUILD_PACKAGES) ruby
# To sample in the kernel. Without them, rbdump is built without that.
KERNEL_PACKAGES = libbpf-dev clang bpftool
LINT_PACKAGES = $(BUILD_PACKAGES) $(KERNEL_PACKAGES) clang-tidy clang-format cppcheck shellcheck
TEST_PACKAGES = $(BUILD_PACKAGES) $(KERNEL_PACKAGES) ruby gdb git zstd gcc libcmocka-dev python3-pytest python3-pytest-xdist binutils dwz util-linux \
	procps iproute2 lsof bash bash-completion zsh fish mandoc libdebuginfod1 puma unicorn chromium chromium-driver fonts-dejavu-core golang-go \
	valgrind strace musl-tools ruby-heapy ruby-connection-pool xz-utils $(NPM_PACKAGES)
# The Rubies are built from Debian's source packages, so they are built only if there is apt-get.
RUBIES_PACKAGES = $(if $(shell command -v apt-get),apt dpkg-dev debian-archive-keyring autoconf bison rustc zlib1g-dev \
	libyaml-dev libgmp-dev)
CHECK_PACKAGES = $(TEST_PACKAGES) $(RUBIES_PACKAGES)
# Debian's npm conflicts with a nodejs that contains npm, so it is not needed if there is an npm.
NPM_PACKAGES = $(if $(shell command -v npm),nodejs,nodejs npm)
FUZZ_PACKAGES = $(BUILD_PACKAGES) clang libclang-rt-dev
BENCH_PACKAGES = $(CHECK_PACKAGES) elfutils time
APPLICATIONS_PACKAGES = $(DEMO_PACKAGES) puma ruby-rails ruby-sqlite3 ruby-sidekiq redis-server rubocop
GALLERY_PACKAGES = $(DEMO_PACKAGES) rubocop rake puma ruby-rails ruby-sqlite3 ruby-sidekiq redis-server chromium procps

.PHONY: packages-build packages-demo packages-lint packages-check packages-fuzz packages-bench packages-gallery \
	packages-applications
packages-build: ; @tests/packages $(BUILD_PACKAGES)
packages-demo: ; @tests/packages $(DEMO_PACKAGES)
packages-lint: ; @tests/packages $(LINT_PACKAGES)
packages-check: ; @tests/packages $(CHECK_PACKAGES)
packages-fuzz: ; @tests/packages $(FUZZ_PACKAGES)
packages-bench: ; @tests/packages $(BENCH_PACKAGES)
packages-gallery: ; @tests/packages $(GALLERY_PACKAGES)
packages-applications: ; @tests/packages $(APPLICATIONS_PACKAGES)

# ---- the two commands of the README

.PHONY: demo
demo: packages-demo
	@$(MAKE) --no-print-directory all
	@doc/demo/run

# Debian's python3 has Debian's pytest, but another python3 may come first in PATH. Tests wait more than they compute,
# so there are more workers than CPUs.
PYTEST = /usr/bin/python3 -m pytest -q -n $(PYTEST_WORKERS)
PYTEST_WORKERS = $(shell echo $$(($(JOBS) * 3 / 2)))

# The Rubies are built while the unit tests run: these need no Ruby.
.PHONY: check check-fast soak
check: packages-check
	@$(MAKE) --no-print-directory -j$(JOBS) all probes formats
	@printf '%s\n' tests/rubies/build '$(MAKE) --no-print-directory unit' | xargs -P 2 -I COMMAND sh -c COMMAND
	$(PYTEST) tests

check-fast: packages-check
	@$(MAKE) --no-print-directory -j$(JOBS) all probes formats
	tests/rubies/build 3.4
	$(PYTEST) --fast tests

# Run this before a release; it takes some hours. CONTRIBUTING.md says where the results of the last run are.
soak: packages-bench
	@$(MAKE) --no-print-directory -j$(JOBS) all probes formats
	@$(MAKE) --no-print-directory unit FUZZ_RUNS=5000000 FUZZ_RECORDING_RUNS=100000 FUZZ_HEAP_RUNS=100000
	tests/rubies/build --soak
	$(PYTEST) --soak tests
	set -e; for program in children waking pool stops kills nearest names pauses; do /usr/bin/python3 bench/$$program.py; done

# ---- quality

C_FILES = $(filter-out $(BPF_SOURCES),$(wildcard dumper/*.c dumper/*/*.c gen/*.c bench/*.c))
FUZZ_FILES = $(wildcard tests/fuzz/*.c tests/fuzz/*.h)
TIDY_FILES = $(C_FILES:%=%.tidy) $(patsubst %,%.tidy,$(filter %.c,$(FUZZ_FILES)))
.PHONY: lint $(TIDY_FILES)
lint: packages-lint
	@$(MAKE) --no-print-directory $(GENERATED_HEADERS)
	clang-format --dry-run -Werror $(C_FILES) $(BPF_SOURCES) $(HEADERS) $(wildcard tests/unit/*.c tests/unit/*.h tests/probes/*.c tests/embedded/*.c) \
		$(FUZZ_FILES)
	cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
		-I$(B)/gen -Idumper -I. $(BPF_SOURCES:%=-i%) dumper gen tests/fuzz
	shellcheck $(SHELL_FILES)
	$(PYTHON) tests/floors.py
	@$(MAKE) --no-print-directory -j$(JOBS) $(TIDY_FILES)

SHELL_FILES = .ci/run doc/demo/run tests/mirror tests/packages tests/roots/build tests/rubies/build

$(TIDY_FILES): %.tidy:
	clang-tidy --quiet $* -- -std=gnu11 $(ALL_CPPFLAGS)

.PHONY: bench
bench: packages-bench
	@$(MAKE) --no-print-directory all
	tests/rubies/build 3.4
	/usr/bin/python3 bench/bench.py

# Measures churn, variants and cost for doc/experiments.md anew, which takes some 25 minutes.
.PHONY: experiments
experiments: packages-check
	@$(MAKE) --no-print-directory all
	tests/rubies/build
	/usr/bin/python3 bench/experiments.py

# `make recording` measures the table of costs in doc/recording.md anew, which takes some five minutes. `make gallery`
# makes doc/gallery.md anew, which takes some four minutes.
.PHONY: recording gallery
recording: packages-check
	@$(MAKE) --no-print-directory all
	tests/rubies/build 3.4
	/usr/bin/python3 bench/recording.py
gallery: packages-gallery
	@$(MAKE) --no-print-directory all
	/usr/bin/python3 bench/gallery.py

# ---- install

.PHONY: install
install: all
	install -d $(DESTDIR)$(bindir) $(DESTDIR)$(offsetsdir) $(DESTDIR)$(mandir)/man1 \
		$(DESTDIR)$(datadir)/rbdump/gdb $(DESTDIR)$(datadir)/bash-completion/completions \
		$(DESTDIR)$(datadir)/zsh/site-functions $(DESTDIR)$(datadir)/fish/vendor_completions.d
	install -m 755 $(B)/rbdump $(DESTDIR)$(bindir)/rbdump
	install -m 644 $(wildcard offsets.d/*.layout) $(DESTDIR)$(offsetsdir)
	install -m 644 $(wildcard gdb-scripts/*.py) $(DESTDIR)$(datadir)/rbdump/gdb
	install -m 644 $(MANUAL) $(DESTDIR)$(mandir)/man1
	install -m 644 completions/rbdump.bash $(DESTDIR)$(datadir)/bash-completion/completions/rbdump
	install -m 644 completions/_rbdump $(DESTDIR)$(datadir)/zsh/site-functions/_rbdump
	install -m 644 completions/rbdump.fish $(DESTDIR)$(datadir)/fish/vendor_completions.d/rbdump.fish

.PHONY: help
help:
	@echo 'make              build build/rbdump'
	@echo 'make demo         install missing packages, build rbdump, and dump a small program that Debian'"'"'s own Ruby runs'
	@echo 'make check        install missing packages, and run all tests (the first time, this builds eight Rubies)'
	@echo 'make check-fast   run only the quick tests, on the newest Ruby (about two minutes)'
	@echo 'make soak         run all tests on all Rubies, and programs that need long runs for good statistics (some hours)'
	@echo 'make SAN=1 check  run all tests with AddressSanitizer and UBSan'
	@echo 'make unit         run only the unit tests'
	@echo 'make fuzz         run libFuzzer on stacks, layouts, recordings and heaps, for FUZZ_SECONDS (default: 60) seconds each'
	@echo 'make lint         run clang-format, cppcheck, shellcheck and clang-tidy, and check which folder includes which'
	@echo 'make bench        measure rbdump and other tools: see doc/benchmarks.md'
	@echo 'make experiments  measure paused and unpaused sampling anew, for doc/experiments.md (some 25 minutes)'
	@echo 'make recording    measure the cost of a recording anew, for doc/recording.md (some five minutes)'
	@echo 'make gallery      record rubocop, rake and puma, and dump stuck servers, for doc/gallery.md (some four minutes)'
	@echo 'make install      install rbdump in prefix (default: /usr/local); if DESTDIR is set, below DESTDIR'
	@echo 'make clean        remove the folder build'

.PHONY: clean
clean:
	rm -rf build

-include $(OBJECTS:.o=.d) $(UNIT_FIXTURES:.o=.d) $(UNIT:=.d) $(PROBES:=.d) \
	$(patsubst tests/fuzz/%.c,$(B)/tests/fuzz/%.d,$(wildcard tests/fuzz/*.c))
