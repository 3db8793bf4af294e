#include "record/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct part {
	int fd;
	struct recording_writer *writer; /* NULL: it is not open */
	uint64_t end_ns;		 /* when this part ended; set once it is `before` */
};

struct output {
	char *name; /* NULL: it has none */
	bool named; /* by the user */
	struct recording_head head;
	struct part now, before;
	uint32_t part;
};

const char *output_name(const struct output *output)
{
	return !output->name ? "a temporary file" : strcmp(output->name, "-") == 0 ? "standard output" : output->name;
}

uint32_t output_part(const struct output *output)
{
	return output->part;
}

/* A temporary file that disappears when rbdump ends. */
static int open_nameless(void)
{
	const char *folder = getenv("TMPDIR");
	char name[] = "/tmp/rbdump-XXXXXX";
	int fd = open(folder && folder[0] ? folder : "/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	fd = mkostemp(name, O_CLOEXEC);
	if (fd >= 0)
		unlink(name);
	return fd;
}

/*
 * Opens a file that the user has not named. In a folder that others can write to, there may be a link or a file of
 * somebody else in its place: these are refused. A file of the user is emptied. Returns -1 with errno on failure;
 * *why receives why the file is refused, or NULL.
 */
static int open_own(const char *path, const char **why)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	struct stat status;

	*why = NULL;
	if (fd >= 0 || errno != EEXIST)
		return fd;
	fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0) {
		if (errno == ELOOP)
			*why = "the file is a symbolic link";
		return -1;
	}
	if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
		*why = "the file is not a regular file";
	else if (status.st_uid != geteuid())
		*why = "the file belongs to another user";
	else if (status.st_nlink != 1)
		*why = "the file has other names (hard links)";
	if (!*why && ftruncate(fd, 0) == 0)
		return fd;
	close(fd);
	return -1;
}

static struct error *open_part(struct output *output)
{
	struct part *part = &output->now;
	const char *why = NULL;
	char *name = NULL;
	struct error *error;

	*part = (struct part){.fd = -1};
	if (output->part > 0 && asprintf(&name, "%s.%u", output->name, output->part) < 0)
		return error_no_memory();
	if (!output->name)
		part->fd = open_nameless();
	else if (strcmp(output->name, "-") == 0)
		part->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	else if (output->named && output->part == 0)
		part->fd = open(output->name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	else
		part->fd = open_own(name ? name : output->name, &why);
	if (part->fd < 0 && why)
		error = error_create(
		    EXIT_FAILED, "rbdump does not write to %s: %s; remove that file, or choose %s file with -o FILE",
		    name ? name : output->name, why, output->named ? "another" : "the output");
	else if (part->fd < 0)
		error = error_create(EXIT_FAILED, "%s cannot be written: %s", name ? name : output_name(output),
				     strerror(errno));
	else
		error = recording_begin(part->fd, name ? name : output_name(output), &output->head, &part->writer);
	free(name);
	return error;
}

static void close_part(struct part *part)
{
	recording_destroy(part->writer);
	if (part->fd >= 0)
		close(part->fd);
	*part = (struct part){.fd = -1};
}

struct error *output_open(const char *name, bool named, const struct recording_head *head, struct output **ret)
{
	struct output *output = calloc(1, sizeof(*output));
	struct error *error;

	*ret = NULL;
	if (!output)
		return error_no_memory();
	output->now.fd = output->before.fd = -1;
	output->head = *head;
	output->named = named;
	if (name) {
		output->name = strdup(name);
		if (!output->name) {
			output_close(output);
			return error_no_memory();
		}
	}
	error = open_part(output);
	if (error)
		output_close(output);
	else
		*ret = output;
	return error;
}

struct error *output_add(struct output *output, uint32_t part, const uint8_t *records, size_t length)
{
	struct part *to = part == output->part ? &output->now : part + 1 == output->part ? &output->before : NULL;

	return to && to->writer ? recording_add(to->writer, records, length) : NULL;
}

struct error *output_flush(struct output *output)
{
	struct error *error = output->now.writer ? recording_flush(output->now.writer) : NULL;

	if (!error && output->before.writer)
		error = recording_flush(output->before.writer);
	return error;
}

struct error *output_finish_before(struct output *output)
{
	struct error *error = NULL;

	if (output->before.writer)
		error = recording_finish(output->before.writer, output->before.end_ns);
	close_part(&output->before);
	return error;
}

struct error *output_rotate(struct output *output, uint64_t now_ns, const struct timespec *start)
{
	struct error *error = output_finish_before(output);

	if (error)
		return error;
	output->before = output->now;
	output->before.end_ns = now_ns;
	output->part++;
	output->head.start = *start;
	return open_part(output);
}

struct error *output_finish(struct output *output, uint64_t now_ns)
{
	struct error *error = output_finish_before(output);

	if (!error && output->now.writer)
		error = recording_finish(output->now.writer, now_ns);
	return error;
}

int output_reread(struct output *output)
{
	lseek(output->now.fd, 0, SEEK_SET);
	return output->now.fd;
}

void output_remove(struct output *output)
{
	struct stat stat;

	/* Only a regular file is removed, no device (/dev/null). */
	if (output->name && output->part == 0 && fstat(output->now.fd, &stat) == 0 && S_ISREG(stat.st_mode) &&
	    strcmp(output->name, "-") != 0)
		unlink(output->name);
}

void output_close(struct output *output)
{
	if (!output)
		return;
	close_part(&output->now);
	close_part(&output->before);
	free(output->name);
	free(output);
}
