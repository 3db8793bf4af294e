#include "native/mapped_files.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "gen/image.h"
#include "target/live.h"

static const char vdso[] = "[vdso]";

/* The kernel maps whole pages of this size. */
#define PAGE UINT64_C(4096)

/* The most segments of a file that are told apart. A program of lld has five. */
#define MAX_SEGMENTS 64

/* Where the program headers of a file say that its parts are mapped (elf(5), PT_LOAD). */
struct segments {
	Elf64_Phdr of[MAX_SEGMENTS];
	size_t count; /* 0: not known */
};

static uint64_t page_of(uint64_t address)
{
	return address / PAGE * PAGE;
}

static void read_segments(int fd, struct segments *ret)
{
	Elf64_Phdr headers[MAX_SEGMENTS];
	Elf64_Ehdr header;
	size_t length;

	ret->count = 0;
	if (fd < 0 || pread(fd, &header, sizeof(header), 0) != sizeof(header) || header.e_phnum > MAX_SEGMENTS ||
	    header.e_phentsize != sizeof(headers[0]))
		return;
	length = header.e_phnum * sizeof(headers[0]);
	if (pread(fd, headers, length, (off_t)header.e_phoff) != (ssize_t)length)
		return;
	for (size_t i = 0; i < header.e_phnum; i++)
		if (headers[i].p_type == PT_LOAD)
			ret->of[ret->count++] = headers[i];
}

/*
 * Whether a mapping is a part of the file whose beginning is mapped at `start`. Its offset does not tell: lld does not begin
 * a segment at a new page of the file, so that two mappings have the same offset, both with the end of one segment and the
 * beginning of the next; also offset 0.
 */
static bool is_part(const struct segments *segments, uint64_t start, const struct mapping *mapping)
{
	for (size_t i = 0; i < segments->count; i++) {
		const Elf64_Phdr *first = &segments->of[0], *segment = &segments->of[i];
		const uint64_t base = start - (page_of(first->p_vaddr) - page_of(first->p_offset));
		const uint64_t begin = base + page_of(segment->p_vaddr),
			       end = base + segment->p_vaddr + segment->p_memsz;

		if (mapping->start >= begin && mapping->start < end &&
		    mapping->start - begin == mapping->offset - page_of(segment->p_offset))
			return true;
	}
	return false;
}

/* Whether it is a program or library. Other files may be mapped, too, and a read of a FIFO would wait. */
static bool is_program(const char *path, int fd)
{
	struct stat status;
	Elf64_Ehdr header;
	struct error *problem;

	if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
		return false;
	problem = image_check(path, fd);
	error_destroy(problem);
	return !problem && pread(fd, &header, sizeof(header), 0) == sizeof(header) && header.e_type != ET_REL;
}

/* Opens the file of a mapping, which begins with the beginning of the file. MAPPED_NONE if it is no program. */
static size_t open_file(struct mapped_files *files, const struct mapping *mapping)
{
	struct mapped_file *file = &files->of[files->count];

	*file = (struct mapped_file){.start = mapping->start, .fd = -1, .inode = mapping->inode};
	file->path = strndup(mapping->path, mapping_name_length(mapping));
	if (file->path && strcmp(mapping->path, vdso) == 0)
		return files->count++;
	if (file->path && mapping->path[0] == '/')
		file->fd = target_open_file(files->target, mapping);
	if (file->fd >= 0 && is_program(file->path, file->fd))
		return files->count++;
	if (file->fd >= 0)
		close(file->fd);
	free(file->path);
	return MAPPED_NONE;
}

static bool open_all(struct mapped_files *files)
{
	const struct target *target = files->target;
	const struct mapping *last = NULL;
	struct segments segments = {.count = 0};
	size_t file = MAPPED_NONE;

	files->file_of = calloc(target->nr_mappings + 1, sizeof(*files->file_of));
	files->of = calloc(MAPPED_FILES_MAX, sizeof(*files->of));
	if (!files->file_of || !files->of)
		return false;
	for (size_t i = 0; i < target->nr_mappings; i++) {
		const struct mapping *mapping = &target->mappings[i];

		/* The mappings of a program follow each other; the first one has its headers. */
		const bool same = last && strcmp(mapping->path, last->path) == 0;
		const bool rises = same && mapping->offset > last->offset;

		last = mapping;
		files->file_of[i] = MAPPED_NONE;
		if (same && file != MAPPED_NONE &&
		    (segments.count > 0 ? is_part(&segments, files->of[file].start, mapping) : rises)) {
			files->file_of[i] = file;
			continue;
		}
		if (same && mapping->offset != 0)
			continue;
		file =
		    mapping->offset == 0 && files->count < MAPPED_FILES_MAX ? open_file(files, mapping) : MAPPED_NONE;
		read_segments(file == MAPPED_NONE ? -1 : files->of[file].fd, &segments);
		files->file_of[i] = file;
	}
	return true;
}

struct error *mapped_files_of_target(struct target *target, struct mapped_files *ret)
{
	*ret = (struct mapped_files){.target = target, .borrowed = true};
	if (open_all(ret))
		return NULL;
	mapped_files_close(ret);
	return error_no_memory();
}

struct error *mapped_files_open(pid_t pid, struct mapped_files *ret)
{
	struct target *target = NULL;
	struct error *error;

	*ret = (struct mapped_files){0};
	error = live_open(pid, &target);
	if (!error)
		error = mapped_files_of_target(target, ret);
	if (error)
		target_close(target);
	ret->borrowed = false;
	return error;
}

void mapped_files_release(struct mapped_files *files)
{
	for (size_t i = 0; i < files->count; i++) {
		if (files->of[i].fd >= 0)
			close(files->of[i].fd);
		files->of[i].fd = -1;
	}
}

void mapped_files_close(struct mapped_files *files)
{
	mapped_files_release(files);
	for (size_t i = 0; i < files->count; i++)
		free(files->of[i].path);
	free(files->of);
	free(files->file_of);
	if (!files->borrowed)
		target_close(files->target);
	*files = (struct mapped_files){0};
}

/* The index of the mapping of an address; SIZE_MAX if there is none. */
static size_t mapping_of(const struct mapped_files *files, uint64_t address)
{
	const struct target *target = files->target;
	const size_t at = target ? array_first(target->mappings, target->nr_mappings, one, one->end > address) : 0;

	if (!target || at == target->nr_mappings)
		return SIZE_MAX;
	return address >= target->mappings[at].start ? at : SIZE_MAX;
}

size_t mapped_files_find(const struct mapped_files *files, uint64_t address)
{
	const size_t at = mapping_of(files, address);

	return at == SIZE_MAX ? MAPPED_NONE : files->file_of[at];
}

bool mapped_files_is_generated(const struct mapped_files *files, uint64_t address)
{
	const size_t at = mapping_of(files, address);

	if (!files->target)
		return false;
	if (files->target->operations->executes)
		return at == SIZE_MAX && files->target->operations->executes(files->target, address);
	/* A path may be in brackets, as "[anon:Ruby:YJIT]" is. */
	return at != SIZE_MAX && files->target->mappings[at].executable && files->target->mappings[at].path[0] != '/' &&
	       files->file_of[at] == MAPPED_NONE;
}
