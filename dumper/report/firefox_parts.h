/*
 * The state that firefox.c and firefox_tables.c share. These files write a profile for the Firefox Profiler.
 */
#ifndef RBDUMP_FIREFOX_PARTS_H
#define RBDUMP_FIREFOX_PARTS_H

#include "report/format.h"
#include "report/json_stream.h"
#include "report/string_table.h"

#define NR_SYSCALLS (INT16_MAX + 1)
#define OTHER	    0 /* the subcategory of leaves that are not blocked in a known system call */
#define NONE	    UINT32_MAX

/* A combination of a stack, a state and a system call: one row of the table of stacks. */
struct firefox_leaf {
	uint32_t node;
	uint8_t state;
	int16_t syscall;
};

struct firefox_writer {
	const struct profile *profile;
	const struct format_options *options;
	struct json_stream json;
	struct string_table strings;
	struct string_table sources; /* the paths of the source files, in the order of the table of sources */
	/* For each node: its row in the table of stacks. NONE for the root, and for nodes without callees. */
	uint32_t *callers;
	uint32_t nr_callers;
	/*
	 * In the table of stacks, the rows of `leaves` come after the rows of `callers`. In the table of frames, the
	 * rows of `leaves` come after the rows of the profile's frames.
	 */
	struct firefox_leaf *leaves;
	uint32_t nr_leaves;
	uint32_t *span_leaf; /* for each span: the index of the span's leaf in `leaves` */
	/* For each system call: its subcategory in the category "blocked"; 0 if no leaf is blocked in this system call. */
	uint16_t *subcategories;
	uint64_t samples_a_row; /* in a table of samples: the maximum number of samples per row */
};

/* Writes the index of a table row as an array element. If the index is NONE, writes null. */
void firefox_write_index(struct json_stream *json, uint32_t index);

/* Writes the tables that all threads share: stacks, frames, functions, sources and strings. */
void firefox_write_tables(struct firefox_writer *writer);

/* Writes the number of rows of a table, and ends the table. */
void firefox_end_table(struct json_stream *json, size_t count);

/* Writes a table without rows. `columns` contains the names of the columns, and ends with NULL. */
void firefox_write_empty_table(struct json_stream *json, const char *table, const char *const *columns);

#endif
