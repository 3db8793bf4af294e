#include "heap/packed_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

/* Bytes of text that are compressed at a time. */
#define BUFFER_BYTES (1u << 18)

struct zstd_file {
	FILE *to;
	ZSTD_CStream *stream;
	void *out;
};

static ssize_t gzip_write(void *cookie, const char *bytes, size_t length)
{
	/* gzwrite() takes an unsigned int. */
	const int n = gzwrite(cookie, bytes, length > BUFFER_BYTES ? BUFFER_BYTES : (unsigned int)length);

	return n > 0 ? n : 0;
}

static int gzip_close(void *cookie)
{
	return gzclose(cookie) == Z_OK ? 0 : EOF;
}

/* Compresses bytes, or, if `end` is ZSTD_e_end, writes the end. */
static bool zstd_add(struct zstd_file *file, const char *bytes, size_t length, ZSTD_EndDirective end)
{
	ZSTD_inBuffer in = {bytes, length, 0};
	size_t left;

	do {
		ZSTD_outBuffer out = {file->out, ZSTD_CStreamOutSize(), 0};

		left = ZSTD_compressStream2(file->stream, &out, &in, end);
		if (ZSTD_isError(left) || fwrite(file->out, 1, out.pos, file->to) != out.pos)
			return false;
	} while (end == ZSTD_e_end ? left > 0 : in.pos < in.size);
	return true;
}

static ssize_t zstd_write(void *cookie, const char *bytes, size_t length)
{
	return zstd_add(cookie, bytes, length, ZSTD_e_continue) ? (ssize_t)length : 0;
}

static int zstd_close(void *cookie)
{
	struct zstd_file *file = cookie;
	const bool written = !file->stream || !file->out || zstd_add(file, NULL, 0, ZSTD_e_end);
	const bool closed = fclose(file->to) == 0;

	ZSTD_freeCStream(file->stream);
	free(file->out);
	free(file);
	return written && closed ? 0 : EOF;
}

static FILE *gzip_open(int fd)
{
	const cookie_io_functions_t functions = {.write = gzip_write, .close = gzip_close};
	gzFile file = gzdopen(fd, "wb1");
	FILE *ret;

	if (!file) {
		close(fd);
		return NULL;
	}
	ret = fopencookie(file, "w", functions);
	if (!ret)
		gzclose(file);
	return ret;
}

static FILE *zstd_open(int fd)
{
	const cookie_io_functions_t functions = {.write = zstd_write, .close = zstd_close};
	struct zstd_file *file = calloc(1, sizeof(*file));
	FILE *ret = NULL;

	if (file)
		file->to = fdopen(fd, "w");
	if (!file || !file->to) {
		free(file);
		close(fd);
		return NULL;
	}
	file->stream = ZSTD_createCStream();
	file->out = malloc(ZSTD_CStreamOutSize());
	if (file->stream && file->out)
		ret = fopencookie(file, "w", functions);
	if (!ret)
		zstd_close(file);
	return ret;
}

static bool ends_in(const char *path, const char *suffix)
{
	const size_t length = strlen(path), end = strlen(suffix);

	return length > end && strcmp(path + length - end, suffix) == 0;
}

struct error *packed_file_open(const char *path, FILE **ret)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (fd < 0)
		return error_create(EXIT_FAILED, "%s cannot be written: %s", path, strerror(errno));
	if (ends_in(path, ".gz")) {
		*ret = gzip_open(fd);
	} else if (ends_in(path, ".zst")) {
		*ret = zstd_open(fd);
	} else {
		*ret = fdopen(fd, "w");
		if (!*ret)
			close(fd);
	}
	if (!*ret)
		return error_no_memory();
	setvbuf(*ret, NULL, _IOFBF, BUFFER_BYTES);
	return NULL;
}
