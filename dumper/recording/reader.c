#include "recording/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recording/format.h"
#include "recording/frames.h"
#include "recording/records.h"

struct reader {
	struct frame_reader frames;
	struct record_reader records;
};

static struct error *reader_open(int fd, const char *name, struct profile *profile, struct reader *ret)
{
	*ret = (struct reader){.records = {.profile = profile}};
	return frame_reader_open(fd, name, &ret->frames);
}

static void reader_close(struct reader *reader)
{
	record_reader_clear(&reader->records);
	frame_reader_close(&reader->frames);
}

static bool is_out_of_memory(const struct reader *reader)
{
	return reader->frames.no_memory || reader->records.no_memory;
}

static struct error *no_recording(const struct reader *reader)
{
	return error_create(EXIT_FAILED, "%s is not an rbdump recording", reader->frames.name);
}

/*
 * Reads the first frame, which has the head: a file without a head is not a recording. Leaves the cursor after the line
 * that names the format.
 */
static struct error *read_first(struct reader *reader, struct byte_cursor *ret)
{
	const size_t magic = strlen(RECORDING_MAGIC);
	const struct byte_buffer *frame = &reader->frames.frame;
	struct error *error = NULL;

	if (!frame_reader_next(&reader->frames, &error))
		return error ? error : reader->frames.no_memory ? error_no_memory() : no_recording(reader);
	if (frame->length < magic || memcmp(frame->data, RECORDING_MAGIC, magic) != 0)
		return no_recording(reader);
	*ret = (struct byte_cursor){.at = frame->data + magic, .end = frame->data + frame->length};
	return NULL;
}

static struct error *read_into(struct reader *reader, struct recording_state *state)
{
	const struct byte_buffer *frame = &reader->frames.frame;
	struct error *error;
	struct byte_cursor cursor = {0};
	const char *wrong;

	error = read_first(reader, &cursor);
	if (error)
		return error;
	while (record_reader_read(&reader->records, &cursor) && frame_reader_next(&reader->frames, &error))
		cursor = (struct byte_cursor){.at = frame->data, .end = frame->data + frame->length};
	if (error)
		return error;
	if (is_out_of_memory(reader))
		return error_no_memory();
	if (!reader->records.has_head)
		return no_recording(reader);
	record_reader_add_counts(&reader->records);
	wrong = reader->frames.what ? reader->frames.what : reader->records.what;
	state->finished = reader->records.finished && !wrong;
	if (wrong)
		state->damage = strdup(wrong);
	reader->records.profile->cut |= !state->finished;
	return NULL;
}

static struct error *read_one(int fd, const char *name, struct profile *profile, struct recording_state *state)
{
	struct reader reader;
	struct error *error = reader_open(fd, name, profile, &reader);

	if (!error)
		error = read_into(&reader, state);
	reader_close(&reader);
	return error;
}

static int by_thread_and_time(const void *a, const void *b)
{
	const struct profile_span *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	/* Of spans that begin together the longest comes last, and is not cut. */
	return x->weight_ns < y->weight_ns ? -1 : x->weight_ns > y->weight_ns;
}

/* Cuts spans that overlap, as they may if the clocks of several recordings differ. */
static void finish_spans(struct profile *profile)
{
	struct profile_span *spans = profile->spans;

	if (profile->nr_spans > 0)
		qsort(spans, profile->nr_spans, sizeof(*spans), by_thread_and_time);
	for (size_t i = 0; i + 1 < profile->nr_spans; i++)
		if (spans[i].thread == spans[i + 1].thread &&
		    spans[i].start_ns + spans[i].weight_ns > spans[i + 1].start_ns) {
			spans[i].weight_ns = spans[i + 1].start_ns - spans[i].start_ns;
			spans[i].waker = 0;
		}
}

struct error *recording_read_fd(int fd, const char *name, struct recording_state *state, struct profile **ret)
{
	struct profile *profile = profile_create();
	struct error *error;

	*state = (struct recording_state){0};
	*ret = NULL;
	if (!profile)
		return error_no_memory();
	error = read_one(fd, name, profile, state);
	if (error) {
		profile_destroy(profile);
		return error;
	}
	finish_spans(profile);
	*ret = profile;
	return NULL;
}

/* Reads the beginning of a recording from its head. */
static struct error *read_start(int fd, const char *name, struct timespec *ret)
{
	struct profile *profile = profile_create();
	struct byte_cursor cursor = {0};
	struct reader reader;
	struct error *error;

	*ret = (struct timespec){0};
	if (!profile)
		return error_no_memory();
	error = reader_open(fd, name, profile, &reader);
	if (!error)
		error = read_first(&reader, &cursor);
	if (!error) {
		record_reader_read(&reader.records, &cursor);
		if (!reader.records.has_head)
			error = is_out_of_memory(&reader) ? error_no_memory() : no_recording(&reader);
		*ret = profile->start;
	}
	reader_close(&reader);
	profile_destroy(profile);
	return error;
}

static struct error *open_one(const char *name, int *ret)
{
	*ret = strcmp(name, "-") == 0 ? dup(STDIN_FILENO) : open(name, O_RDONLY | O_CLOEXEC);
	return *ret >= 0 ? NULL : error_create(EXIT_FAILED, "%s cannot be read: %s", name, strerror(errno));
}

/* Opens a file that is read twice. That is not possible with a pipe. */
static struct error *open_file(const char *name, int *ret)
{
	struct stat status;

	*ret = -1;
	if (strcmp(name, "-") == 0)
		return error_create(EXIT_USAGE, "standard input cannot be read together with other recordings");
	if (stat(name, &status) == 0 && !S_ISREG(status.st_mode))
		return error_create(EXIT_USAGE, "%s is not a regular file: only regular files can be read together",
				    name);
	return open_one(name, ret);
}

static bool earlier(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

/* Finds the recording that began first: it is read first. */
static struct error *find_first(const char *const names[], size_t count, size_t *ret)
{
	struct timespec first = {0};

	*ret = 0;
	for (size_t i = 0; count > 1 && i < count; i++) {
		struct timespec start;
		struct error *error;
		int fd;

		error = open_file(names[i], &fd);
		if (!error) {
			error = read_start(fd, names[i], &start);
			close(fd);
		}
		if (error)
			return error;
		if (i == 0 || earlier(&start, &first)) {
			first = start;
			*ret = i;
		}
	}
	return NULL;
}

struct error *recordings_read(const char *const names[], size_t count, struct recording_state *states,
			      struct profile **ret)
{
	struct profile *profile = profile_create();
	struct error *error;
	size_t first = 0;

	*ret = NULL;
	for (size_t i = 0; i < count; i++)
		states[i] = (struct recording_state){0};
	if (!profile)
		return error_no_memory();
	error = find_first(names, count, &first);
	for (size_t i = 0; i < count && !error; i++) {
		size_t at = i == 0 ? first : i <= first ? i - 1 : i;
		int fd;

		error = open_one(names[at], &fd);
		if (!error) {
			error = read_one(fd, names[at], profile, &states[at]);
			close(fd);
		}
	}
	if (error) {
		profile_destroy(profile);
		for (size_t i = 0; i < count; i++) {
			free(states[i].damage);
			states[i] = (struct recording_state){0};
		}
		return error;
	}
	finish_spans(profile);
	*ret = profile;
	return NULL;
}
