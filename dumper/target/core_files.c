#include "target/core_files.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gen/image.h"
#include "layout/build_id.h"
#include "memory/memory.h"
#include "target/core_memory.h"

char *core_build_id_of(int fd)
{
	struct image_parts parts;
	const void *bits = NULL;
	ssize_t length = image_parts_open(fd, &parts) ? dwelf_elf_gnu_build_id(parts.elf, &bits) : 0;
	char *digits = build_id_digits(bits, length);

	image_parts_close(&parts);
	return digits;
}

bool core_file_fits(const struct target *target, const struct core_file *file, int fd)
{
	const struct mapping *first = core_first_of(target->core, file);
	char *theirs = core_build_id(target, first), *ours = core_build_id_of(fd);
	uint8_t dumped[MEMORY_PAGE], page[MEMORY_PAGE];
	bool same;

	if (theirs)
		same = ours && strcmp(ours, theirs) == 0;
	else
		same = !ours && first->offset == 0 && core_read_dumped(target, file->start, dumped, sizeof(dumped)) &&
		       core_read_at(fd, page, sizeof(page), 0) == sizeof(page) &&
		       memcmp(dumped, page, sizeof(page)) == 0;
	free(theirs);
	free(ours);
	return same;
}

int core_open_regular(const char *path)
{
	struct stat status;
	int fd;

	if (stat(path, &status) != 0)
		return -1;
	if (!S_ISREG(status.st_mode)) {
		errno = 0;
		return -1;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0 && (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))) {
		close(fd);
		errno = 0;
		return -1;
	}
	return fd;
}

/* Looks once for the file of that path. */
static void look_for(const struct target *target, struct core_file *file)
{
	const struct core *core = target->core;
	const struct mapping *first = core_first_of(core, file);
	uint8_t page[MEMORY_PAGE];
	char *path;

	if (file->looked)
		return;
	file->looked = true;
	file->errnum = ENOENT;
	if (core->given_as == file) {
		file->fd = fcntl(core->given_fd, F_DUPFD_CLOEXEC, 0);
	} else if (first->path[0] == '/' && strncmp(first->path, "/dev/", 5) != 0) {
		path = strndup(first->path, mapping_name_length(first));
		file->fd = path ? core_open_regular(path) : -1;
		file->errnum = errno != 0 ? errno : ENOENT;
		free(path);
		if (file->fd >= 0 && !core_file_fits(target, file, file->fd)) {
			close(file->fd);
			file->fd = -1;
			file->errnum = ESTALE;
		}
	}
	if (file->fd >= 0 && !first_page_read(page, core_read_at(file->fd, page, sizeof(page), 0), &file->page)) {
		close(file->fd);
		file->fd = -1;
		file->errnum = ENOEXEC;
	}
}

int core_open_file(const struct target *target, const struct mapping *mapping)
{
	struct core_file *file = core_find_file(target->core, mapping->start);

	if (!file) {
		errno = ENOENT;
		return -1;
	}
	look_for(target, file);
	if (file->fd < 0) {
		errno = file->errnum;
		return -1;
	}
	return fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
}

bool core_read_from_file(const struct target *target, uint64_t page, uint8_t *buffer)
{
	const struct core *core = target->core;
	struct core_file *file = core_find_file(core, page);
	const struct mapping *mapping = NULL;
	size_t length;

	if (!file)
		return false;
	for (size_t i = file->first; i <= file->last && !mapping; i++)
		if (page >= core->notes.mappings[i].start && page < core->notes.mappings[i].end)
			mapping = &core->notes.mappings[i];
	if (!mapping || core_first_of(core, file)->offset != 0)
		return false;
	look_for(target, file);
	if (file->fd < 0 || first_page_is_written(&file->page, page - file->start + file->page.base))
		return false;
	/* In the last page, the bytes behind the end of the file are zero. */
	length = core_read_at(file->fd, buffer, MEMORY_PAGE, mapping->offset + (page - mapping->start));
	memset(buffer + length, 0, MEMORY_PAGE - length);
	return length > 0;
}
