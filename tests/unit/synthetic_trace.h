/*
 * A trace that tests make by hand, and what is printed of it: as text, and as JSON. Each failure here is a failure of
 * the test that runs.
 */
#ifndef RBDUMP_SYNTHETIC_TRACE_H
#define RBDUMP_SYNTHETIC_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "trace/trace.h"

/* The trace that is printed; its threads are the first ones of `threads`, and their frames are in `frames`. */
extern struct trace trace;
extern struct trace_thread threads[16];
extern struct trace_frame frames[8];

/* For cmocka: makes the trace of a main thread that runs Shop#open, in a process that was paused once. */
int set_up_trace(void **state);

/* The text of the trace, malloc'ed. */
char *text_of(bool colour);
/* The text as `rbdump --all` shows it, malloc'ed. */
char *text_of_all(void);
/* The text without colours is this. */
void assert_text(const char *expected);
/* The text has this line. */
void assert_line(const char *line);

/* The JSON of the trace: one line that does not drive a terminal. The caller frees it with json_decref(). */
json_t *json(void);
/* The first element of the array that is the member `key`. */
json_t *first(const json_t *object, const char *key);
/* The member is this string; null if `expected` is NULL. */
void assert_member(const json_t *object, const char *key, const char *expected);
/* The member is this integer. */
void assert_number(const json_t *object, const char *key, int64_t expected);

#endif
