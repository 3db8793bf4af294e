#include "target/compressed.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#define DECOMPRESSED_MAX (UINT64_C(64) << 30)

/* How much is decompressed behind a core's end: zstd's checksum is at the end of the file, and shows damage. */
#define BEHIND_MAX (UINT64_C(16) << 20)

/* Zeros are left out in pieces of this size, a block of the file system. */
#define HOLE 4096u

/* Opens a new file without a name. *folder receives its folder. */
static int open_unnamed(const char **folder)
{
	static const char pattern[] = "rbdump-XXXXXX";
	char path[4096];
	int fd, length;

	*folder = getenv("TMPDIR");
	if (!*folder || !(*folder)[0])
		*folder = "/var/tmp";
	length = snprintf(path, sizeof(path), "%s/%s", *folder, pattern);
	if (length < 0 || (size_t)length >= sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

static bool write_all(int fd, const uint8_t *data, size_t length, uint64_t offset)
{
	while (length > 0) {
		ssize_t n = pwrite(fd, data, length, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		data += n;
		offset += (uint64_t)n;
		length -= (size_t)n;
	}
	return true;
}

static bool is_zero(const uint8_t *data, size_t length)
{
	return data[0] == 0 && memcmp(data, data + 1, length - 1) == 0;
}

/* Writes what is not zero. */
static bool write_sparsely(int fd, const uint8_t *data, size_t length, uint64_t offset)
{
	while (length > 0) {
		size_t here = HOLE - offset % HOLE < length ? HOLE - offset % HOLE : length;

		if (!is_zero(data, here) && !write_all(fd, data, here, offset))
			return false;
		data += here;
		offset += here;
		length -= here;
	}
	return true;
}

struct decompression {
	const char *path, *folder;
	int from, to;
	uint8_t *in, *out;
	ZSTD_DStream *stream;
};

static struct error *not_written(const struct decompression *decompression)
{
	return error_create(EXIT_FAILED,
			    "%s cannot be decompressed into %s: %s; set TMPDIR to a folder with more free space",
			    decompression->path, decompression->folder, strerror(errno));
}

/* Values that are no end of a file. */
#define NOT_YET UINT64_MAX
#define NEVER	(UINT64_MAX - 1)

/* Reads back what was written. Zeros that were left out at the end are read as zeros, too. */
static bool read_back(int fd, void *buffer, size_t length, uint64_t offset)
{
	memset(buffer, 0, length);
	return pread(fd, buffer, length, (off_t)offset) >= 0;
}

/*
 * The end of a core according to its program headers; what follows is not needed. 0 if the file is not an ELF file.
 *   written  how many bytes were decompressed
 * Returns NOT_YET if these bytes are too few to tell, NEVER if the headers do not tell the end.
 */
static uint64_t told_end(int fd, uint64_t written)
{
	uint64_t end = sizeof(Elf64_Ehdr);
	Elf64_Ehdr header;
	Elf64_Phdr *segments;
	size_t size;

	if (written < sizeof(header) || !read_back(fd, &header, sizeof(header), 0))
		return NOT_YET;
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
		return 0;
	size = header.e_phnum * sizeof(*segments);
	/* PN_XNUM: the number of segments is in a section header, which is at the end of the file. */
	if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(*segments) ||
	    header.e_phnum == PN_XNUM)
		return NEVER;
	if (size > written || header.e_phoff > written - size)
		return NOT_YET;
	segments = malloc(size + 1);
	if (!segments || !read_back(fd, segments, size, header.e_phoff))
		end = NEVER;
	else if (end < header.e_phoff + size)
		end = header.e_phoff + size;
	for (size_t i = 0; end != NEVER && i < header.e_phnum; i++) {
		uint64_t last;

		if (__builtin_add_overflow(segments[i].p_offset, segments[i].p_filesz, &last))
			end = NEVER;
		else if (end < last)
			end = last;
	}
	free(segments);
	return end;
}

static struct error *decompress_all(const struct decompression *decompression)
{
	uint64_t written = 0, end = NOT_YET, behind = 0;
	ssize_t n = 0;

	while (behind < BEHIND_MAX && (n = read(decompression->from, decompression->in, ZSTD_DStreamInSize())) > 0) {
		ZSTD_inBuffer in = {decompression->in, (size_t)n, 0};
		ZSTD_outBuffer out;

		/* If the output is full, the decoder may have more, even if it has taken all input. */
		do {
			size_t result;

			out = (ZSTD_outBuffer){decompression->out, ZSTD_DStreamOutSize(), 0};
			result = ZSTD_decompressStream(decompression->stream, &out, &in);
			if (ZSTD_isError(result))
				return error_create(EXIT_FAILED, "%s cannot be decompressed: zstd says \"%s\"",
						    decompression->path, ZSTD_getErrorName(result));
			if (written + out.pos > DECOMPRESSED_MAX)
				return error_create(EXIT_FAILED,
						    "%s decompresses to more than 64 GiB: if you expect that size, "
						    "decompress it yourself (zstd -d)",
						    decompression->path);
			if (!write_sparsely(decompression->to, decompression->out, out.pos, written))
				return not_written(decompression);
			written += out.pos;
			if (end == NOT_YET)
				end = told_end(decompression->to, written);
			behind = written < end ? 0 : written - end;
		} while (behind < BEHIND_MAX && (in.pos < in.size || out.pos == out.size));
	}
	if (n < 0)
		return error_create(EXIT_FAILED, "%s cannot be read: %s", decompression->path, strerror(errno));
	/* Zeros at its end were left out: this adds them. */
	return ftruncate(decompression->to, (off_t)written) == 0 ? NULL : not_written(decompression);
}

/* Replaces the compressed file in *fd by the decompressed one. */
static struct error *decompress(const char *path, int *fd)
{
	struct decompression decompression = {.path = path, .from = *fd};
	struct error *error;

	decompression.to = open_unnamed(&decompression.folder);
	if (decompression.to < 0)
		return not_written(&decompression);
	decompression.in = malloc(ZSTD_DStreamInSize());
	decompression.out = malloc(ZSTD_DStreamOutSize());
	decompression.stream = ZSTD_createDStream();
	if (decompression.in && decompression.out && decompression.stream)
		error = decompress_all(&decompression);
	else
		error = error_no_memory();
	ZSTD_freeDStream(decompression.stream);
	free(decompression.in);
	free(decompression.out);
	close(*fd);
	*fd = decompression.to;
	return error;
}

struct error *compressed_open(const char *path, int *fd, bool *decompressed)
{
	static const struct {
		const char *magic;
		size_t length;
		const char *command;
	} others[] = {
	    {"\xfd"
	     "7zXZ",
	     5, "xz"},
	    {"\x1f\x8b", 2, "gzip"},
	    {"\x04\x22\x4d\x18", 4, "lz4"},
	};
	uint8_t magic[8] = {0};
	struct error *error = NULL;
	struct stat status;

	*decompressed = false;
	*fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (*fd < 0)
		return error_create(errno == EACCES || errno == EPERM ? EXIT_NO_PERMISSION : EXIT_FAILED,
				    "%s cannot be opened: %s", path, strerror(errno));
	if (fstat(*fd, &status) != 0 || !S_ISREG(status.st_mode))
		error = error_create(EXIT_FAILED, "%s is not a regular file", path);
	else if (pread(*fd, magic, sizeof(magic), 0) < 0)
		error = error_create(EXIT_FAILED, "%s cannot be read: %s", path, strerror(errno));
	else if (memcmp(magic, "\x28\xb5\x2f\xfd", 4) == 0)
		*decompressed = true;
	if (*decompressed)
		error = decompress(path, fd);
	for (size_t i = 0; !error && i < sizeof(others) / sizeof(others[0]); i++)
		if (memcmp(magic, others[i].magic, others[i].length) == 0)
			error = error_create(EXIT_FAILED,
					     "%s is compressed with %s: decompress it first (%s -dc FILE > CORE)", path,
					     others[i].command, others[i].command);
	if (error) {
		close(*fd);
		*fd = -1;
	}
	return error;
}
