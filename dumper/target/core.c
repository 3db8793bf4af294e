#include "target/core.h"

#include <errno.h>
#include <gelf.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory/memory.h"
#include "target/compressed.h"
#include "target/core_files.h"
#include "target/core_memory.h"

/* The most segments that are read: each mapping is one, and a kernel allows 65,530. */
#define SEGMENTS_MAX 262144u

/* How much of all PT_NOTE segments together is read: each thread has some 4 KiB of registers there. */
#define NOTES_MAX (UINT64_C(512) << 20)

static void read_pages(const struct target *target, const uint64_t *pages, size_t count, uint8_t *buffer, bool *ok)
{
	for (size_t i = 0; i < count; i++) {
		const struct core_segment *segment = core_find_segment(target->core, pages[i]);
		uint8_t *to = buffer + i * MEMORY_PAGE;

		/* For memory that is omitted, gcore writes no segment, and the kernel an empty one. */
		if (segment && segment->dumped > pages[i] - segment->start)
			ok[i] = core_read_dumped(target, pages[i], to, MEMORY_PAGE);
		else
			ok[i] = core_read_from_file(target, pages[i], to);
	}
}

static struct error *no_core(const char *name, const char *why)
{
	return error_create(EXIT_FAILED, "%s cannot be read as a core file: %s", name, why);
}

static int by_start(const void *a, const void *b)
{
	const struct core_segment *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void add_segment(struct core *core, const GElf_Phdr *header)
{
	struct core_segment segment = {
	    .start = header->p_vaddr,
	    .dumped = header->p_filesz < header->p_memsz ? header->p_filesz : header->p_memsz,
	    .offset = header->p_offset,
	    .writable = header->p_flags & PF_W,
	    .executable = header->p_flags & PF_X,
	};
	uint64_t left = header->p_offset < core->size ? core->size - header->p_offset : 0;

	if (header->p_memsz == 0 || __builtin_add_overflow(header->p_vaddr, header->p_memsz, &segment.end))
		return;
	segment.there = segment.dumped < left ? segment.dumped : left;
	core->missing += segment.dumped - segment.there;
	core->segments[core->nr_segments++] = segment;
}

/* Reads as much as there is of the notes. */
static struct error *add_notes(struct core *core, const GElf_Phdr *header)
{
	uint64_t left = header->p_offset < core->size ? core->size - header->p_offset : 0;
	uint64_t length = header->p_filesz < left ? header->p_filesz : left;
	Elf_Data *data;

	core->missing += header->p_filesz - length;
	length = length < NOTES_MAX - core->notes_read ? length : NOTES_MAX - core->notes_read;
	core->notes_read += length;
	data =
	    length > 0 ? elf_getdata_rawchunk(core->elf, (int64_t)header->p_offset, (size_t)length, ELF_T_NHDR) : NULL;
	return !data || core_notes_read(&core->notes, data) ? NULL : error_no_memory();
}

static struct error *read_headers(struct core *core, const char *name)
{
	static const char no_headers[] = "program headers are missing: the file was cut short";
	struct error *error = NULL;
	GElf_Ehdr header;
	size_t count;

	elf_version(EV_CURRENT);
	core->elf = elf_begin(core->fd, ELF_C_READ, NULL);
	if (!core->elf || elf_kind(core->elf) != ELF_K_ELF || !gelf_getehdr(core->elf, &header))
		return no_core(name, "it is not an ELF file");
	if (header.e_type != ET_CORE)
		return no_core(name, "it is an ELF file, but not a core");
	if (header.e_machine != EM_X86_64 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_ident[EI_DATA] != ELFDATA2LSB)
		return no_core(name, "it is not the core of an x86_64 process");
	if (elf_getphdrnum(core->elf, &count) != 0 || count == 0)
		return no_core(name, no_headers);
	if (count > SEGMENTS_MAX)
		return no_core(name, "its header claims more segments than a process can have");
	core->segments = calloc(count, sizeof(*core->segments));
	if (!core->segments)
		return error_no_memory();
	for (size_t i = 0; i < count && !error; i++) {
		GElf_Phdr segment;

		if (!gelf_getphdr(core->elf, (int)i, &segment))
			return no_core(name, no_headers);
		if (segment.p_type == PT_LOAD)
			add_segment(core, &segment);
		else if (segment.p_type == PT_NOTE)
			error = add_notes(core, &segment);
	}
	if (error)
		return error;
	qsort(core->segments, core->nr_segments, sizeof(*core->segments), by_start);
	core_notes_settle(&core->notes);
	if (core->notes.nr_threads == 0)
		return no_core(name, core->missing > 0 ? "the threads' registers are missing: the file was cut short"
						       : "it contains no thread");
	return NULL;
}

static bool list_files(struct core *core)
{
	const struct core_notes *notes = &core->notes;

	core->files = calloc(notes->nr_mappings + 1, sizeof(*core->files));
	if (!core->files)
		return false;
	for (size_t i = 0; i < notes->nr_mappings; i++) {
		const struct mapping *mapping = &notes->mappings[i];
		struct core_file *last = core->nr_files > 0 ? &core->files[core->nr_files - 1] : NULL;

		/* An offset of 0 begins a new file: the same file may be mapped several times. */
		if (!last || mapping->offset == 0 || strcmp(notes->mappings[last->first].path, mapping->path) != 0) {
			last = &core->files[core->nr_files++];
			*last = (struct core_file){.start = mapping->start, .first = i, .fd = -1};
		}
		last->last = i;
		last->end = mapping->end;
	}
	return true;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Guesses which mapped file the given one stands for, if it fits none: the one of the same name, else the program. */
static const struct core_file *meant(const struct core *core, const char *name)
{
	for (size_t i = 0; i < core->nr_files; i++)
		if (strcmp(base_name(core_first_of(core, &core->files[i])->path), base_name(name)) == 0)
			return &core->files[i];
	return core_find_file(core, core->notes.program_page);
}

/* Finds the mapped file that the given executable is. */
static struct error *place_given(const struct target *target, const struct core_options *options)
{
	struct core *core = target->core;
	const struct core_file *file;
	struct error *error;
	char *theirs, *ours;

	core->given_fd = core_open_regular(options->executable);
	if (core->given_fd < 0)
		return error_create(EXIT_FAILED, "%s cannot be opened: %s", options->executable,
				    errno ? strerror(errno) : "the file is not a regular file");
	for (size_t i = 0; i < core->nr_files; i++) {
		file = &core->files[i];
		if (core_first_of(core, file)->offset == 0 && core_file_fits(target, file, core->given_fd)) {
			core->given_as = file;
			return NULL;
		}
	}
	file = meant(core, options->executable);
	if (!file)
		return error_create(EXIT_FAILED,
				    "%s does not list the files that were mapped, so the executable %s cannot be used",
				    options->file, options->executable);
	core->given_as = file;
	if (options->force)
		return NULL;
	theirs = core_build_id(target, core_first_of(core, file));
	ours = core_build_id_of(core->given_fd);
	error = error_create(EXIT_FAILED,
			     "%s is not the file that ran: its build-id is %s, but the build-id of %s in %s is %s; "
			     "give the file that ran, or use --force if you know that the code is the same",
			     options->executable, ours ? ours : "none", core_first_of(core, file)->path, options->file,
			     theirs ? theirs : "not known");
	free(theirs);
	free(ours);
	return error;
}

static struct error *open_core(struct target *target, const struct core_options *options)
{
	struct core *core = target->core;
	const struct core_file *program;
	struct error *error;
	struct stat status;
	bool decompressed;

	error = compressed_open(options->file, &core->fd, &decompressed);
	if (error)
		return error;
	if (fstat(core->fd, &status) != 0)
		return no_core(options->file, strerror(errno));
	core->size = (uint64_t)status.st_size;
	error = read_headers(core, options->file);
	if (error && decompressed)
		return error_append(error, "; the file is compressed, and may be damaged: check it with zstd -t");
	if (error)
		return error;
	if (!list_files(core))
		return error_no_memory();
	program = core_find_file(core, core->notes.program_page);
	target->executable = strdup(program ? core_first_of(core, program)->path : "");
	if (!target->executable)
		return error_no_memory();
	target->pid = core->notes.pid != 0 ? core->notes.pid : core->notes.threads[0].tid;
	target->threads = core->notes.threads;
	target->nr_threads = core->notes.nr_threads;
	target->mappings = core->notes.mappings;
	target->nr_mappings = core->notes.nr_mappings;
	return options->executable ? core_explain(target, place_given(target, options)) : NULL;
}

static void close_core(struct target *target)
{
	struct core *core = target->core;

	for (size_t i = 0; i < core->nr_files; i++)
		if (core->files[i].fd >= 0)
			close(core->files[i].fd);
	free(core->files);
	free(core->segments);
	core_notes_clear(&core->notes);
	elf_end(core->elf);
	if (core->given_fd >= 0)
		close(core->given_fd);
	if (core->fd >= 0)
		close(core->fd);
	free(core);
}

struct core_death core_death(const struct target *target)
{
	const struct core_notes *notes = &target->core->notes;

	return (struct core_death){
	    .signal = notes->signal,
	    .tid = notes->threads[0].tid,
	    .has_fault = notes->has_fault,
	    .fault = notes->fault,
	    .program = notes->program,
	    .arguments = notes->arguments,
	};
}

static bool find_mapping(const struct target *target, uint64_t address, uint64_t *start, uint64_t *end)
{
	const struct core_segment *segment = core_find_segment(target->core, address);

	if (!segment)
		return false;
	*start = segment->start;
	*end = segment->end;
	return true;
}

static bool executes(const struct target *target, uint64_t address)
{
	const struct core_segment *segment = core_find_segment(target->core, address);

	return segment && segment->executable;
}

static bool lacks_page(const struct target *target, uint64_t page)
{
	const struct core_segment *segment = core_find_segment(target->core, page);
	uint64_t at = segment ? page - segment->start : 0;

	return segment && segment->there < segment->dumped && at < segment->dumped &&
	       (at >= segment->there || segment->there - at < MEMORY_PAGE);
}

static char *describe_lack(const struct target *target)
{
	char *text;

	if (target->core->missing == 0)
		return NULL;
	return asprintf(&text, "the file was cut short: %llu bytes are missing",
			(unsigned long long)target->core->missing) < 0
		   ? NULL
		   : text;
}

struct error *core_explain(const struct target *target, struct error *error)
{
	char *lacks = error ? describe_lack(target) : NULL;

	if (lacks)
		error = error_append(error, "; %s", lacks);
	free(lacks);
	return error;
}

/* True for any address: a core does not list all memory of the process. */
static bool may_have(const struct target *target, uint64_t address)
{
	(void)target;
	(void)address;
	return true;
}

/* The segments of a hostile core can overlap. */
static uint64_t mapped_bytes(const struct target *target)
{
	const struct core *core = target->core;
	uint64_t bytes = 0;

	for (size_t i = 0; i < core->nr_segments; i++) {
		const uint64_t length = core->segments[i].end - core->segments[i].start;

		bytes = length < INT64_MAX - bytes ? bytes + length : INT64_MAX;
	}
	return bytes;
}

const struct target_operations core_operations = {
    .name = "the core of process",
    .is = "was",
    .again = "",
    .runs = false,
    .close = close_core,
    .read_pages = read_pages,
    .open_file = core_open_file,
    .may_have = may_have,
    .mapped_bytes = mapped_bytes,
    .lacks_page = lacks_page,
    .lacks = describe_lack,
    .find_mapping = find_mapping,
    .executes = executes,
    .build_id = core_build_id,
};

struct error *core_open(const struct core_options *options, struct target **ret)
{
	struct target *target = calloc(1, sizeof(*target));
	struct core *core = calloc(1, sizeof(*core));
	struct error *error;

	if (!target || !core) {
		free(target);
		free(core);
		return error_no_memory();
	}
	core->fd = core->given_fd = -1;
	target->operations = &core_operations;
	target->memory_fd = -1;
	target->core = core;
	error = open_core(target, options);
	if (error)
		target_close(target);
	else
		*ret = target;
	return error;
}
