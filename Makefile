# rbdump: build, test, install. `make help` lists the targets.

VERSION := 0.1.0
prefix ?= /usr/local
bindir = $(prefix)/bin
datadir = $(prefix)/share
mandir = $(datadir)/man
sysoffsetsdir = $(datadir)/rbdump/offsets.d

CC = gcc
CFLAGS ?= -O2 -g
PYTHON ?= python3
PKGS = libdw libelf jansson

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
ALL_CPPFLAGS = -D_GNU_SOURCE -DRBDUMP_VERSION='"$(VERSION)"' -DRBDUMP_SYSTEM_OFFSETS='"$(sysoffsetsdir)"' \
	-I$(B)/gen -Idumper/layout -Idumper -I. $(CPPFLAGS)
ALL_CFLAGS = -std=gnu11 $(CFLAGS) $(WARNINGS) $(SANFLAGS) $(shell pkg-config --cflags $(PKGS))
ALL_LDLIBS = $(LDFLAGS) $(SANFLAGS) $(shell pkg-config --libs $(PKGS))

SOURCES := $(sort $(wildcard dumper/*.c dumper/*/*.c gen/*.c))
GENERATED := $(B)/gen/layout_fields.c
HEADERS := $(wildcard dumper/*.h dumper/*/*.h gen/*.h)
OBJECTS := $(SOURCES:%.c=$(B)/%.o) $(GENERATED:.c=.o)
LIB_OBJECTS := $(filter-out $(B)/dumper/main.o,$(OBJECTS))

.DEFAULT_GOAL := all
.PHONY: all
all: $(B)/rbdump

$(B)/rbdump: $(OBJECTS)
	$(CC) -o $@ $^ $(ALL_LDLIBS)

$(B)/gen/layout_fields.h $(B)/gen/layout_fields.c &: gen/fields.def gen/fields.py
	@mkdir -p $(B)/gen
	$(PYTHON) gen/fields.py gen/fields.def $(B)/gen

$(B)/%.o: %.c $(B)/gen/layout_fields.h
	@mkdir -p $(@D)
	$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -c -o $@ $<

$(B)/gen/%.o: $(B)/gen/%.c
	$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -c -o $@ $<

# Unit tests: tests/unit/test_X.c is one cmocka program, linked with everything but main.
UNIT := $(patsubst tests/unit/%.c,$(B)/unit/%,$(sort $(wildcard tests/unit/test_*.c)))
.PHONY: unit
unit: $(UNIT)
	@set -e; for t in $(UNIT); do echo "== $$t"; $$t; done

$(B)/unit/%: tests/unit/%.c $(LIB_OBJECTS)
	@mkdir -p $(@D)
	$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MF $@.d -o $@ $< $(LIB_OBJECTS) -lcmocka $(ALL_LDLIBS)

.PHONY: clean
clean:
	rm -rf build

-include $(OBJECTS:.o=.d) $(UNIT:=.d)
