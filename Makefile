# rbdump: build, test, install. `make help` lists the targets.

VERSION := 0.1.0
prefix ?= /usr/local
bindir = $(prefix)/bin
datadir = $(prefix)/share
mandir = $(datadir)/man
offsetsdir = $(datadir)/rbdump/offsets.d

CC = gcc
CFLAGS ?= -O2 -g
PYTHON ?= python3
PKGS = libdw libelf jansson libzstd

# One build folder a flavour, so that a sanitized build does not replace the plain one.
ifeq ($(SAN),1)
B := build/san
SANFLAGS = -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
else
B := build
SANFLAGS =
endif

WARNINGS = -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wundef \
	-Wwrite-strings -Wvla -Wformat=2 -Wnull-dereference
ALL_CPPFLAGS = -D_GNU_SOURCE -DRBDUMP_VERSION='"$(VERSION)"' -I$(B)/gen -Idumper/layout -Idumper -I. $(CPPFLAGS)
ALL_CFLAGS = -std=gnu11 -pthread $(CFLAGS) $(WARNINGS) $(SANFLAGS) $(shell pkg-config --cflags $(PKGS))
ALL_LDLIBS = -pthread -lm $(LDFLAGS) $(SANFLAGS) $(shell pkg-config --libs $(PKGS))

SOURCES := $(sort $(wildcard dumper/*.c dumper/*/*.c gen/*.c))
GENERATED := $(B)/gen/layout_fields.c
HEADERS := $(wildcard dumper/*.h dumper/*/*.h gen/*.h)
OBJECTS := $(SOURCES:%.c=$(B)/%.o) $(GENERATED:.c=.o)
LIB_OBJECTS := $(filter-out $(B)/dumper/main.o,$(OBJECTS))

# `make V=1` shows the commands.
say = $(if $(V),,@printf '%-4s%s\n' '$(1)' '$@';)

.DEFAULT_GOAL := all
.PHONY: all
all: $(B)/rbdump

$(B)/rbdump: $(OBJECTS)
	$(call say,LD)$(CC) -o $@ $^ $(ALL_LDLIBS)

$(B)/gen/layout_fields.h $(B)/gen/layout_fields.c &: gen/fields.def gen/fields.py
	@mkdir -p $(B)/gen
	$(call say,GEN)$(PYTHON) gen/fields.py gen/fields.def $(B)/gen

$(B)/%.o: %.c $(B)/gen/layout_fields.h
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -c -o $@ $<

$(B)/gen/%.o: $(B)/gen/%.c
	$(call say,CC)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -c -o $@ $<

# Unit tests: tests/unit/test_X.c is one cmocka program, linked with everything but main, and the fixture.
UNIT := $(patsubst tests/unit/%.c,$(B)/unit/%,$(sort $(wildcard tests/unit/test_*.c)))
UNIT_FIXTURE := $(B)/tests/unit/synthetic.o
.PHONY: unit
unit: $(UNIT)
	@set -e; for t in $(UNIT); do echo "== $$t"; $$t; done

$(B)/unit/%: tests/unit/%.c $(LIB_OBJECTS) $(UNIT_FIXTURE)
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MF $@.d -o $@ $< $(LIB_OBJECTS) $(UNIT_FIXTURE) \
		-lcmocka $(ALL_LDLIBS)

# Probes: programs that show the tests one part of rbdump from outside.
PROBES := $(patsubst tests/probes/%.c,$(B)/tests/probes/%,$(sort $(wildcard tests/probes/*.c)))
.PHONY: probes
probes: $(PROBES)

$(B)/tests/probes/%: tests/probes/%.c $(LIB_OBJECTS)
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MF $@.d -o $@ $< $(LIB_OBJECTS) $(ALL_LDLIBS)

# ---- what must be there; installed by apt-get where it is not

BUILD_PACKAGES = gcc make pkg-config python3 libdw-dev libelf-dev libjansson-dev libzstd-dev libc6-dev
DEMO_PACKAGES = $(BUILD_PACKAGES) ruby
LINT_PACKAGES = $(BUILD_PACKAGES) clang-tidy clang-format cppcheck shellcheck
CHECK_PACKAGES = $(BUILD_PACKAGES) ruby gdb zstd gcc libcmocka-dev python3-pytest binutils dwz util-linux procps \
	apt dpkg-dev libdebuginfod1 debian-archive-keyring autoconf bison rustc zlib1g-dev libyaml-dev libgmp-dev
BENCH_PACKAGES = $(CHECK_PACKAGES) strace elfutils time

.PHONY: packages-build packages-demo packages-lint packages-check packages-bench
packages-build: ; @tests/packages $(BUILD_PACKAGES)
packages-demo: ; @tests/packages $(DEMO_PACKAGES)
packages-lint: ; @tests/packages $(LINT_PACKAGES)
packages-check: ; @tests/packages $(CHECK_PACKAGES)
packages-bench: ; @tests/packages $(BENCH_PACKAGES)

# ---- the two commands of the README

.PHONY: demo
demo: packages-demo
	@$(MAKE) --no-print-directory all
	@doc/demo/run

# Debian's own python3 has Debian's own pytest; another python3 may come first in PATH.
PYTEST = /usr/bin/python3 -m pytest

.PHONY: check
check: packages-check
	@$(MAKE) --no-print-directory all unit probes
	tests/rubies/build
	$(PYTEST) -q tests

# ---- quality

C_FILES = $(wildcard dumper/*.c dumper/*/*.c gen/*.c bench/*.c)
TIDY_FILES = $(C_FILES:%=%.tidy)
.PHONY: lint $(TIDY_FILES)
lint: packages-lint
	@$(MAKE) --no-print-directory $(B)/gen/layout_fields.h
	clang-format --dry-run -Werror $(C_FILES) $(HEADERS) $(wildcard tests/unit/*.c tests/unit/*.h tests/probes/*.c)
	cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
		-I$(B)/gen -Idumper/layout -Idumper -I. dumper gen
	shellcheck $(SHELL_FILES)
	@$(MAKE) --no-print-directory -j$(shell nproc) $(TIDY_FILES)

SHELL_FILES = .ci/run doc/demo/run tests/packages tests/rubies/build

$(TIDY_FILES): %.tidy:
	clang-tidy --quiet $* -- -std=gnu11 $(ALL_CPPFLAGS)

.PHONY: bench
bench: packages-bench
	@$(MAKE) --no-print-directory all
	tests/rubies/build 3.4
	/usr/bin/python3 bench/bench.py

# What doc/experiments.md says, measured anew: some 15 minutes.
.PHONY: experiments
experiments: packages-check
	@$(MAKE) --no-print-directory all
	tests/rubies/build
	/usr/bin/python3 bench/experiments.py

# ---- install

.PHONY: install
install: all
	install -d $(DESTDIR)$(bindir) $(DESTDIR)$(offsetsdir) $(DESTDIR)$(mandir)/man1 \
		$(DESTDIR)$(datadir)/rbdump/gdb-scripts $(DESTDIR)$(datadir)/bash-completion/completions \
		$(DESTDIR)$(datadir)/zsh/site-functions
	install -m 755 $(B)/rbdump $(DESTDIR)$(bindir)/rbdump
	install -m 644 $(wildcard offsets.d/*.layout) $(DESTDIR)$(offsetsdir)
	install -m 644 $(wildcard gdb-scripts/*.py) $(DESTDIR)$(datadir)/rbdump/gdb-scripts
	install -m 644 doc/rbdump.1 $(DESTDIR)$(mandir)/man1/rbdump.1
	install -m 644 completions/rbdump.bash $(DESTDIR)$(datadir)/bash-completion/completions/rbdump
	install -m 644 completions/_rbdump $(DESTDIR)$(datadir)/zsh/site-functions/_rbdump

.PHONY: help
help:
	@echo 'make            build build/rbdump'
	@echo 'make demo       install what is missing, build, and dump a small Ruby program on Debian'"'"'s own Ruby'
	@echo 'make check      install what the tests need, and run them all (the first time builds Rubies: some 25 minutes)'
	@echo 'make SAN=1 check  the same under AddressSanitizer and UBSan'
	@echo 'make unit       only the unit tests'
	@echo 'make lint       clang-format, cppcheck, shellcheck, clang-tidy'
	@echo 'make bench      measure'
	@echo 'make experiments  measure paused against unpaused sampling anew (some 15 minutes)'
	@echo 'make install    honours DESTDIR and prefix'
	@echo 'make clean'

.PHONY: clean
clean:
	rm -rf build

-include $(OBJECTS:.o=.d) $(UNIT_FIXTURE:.o=.d) $(UNIT:=.d) $(PROBES:=.d)
