#include "target/core_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "layout/build_id.h"
#include "memory/memory.h"
#include "target/core_parts.h"

/* Longer notes of a program are not searched for a build-id. */
#define PROGRAM_NOTES_MAX 65536u

const struct core_segment *core_find_segment(const struct core *core, uint64_t address)
{
	const size_t behind = array_first(core->segments, core->nr_segments, segment, segment->start > address);

	return behind > 0 && address < core->segments[behind - 1].end ? &core->segments[behind - 1] : NULL;
}

struct core_file *core_find_file(const struct core *core, uint64_t address)
{
	const size_t behind = array_first(core->files, core->nr_files, file, file->start > address);

	return behind > 0 && address < core->files[behind - 1].end ? &core->files[behind - 1] : NULL;
}

const struct mapping *core_first_mapping(const struct target *target, const struct mapping *mapping)
{
	const struct core *core = target->core;
	const struct core_file *file = core_find_file(core, mapping->start);

	return file && core_first_of(core, file)->offset == 0 ? core_first_of(core, file) : NULL;
}

void core_extent(const struct target *target, const struct mapping *mapping, uint64_t *start, uint64_t *end)
{
	const struct core_file *file = core_find_file(target->core, mapping->start);

	*start = file ? file->start : mapping->start;
	*end = file ? file->end : mapping->end;
}

size_t core_read_at(int fd, void *buffer, size_t length, uint64_t offset)
{
	size_t done = 0;

	if (offset > (uint64_t)INT64_MAX - length)
		return 0;
	while (done < length) {
		ssize_t n = pread(fd, (uint8_t *)buffer + done, length - done, (off_t)(offset + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return done;
}

bool core_read_dumped(const struct target *target, uint64_t address, void *buffer, size_t length)
{
	const struct core *core = target->core;
	uint8_t *to = buffer;

	while (length > 0) {
		const struct core_segment *segment = core_find_segment(core, address);
		uint64_t at = segment ? address - segment->start : 0;
		size_t here;

		if (!segment || at >= segment->there)
			return false;
		here = segment->there - at < length ? (size_t)(segment->there - at) : length;
		if (core_read_at(core->fd, to, here, segment->offset + at) != here)
			return false;
		to += here;
		address += here;
		length -= here;
	}
	return true;
}

bool core_first_page(const struct target *target, const struct mapping *mapping, struct first_page *ret)
{
	const struct mapping *first = core_first_mapping(target, mapping);
	uint8_t bytes[MEMORY_PAGE];

	return first && core_read_dumped(target, first->start, bytes, sizeof(bytes)) &&
	       first_page_read(bytes, sizeof(bytes), ret);
}

/* The build-id in the notes of a program; malloc'ed digits; NULL if there is none. */
static char *build_id_in_notes(const uint8_t *notes, size_t length)
{
	static const char owner[] = "GNU";
	Elf64_Nhdr header;

	for (size_t at = 0; length - at >= sizeof(header);) {
		size_t name = at + sizeof(header), content, end;

		memcpy(&header, notes + at, sizeof(header));
		if (header.n_namesz > PROGRAM_NOTES_MAX || header.n_descsz > PROGRAM_NOTES_MAX)
			return NULL;
		content = name + (header.n_namesz + 3u) / 4 * 4;
		end = content + (header.n_descsz + 3u) / 4 * 4;
		if (end > length)
			return NULL;
		if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == sizeof(owner) &&
		    memcmp(notes + name, owner, sizeof(owner)) == 0)
			return build_id_digits(notes + content, header.n_descsz);
		at = end;
	}
	return NULL;
}

char *core_build_id(const struct target *target, const struct mapping *mapping)
{
	const struct mapping *first = core_first_mapping(target, mapping);
	struct first_page page;
	char *digits = NULL;

	if (!first || !core_first_page(target, mapping, &page))
		return NULL;
	for (size_t i = 0; i < page.count && !digits; i++) {
		const Elf64_Phdr *header = &page.headers[i];
		uint8_t *notes;

		if (header->p_type != PT_NOTE || header->p_filesz > PROGRAM_NOTES_MAX)
			continue;
		notes = malloc(header->p_filesz + 1);
		if (notes &&
		    core_read_dumped(target, first->start + (header->p_vaddr - page.base), notes, header->p_filesz))
			digits = build_id_in_notes(notes, header->p_filesz);
		free(notes);
	}
	return digits;
}

void core_written(const struct target *target, const struct mapping *mapping,
		  bool (*add)(void *context, uint64_t start, uint64_t end), void *context)
{
	const struct core *core = target->core;
	const struct core_file *file = core_find_file(core, mapping->start);
	uint64_t end = file ? file->end : 0;

	for (size_t i = 0; file && i < core->nr_segments; i++) {
		const struct core_segment *segment = &core->segments[i];

		if (segment->start < file->start || segment->start > end)
			continue;
		if (segment->start == end) {
			if (!segment->writable || core_find_file(core, end))
				break;
			end = segment->end;
		}
		if (segment->writable && !add(context, segment->start, segment->end))
			break;
	}
}

void core_each_dumped(const struct target *target, bool (*visit)(void *context, uint64_t start, uint64_t end),
		      void *context)
{
	const struct core *core = target->core;

	for (size_t i = 0; i < core->nr_segments; i++) {
		const struct core_segment *segment = &core->segments[i];

		if (segment->there > 0 && !visit(context, segment->start, segment->start + segment->there))
			break;
	}
}
