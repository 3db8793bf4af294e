#include "heap/heap_dump.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "heap/heap_open.h"
#include "heap/heap_output.h"
#include "heap/heap_reading.h"
#include "heap/numbers.h"
#include "heap/objspace_dump.h"
#include "heap/pause.h"
#include "heap/progress.h"
#include "ruby/class_refs.h"

/* Bytes that are copied at a time. */
#define COPY_BYTES (1u << 18)

/* What is written. */
struct dumping {
	struct heap_reading reading;
	struct allocation_sites *sites;
	struct objspace_dump result;
	FILE *held; /* what was written while the process was stopped; NULL: nothing */
};

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

static void tell_doubts(const struct session *session, const struct heap_walk *walk, const struct objspace_dump *result)
{
	char unknown[NUMBER], objects[NUMBER];

	heap_open_print_nearest(session, "rbdump: ", stderr);
	if (walk->runs)
		note("The process ran while its heap was read, so the objects were read at different moments.");
	if (walk->blind)
		note("Some of the objects may be dead: the garbage collector was running, or this Ruby does not show "
		     "which objects are dead.");
	if (result->unknown > 0) {
		number_text(result->unknown, unknown);
		number_text(result->objects, objects);
		note("For %s of %s objects, the references are not exactly known. Most of these objects are T_DATA, "
		     "whose references only C code knows.",
		     unknown, objects);
	}
	if (class_refs_lack(session->layout.layout))
		note("%s", class_refs_lack(session->layout.layout));
	if (result->empty > 0)
		note("%" PRIu64
		     " slots have no object, although something seems to refer to them (type NONE). For each of these "
		     "slots, %s",
		     result->empty,
		     walk->runs ? "either an object was made or freed in it while the heap was read, or the words that "
				  "contain its address are not references."
				: "the words that contain its address are not references.");
	if (progress_was_interrupted())
		note("^C ended the reading, so only part of the heap was written.");
	else if (walk->incomplete)
		note("Part of the heap could not be read.");
}

static void tell_sites(const struct allocation_sites *sites)
{
	const uint64_t refused = allocation_sites_refused(sites), others = allocation_sites_of_others(sites);

	if (others > 0)
		note("%" PRIu64
		     " records of where an object was allocated are left out: each belongs to an earlier object of "
		     "another type in the same slot.",
		     others);
	if (refused > 0)
		note("%" PRIu64
		     " records of where an object was allocated could not be read, or have a form that rbdump "
		     "does not know.",
		     refused);
	if (allocation_sites_are_incomplete(sites))
		note("Not all records of where objects were allocated could be read.");
}

/*
 * Prepares a reading of the objects.
 *   runs, deadline_ns  as for heap_reading_prepare()
 * Returns false if there is not enough memory.
 */
static bool prepare(struct dumping *dumping, bool runs, uint64_t deadline_ns)
{
	allocation_sites_destroy(dumping->sites);
	dumping->sites = NULL;
	if (!heap_reading_prepare(&dumping->reading, runs, deadline_ns) || !heap_reading_roots(&dumping->reading))
		return false;
	dumping->sites = allocation_sites_create(&dumping->reading.walk, &dumping->reading.files);
	return dumping->sites != NULL;
}

/* Writes all objects. Returns false if there is not enough memory. */
static bool write_objects(void *context, FILE *stream)
{
	struct dumping *dumping = context;

	objspace_dump_write(&dumping->reading.walk, &dumping->reading.roots, dumping->sites, stream, &dumping->result);
	return !dumping->reading.walk.no_memory;
}

static ssize_t discard(void *cookie, const char *bytes, size_t length)
{
	(void)cookie;
	(void)bytes;
	return (ssize_t)length;
}

/*
 * Opens what is written to for a pause: nothing, to find out how long it takes; else memory, because a file or a pipe could
 * keep the process waiting.
 */
static struct error *open_for_pause(bool runs, FILE **ret)
{
	const cookie_io_functions_t nothing = {.write = discard};
	const int fd = runs ? -1 : memfd_create("rbdump", MFD_CLOEXEC);

	if (runs)
		*ret = fopencookie(NULL, "w", nothing);
	else if (fd >= 0)
		*ret = fdopen(fd, "w+");
	if (*ret) {
		setvbuf(*ret, NULL, _IOFBF, COPY_BYTES);
		return NULL;
	}
	if (fd >= 0)
		close(fd);
	return error_no_memory();
}

static void close_held(struct dumping *dumping)
{
	if (dumping->held)
		fclose(dumping->held);
	dumping->held = NULL;
}

static struct error *read_for_pause(void *context, bool runs, uint64_t deadline_ns)
{
	struct dumping *dumping = context;
	struct error *error;

	close_held(dumping);
	error = open_for_pause(runs, &dumping->held);
	if (error)
		return error;
	if (!prepare(dumping, runs, deadline_ns) || !write_objects(dumping, dumping->held))
		return error_no_memory();
	if (fflush(dumping->held) != 0 || ferror(dumping->held))
		return error_create(EXIT_FAILED, "the objects do not fit into memory: %s; omit --stop, or read a core",
				    strerror(errno));
	return NULL;
}

static bool is_late(const void *context)
{
	const struct dumping *dumping = context;

	return dumping->reading.walk.late;
}

/* Copies what was written while the process was stopped. */
static bool write_held(void *context, FILE *stream)
{
	const struct dumping *dumping = context;
	char bytes[1 << 14];
	size_t length;

	rewind(dumping->held);
	while ((length = fread(bytes, 1, sizeof(bytes), dumping->held)) > 0 &&
	       fwrite(bytes, 1, length, stream) == length)
		;
	return true;
}

static struct error *dump_stopped(const struct heap_options *options, struct session *session, struct dumping *dumping)
{
	const struct pause_work work = {read_for_pause, is_late, dumping};
	struct error *error;
	double ms;

	progress_begin();
	error = pause_read(options, session, &work, &ms);
	progress_end();
	return error ? error : heap_output(options->output, write_held, dumping);
}

static struct error *dump_running(const struct heap_options *options, struct session *session, struct dumping *dumping)
{
	struct error *error;

	if (!prepare(dumping, !options->target.core, 0))
		return error_no_memory();
	progress_begin();
	error = heap_output(options->output, write_objects, dumping);
	progress_end();
	return error ? error : heap_open_check_alive(session, &options->target);
}

struct error *heap_dump(const struct heap_options *options, struct session *session, enum exit_status *status)
{
	struct dumping dumping = {0};
	struct error *error = NULL;

	if (!heap_reading_begin(session, &dumping.reading))
		error = error_no_memory();
	else if (options->stop)
		error = dump_stopped(options, session, &dumping);
	else
		error = dump_running(options, session, &dumping);
	if (!error) {
		tell_doubts(session, &dumping.reading.walk, &dumping.result);
		tell_sites(dumping.sites);
	}
	*status = dumping.reading.walk.incomplete ? EXIT_PARTIAL : EXIT_COMPLETE;
	close_held(&dumping);
	allocation_sites_destroy(dumping.sites);
	heap_reading_clear(&dumping.reading);
	return error;
}
