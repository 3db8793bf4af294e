#include "heap/heap_dump.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "heap/heap_open.h"
#include "heap/objspace_dump.h"
#include "heap/packed_file.h"
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

static void tell_sites(const struct allocation_sites *sites)
{
	const uint64_t refused = allocation_sites_refused(sites);

	if (refused > 0)
		note("%" PRIu64
		     " records of where an object was allocated could not be read, or have a form that rbdump "
		     "does not know.",
		     refused);
	if (allocation_sites_are_incomplete(sites))
		note("Not all records of where objects were allocated could be read.");
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

/* Writes to a file, or to standard output. */
static struct error *write_to(const char *path, struct heap_walk *walk, struct heap_roots *roots,
			      struct allocation_sites *sites, struct objspace_dump *result)
{
	FILE *stream = stdout;
	struct error *error = path ? packed_file_open(path, &stream) : NULL;
	bool written;

	if (error)
		return error;
	errno = 0;
	progress_begin();
	objspace_dump_write(walk, roots, sites, stream, result);
	progress_end();
	written = fflush(stream) == 0 && !ferror(stream);
	if (path && fclose(stream) != 0)
		written = false;
	if (written)
		return NULL;
	return error_create(EXIT_FAILED, "%s cannot be written: %s", path ? path : "standard output",
			    errno != 0 ? strerror(errno) : "the compression failed");
}

struct error *heap_dump(const struct heap_options *options, struct session *session, enum exit_status *status)
{
	const bool runs = !options->target.core;
	struct objspace_dump result = {0};
	struct data_files files = {0};
	struct allocation_sites *sites = NULL;
	struct heap_roots roots = {0};
	struct ruby ruby = session->ruby;
	struct heap_walk walk = {0};
	struct error *error = NULL;

	ruby.memory = session_memory(session);
	if (ruby.memory && heap_walk_begin(&ruby, target_read_pages, session->target, runs, runs, &walk) &&
	    data_files_read(session->target, &files) &&
	    heap_roots_read(&walk.lasting, session->module, &files, target_read_pages, session->target,
			    walk.deadline_ns, &roots) &&
	    (sites = allocation_sites_create(&walk, &files)) != NULL) {
		walk.refs.steps = heap_most_steps(session->target);
		error = write_to(options->output, &walk, &roots, sites, &result);
	} else {
		error = error_no_memory();
	}
	if (!error && walk.no_memory)
		error = error_no_memory();
	if (!error)
		error = heap_open_check_alive(session, &options->target);
	if (!error) {
		tell_doubts(session, &walk, &result, runs);
		tell_sites(sites);
	}
	*status = walk.incomplete ? EXIT_PARTIAL : EXIT_COMPLETE;
	allocation_sites_destroy(sites);
	heap_roots_clear(&roots);
	data_files_clear(&files);
	heap_walk_clear(&walk);
	memory_destroy(ruby.memory);
	return error;
}
