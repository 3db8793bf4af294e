#include "heap/heap_dump.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "heap/heap_open.h"
#include "heap/heap_output.h"
#include "heap/heap_reading.h"
#include "heap/objspace_dump.h"
#include "heap/progress.h"

/* Standard output has the objects. */
static void __attribute__((format(printf, 1, 2))) note(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fputs("rbdump: ", stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	va_end(arguments);
}

static void tell_doubts(const struct session *session, const struct heap_walk *walk, const struct objspace_dump *result,
			bool runs)
{
	heap_open_print_nearest(session, "rbdump: ", stderr);
	if (runs)
		note("The process ran while its heap was read, so the objects are of different moments.");
	if (walk->blind)
		note("Some of the objects can be dead: the garbage collector was running, or this Ruby does not tell "
		     "which are.");
	if (result->unknown > 0)
		note("%" PRIu64 " of %" PRIu64
		     " objects may have more or fewer references than are written; most are T_DATA, whose references "
		     "only C code knows.",
		     result->unknown, result->objects);
	if (progress_was_interrupted())
		note("^C ended the reading, so only part of the heap was written.");
	else if (walk->incomplete)
		note("Part of the heap could not be read.");
}

/* What is written. */
struct dumping {
	struct heap_reading *reading;
	struct objspace_dump result;
};

static bool write_objects(void *context, FILE *stream)
{
	struct dumping *dumping = context;

	progress_begin();
	objspace_dump_write(&dumping->reading->walk, &dumping->reading->roots, stream, &dumping->result);
	progress_end();
	return !dumping->reading->walk.no_memory;
}

struct error *heap_dump(const struct heap_options *options, struct session *session, enum exit_status *status)
{
	const bool runs = !options->target.core;
	struct heap_reading reading;
	struct dumping dumping = {.reading = &reading};
	struct error *error;

	if (heap_reading_begin(session, &reading) && heap_reading_prepare(&reading, runs, 0) &&
	    heap_reading_roots(&reading))
		error = heap_output(options->output, write_objects, &dumping);
	else
		error = error_no_memory();
	if (!error)
		error = heap_open_check_alive(session, &options->target);
	if (!error)
		tell_doubts(session, &reading.walk, &dumping.result, runs);
	*status = reading.walk.incomplete ? EXIT_PARTIAL : EXIT_COMPLETE;
	heap_reading_clear(&reading);
	return error;
}
