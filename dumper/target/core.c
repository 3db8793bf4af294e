#include "target/core.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layout/build_id.h"
#include "memory/memory.h"
#include "target/core_notes.h"
#include "target/packed.h"

/* The most segments that are taken: a kernel allows 65,530 mappings, each of which is one. */
#define SEGMENTS_MAX 262144u

/* How much of a PT_NOTE segment is read: each thread has some 4 KiB of registers there. */
#define NOTES_MAX (UINT64_C(512) << 20)

/* How long the notes of a program can be in which its build-id is looked for. */
#define PROGRAM_NOTES_MAX 65536u

/* Memory at [start, end). The core says that it has the first `dumped` bytes, and has the first `there`, at `offset`.
 */
struct segment {
	uint64_t start, end;
	uint64_t dumped, there, offset;
	bool writable;
};

/* A file that was mapped: mappings of one path that follow each other. */
struct file {
	uint64_t start, end;
	size_t first, last;	/* indexes of its mappings */
	bool looked;		/* for the file itself */
	int fd;			/* -1 if it is not here, or another one: */
	int errnum;		/*   why */
	struct first_page page; /* of the file; only if it is here */
};

struct core {
	int fd;
	uint64_t size;
	Elf *elf;
	struct core_notes notes;
	uint64_t missing; /* bytes that it says it has, and has not: it was cut short */

	struct segment *segments; /* by address */
	size_t nr_segments;
	struct file *files; /* by address */
	size_t nr_files;

	/* The executable that was given: */
	int given_fd; /* -1 if none was */
	const struct file *given_as;
};

/* ---- what is where */

static const struct segment *find_segment(const struct core *core, uint64_t address)
{
	size_t low = 0, high = core->nr_segments;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (core->segments[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && address < core->segments[low - 1].end ? &core->segments[low - 1] : NULL;
}

static struct file *find_file(const struct core *core, uint64_t address)
{
	size_t low = 0, high = core->nr_files;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (core->files[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && address < core->files[low - 1].end ? &core->files[low - 1] : NULL;
}

static const struct mapping *first_of(const struct core *core, const struct file *file)
{
	return &core->notes.mappings[file->first];
}

const struct mapping *core_first_mapping(const struct target *target, const struct mapping *mapping)
{
	const struct core *core = target->core;
	const struct file *file = find_file(core, mapping->start);

	return file && first_of(core, file)->offset == 0 ? first_of(core, file) : NULL;
}

void core_extent(const struct target *target, const struct mapping *mapping, uint64_t *start, uint64_t *end)
{
	const struct file *file = find_file(target->core, mapping->start);

	*start = file ? file->start : mapping->start;
	*end = file ? file->end : mapping->end;
}

/* ---- reading */

/* Reads up to `length` bytes; what the file does not have is left out. Returns how many there were. */
static size_t read_at(int fd, void *buffer, size_t length, uint64_t offset)
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
		const struct segment *segment = find_segment(core, address);
		uint64_t at = segment ? address - segment->start : 0;
		size_t here;

		if (!segment || at >= segment->there)
			return false;
		here = segment->there - at < length ? (size_t)(segment->there - at) : length;
		if (read_at(core->fd, to, here, segment->offset + at) != here)
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

/* The build-id among notes of a program; malloc'ed digits. */
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

/* ---- the files that were mapped */

static char *build_id_of(int fd)
{
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	const void *bits = NULL;
	ssize_t length = elf ? dwelf_elf_gnu_build_id(elf, &bits) : 0;
	char *digits = build_id_digits(bits, length);

	elf_end(elf);
	return digits;
}

/* Whether an open file is what was mapped, as far as can be told: by build-id, or by the page that has the headers. */
static bool fits(const struct target *target, const struct file *file, int fd)
{
	const struct mapping *first = first_of(target->core, file);
	char *theirs = core_build_id(target, first), *ours = build_id_of(fd);
	uint8_t dumped[MEMORY_PAGE], page[MEMORY_PAGE];
	bool same;

	if (theirs)
		same = ours && strcmp(ours, theirs) == 0;
	else
		same = !ours && first->offset == 0 && core_read_dumped(target, file->start, dumped, sizeof(dumped)) &&
		       read_at(fd, page, sizeof(page), 0) == sizeof(page) && memcmp(dumped, page, sizeof(page)) == 0;
	free(theirs);
	free(ours);
	return same;
}

/* Opens a regular file; the names in a core can be those of anything. Returns -1 with errno, 0 if it is something else.
 */
static int open_regular(const char *path)
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

/* Looks for the file that was mapped by its name, once. */
static void look_for(const struct target *target, struct file *file)
{
	static const char deleted[] = " (deleted)";
	const struct core *core = target->core;
	const char *name = first_of(core, file)->path;
	uint8_t page[MEMORY_PAGE];
	size_t length = strlen(name), suffix = strlen(deleted);
	char *path;

	if (file->looked)
		return;
	file->looked = true;
	file->errnum = ENOENT;
	if (core->given_as == file) {
		file->fd = fcntl(core->given_fd, F_DUPFD_CLOEXEC, 0);
	} else if (name[0] == '/' && strncmp(name, "/dev/", 5) != 0) {
		if (length > suffix && strcmp(name + length - suffix, deleted) == 0)
			length -= suffix;
		path = strndup(name, length);
		file->fd = path ? open_regular(path) : -1;
		file->errnum = errno != 0 ? errno : ENOENT;
		free(path);
		if (file->fd >= 0 && !fits(target, file, file->fd)) {
			close(file->fd);
			file->fd = -1;
			file->errnum = ESTALE;
		}
	}
	if (file->fd >= 0 && !first_page_read(page, read_at(file->fd, page, sizeof(page), 0), &file->page)) {
		close(file->fd);
		file->fd = -1;
		file->errnum = ENOEXEC;
	}
}

int core_open_file(const struct target *target, const struct mapping *mapping)
{
	struct file *file = find_file(target->core, mapping->start);

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

/* A page that the core leaves out, from the file that was mapped there and not written to. */
static bool read_from_file(const struct target *target, uint64_t page, uint8_t *buffer)
{
	const struct core *core = target->core;
	struct file *file = find_file(core, page);
	const struct mapping *mapping = NULL;
	size_t length;

	if (!file)
		return false;
	for (size_t i = file->first; i <= file->last && !mapping; i++)
		if (page >= core->notes.mappings[i].start && page < core->notes.mappings[i].end)
			mapping = &core->notes.mappings[i];
	if (!mapping || first_of(core, file)->offset != 0)
		return false;
	look_for(target, file);
	if (file->fd < 0 || first_page_is_written(&file->page, page - file->start + file->page.base))
		return false;
	/* What is mapped beyond the end of a file's last page is zero. */
	length = read_at(file->fd, buffer, MEMORY_PAGE, mapping->offset + (page - mapping->start));
	memset(buffer + length, 0, MEMORY_PAGE - length);
	return length > 0;
}

void core_read_pages(const struct target *target, const uint64_t *pages, size_t count, uint8_t *buffer, bool *ok)
{
	for (size_t i = 0; i < count; i++) {
		const struct segment *segment = find_segment(target->core, pages[i]);
		uint8_t *to = buffer + i * MEMORY_PAGE;

		/* gcore has no segment at all for what it leaves out; a kernel one with nothing in it. */
		if (segment && segment->dumped > pages[i] - segment->start)
			ok[i] = core_read_dumped(target, pages[i], to, MEMORY_PAGE);
		else
			ok[i] = read_from_file(target, pages[i], to);
	}
}

void core_written(const struct target *target, const struct mapping *mapping,
		  bool (*add)(void *context, uint64_t start, uint64_t end), void *context)
{
	const struct core *core = target->core;
	const struct file *file = find_file(core, mapping->start);
	uint64_t end = file ? file->end : 0;

	for (size_t i = 0; file && i < core->nr_segments; i++) {
		const struct segment *segment = &core->segments[i];

		if (segment->start < file->start || segment->start > end)
			continue;
		if (segment->start == end) {
			if (!segment->writable || find_file(core, end))
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
		const struct segment *segment = &core->segments[i];

		if (segment->there > 0 && !visit(context, segment->start, segment->start + segment->there))
			break;
	}
}

/* ---- opening */

static struct error *no_core(const char *name, const char *why)
{
	return error_create(EXIT_FAILED, "%s is no core file that can be read: %s", name, why);
}

static int by_start(const void *a, const void *b)
{
	const struct segment *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void add_segment(struct core *core, const GElf_Phdr *header)
{
	struct segment segment = {
	    .start = header->p_vaddr,
	    .dumped = header->p_filesz < header->p_memsz ? header->p_filesz : header->p_memsz,
	    .offset = header->p_offset,
	    .writable = header->p_flags & PF_W,
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
	length = length < NOTES_MAX ? length : NOTES_MAX;
	data =
	    length > 0 ? elf_getdata_rawchunk(core->elf, (int64_t)header->p_offset, (size_t)length, ELF_T_NHDR) : NULL;
	return !data || core_notes_read(&core->notes, data) ? NULL : error_no_memory();
}

static struct error *read_headers(struct core *core, const char *name)
{
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
		return no_core(name, "it is of another machine than x86_64");
	if (elf_getphdrnum(core->elf, &count) != 0 || count == 0)
		return no_core(name, "its program headers are not there");
	if (count > SEGMENTS_MAX)
		return no_core(name, "it says that it has more segments than a process can have");
	core->segments = calloc(count, sizeof(*core->segments));
	if (!core->segments)
		return error_no_memory();
	for (size_t i = 0; i < count && !error; i++) {
		GElf_Phdr segment;

		if (!gelf_getphdr(core->elf, (int)i, &segment))
			return no_core(name, "its program headers are not there");
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
		return no_core(name, core->missing > 0 ? "it was cut short before the registers of its threads"
						       : "there is no thread in it");
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
		struct file *last = core->nr_files > 0 ? &core->files[core->nr_files - 1] : NULL;

		/* Another beginning is another time that it was mapped. */
		if (!last || mapping->offset == 0 || strcmp(notes->mappings[last->first].path, mapping->path) != 0) {
			last = &core->files[core->nr_files++];
			*last = (struct file){.start = mapping->start, .first = i, .fd = -1};
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

/* What was mapped that may be meant by a file which is none of them: one of its name, else the program. */
static const struct file *meant(const struct core *core, const char *name)
{
	for (size_t i = 0; i < core->nr_files; i++)
		if (strcmp(base_name(first_of(core, &core->files[i])->path), base_name(name)) == 0)
			return &core->files[i];
	return find_file(core, core->notes.program_page);
}

/* Finds out what the executable that was given is of all that was mapped. */
static struct error *place_given(const struct target *target, const struct core_options *options)
{
	struct core *core = target->core;
	const struct file *file;
	struct error *error;
	char *theirs, *ours;

	core->given_fd = open_regular(options->executable);
	if (core->given_fd < 0)
		return error_create(EXIT_FAILED, "%s cannot be opened: %s", options->executable,
				    errno ? strerror(errno) : "it is not a regular file");
	for (size_t i = 0; i < core->nr_files; i++) {
		file = &core->files[i];
		if (first_of(core, file)->offset == 0 && fits(target, file, core->given_fd)) {
			core->given_as = file;
			return NULL;
		}
	}
	file = meant(core, options->executable);
	if (!file)
		return error_create(EXIT_FAILED, "%s does not say which files were mapped: nothing can be read from %s",
				    options->file, options->executable);
	core->given_as = file;
	if (options->force)
		return NULL;
	theirs = core_build_id(target, first_of(core, file));
	ours = build_id_of(core->given_fd);
	error =
	    error_create(EXIT_FAILED,
			 "%s is not what ran: its build-id is %s, that of %s in %s is %s; give the file that ran, or "
			 "--force if you know that it is the same code",
			 options->executable, ours ? ours : "none", first_of(core, file)->path, options->file,
			 theirs ? theirs : "not known");
	free(theirs);
	free(ours);
	return error;
}

static struct error *open_core(struct target *target, const struct core_options *options)
{
	struct core *core = target->core;
	const struct file *program;
	struct error *error;
	struct stat status;

	error = packed_open(options->file, &core->fd);
	if (error)
		return error;
	if (fstat(core->fd, &status) != 0)
		return no_core(options->file, strerror(errno));
	core->size = (uint64_t)status.st_size;
	error = read_headers(core, options->file);
	if (error)
		return error;
	if (!list_files(core))
		return error_no_memory();
	program = find_file(core, core->notes.program_page);
	target->executable = strdup(program ? first_of(core, program)->path : "");
	if (!target->executable)
		return error_no_memory();
	target->pid = core->notes.pid != 0 ? core->notes.pid : core->notes.threads[0].tid;
	target->threads = core->notes.threads;
	target->nr_threads = core->notes.nr_threads;
	target->mappings = core->notes.mappings;
	target->nr_mappings = core->notes.nr_mappings;
	return options->executable ? place_given(target, options) : NULL;
}

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
	target->kind = TARGET_CORE;
	target->memory_fd = -1;
	target->core = core;
	error = open_core(target, options);
	if (error)
		target_close(target);
	else
		*ret = target;
	return error;
}

void core_close(struct core *core)
{
	if (!core)
		return;
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
	};
}

char *core_lacks(const struct target *target)
{
	char *text;

	if (target->core->missing == 0)
		return NULL;
	return asprintf(&text, "the file was cut short: %llu bytes are not there",
			(unsigned long long)target->core->missing) < 0
		   ? NULL
		   : text;
}
