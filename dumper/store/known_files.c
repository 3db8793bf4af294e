#include "store/known_files.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "layout/digest.h"
#include "store/made.h"

/* linux/stat.h; the headers of glibc before 2.40 do not have it. */
#ifndef STATX_MNT_ID_UNIQUE
#define STATX_MNT_ID_UNIQUE 0x4000U
#endif

#define NAME		"files"
#define FILES_MAX	16
#define IDENTITY_MAX	256
#define LINE_MAX_LENGTH (IDENTITY_MAX + 1 + DIGEST_LENGTH + 1)
#define TEXT_MAX	(FILES_MAX * LINE_MAX_LENGTH)
#define OLD_SECONDS	2

/* What tells a file, in one state of its content, from all others. */
struct identity {
	char text[IDENTITY_MAX]; /* without a newline */
	bool is_old; /* whether the file was last changed so long ago that its next change has another time */
};

static bool read_boot_id(char *ret, size_t size)
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	bool found = file && fgets(ret, (int)size, file);

	if (file)
		fclose(file);
	if (found)
		ret[strcspn(ret, "\n")] = '\0';
	return found && ret[0] != '\0';
}

/* Fails if the kernel does not number mounts. */
static bool identify(int fd, struct identity *ret)
{
	struct timespec now;
	struct statx said;
	char boot[64];
	int length;

	if (!read_boot_id(boot, sizeof(boot)) || clock_gettime(CLOCK_REALTIME, &now) != 0 ||
	    statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_MNT_ID_UNIQUE, &said) != 0 ||
	    (~said.stx_mask & (STATX_INO | STATX_SIZE | STATX_MTIME | STATX_CTIME | STATX_MNT_ID_UNIQUE)) != 0)
		return false;
	length = snprintf(ret->text, sizeof(ret->text), "%s %llu %u:%u %llu %llu %lld.%09u %lld.%09u", boot,
			  (unsigned long long)said.stx_mnt_id, said.stx_dev_major, said.stx_dev_minor,
			  (unsigned long long)said.stx_ino, (unsigned long long)said.stx_size,
			  (long long)said.stx_mtime.tv_sec, said.stx_mtime.tv_nsec, (long long)said.stx_ctime.tv_sec,
			  said.stx_ctime.tv_nsec);
	ret->is_old =
	    said.stx_ctime.tv_sec + OLD_SECONDS < now.tv_sec && said.stx_mtime.tv_sec + OLD_SECONDS < now.tv_sec;
	return length > 0 && (size_t)length < sizeof(ret->text);
}

/* Reads what is kept for a build; an empty text if there is nothing, or if it is longer than what is written. */
static void read_kept(const char *build_id, char ret[TEXT_MAX + 1])
{
	int fd = made_open_file(build_id, NAME);
	ssize_t length = fd >= 0 ? read(fd, ret, TEXT_MAX + 1) : 0;

	if (fd >= 0)
		close(fd);
	ret[length > 0 && length <= TEXT_MAX ? length : 0] = '\0';
}

/* Returns the digest in a line "IDENTITY DIGEST\n" of this identity, or NULL. */
static const char *digest_in(const char *line, const struct identity *identity)
{
	size_t length = strlen(identity->text);

	if (strncmp(line, identity->text, length) != 0 || line[length] != ' ')
		return NULL;
	line += length + 1;
	return strspn(line, "0123456789abcdef") == DIGEST_LENGTH && line[DIGEST_LENGTH] == '\n' ? line : NULL;
}

static char *find(const char *kept, const struct identity *identity)
{
	for (const char *line = kept, *end; (end = strchr(line, '\n')); line = end + 1) {
		const char *digest = digest_in(line, identity);

		if (digest)
			return strndup(digest, DIGEST_LENGTH);
	}
	return NULL;
}

struct files {
	const struct identity *newest;
	const char *digest, *kept;
};

/* The newest file first, then those that were kept before, without the oldest if there are too many. */
static bool write_files(const void *content, FILE *file)
{
	const struct files *files = content;
	unsigned int count = 1;

	fprintf(file, "%s %s\n", files->newest->text, files->digest);
	for (const char *line = files->kept, *end; count < FILES_MAX && (end = strchr(line, '\n'));
	     line = end + 1, count++) {
		if (end - line >= LINE_MAX_LENGTH)
			break;
		fwrite(line, 1, (size_t)(end - line) + 1, file);
	}
	return fflush(file) == 0 && !ferror(file);
}

char *known_files_digest(int fd, const char *build_id)
{
	char kept[TEXT_MAX + 1] = "", digest[DIGEST_LENGTH + 1], *known = NULL;
	struct identity before, after;
	bool is_known = build_id && identify(fd, &before);

	if (is_known) {
		read_kept(build_id, kept);
		known = find(kept, &before);
	}
	if (known)
		return known;
	if (!digest_of_file(fd, digest))
		return NULL;
	if (is_known && before.is_old && identify(fd, &after) && strcmp(before.text, after.text) == 0)
		made_keep_file(build_id, NAME, write_files, &(const struct files){&before, digest, kept});
	return strdup(digest);
}
