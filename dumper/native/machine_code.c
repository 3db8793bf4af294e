#include "native/machine_code.h"

#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "native/fde_table.h"
#include "native/kept_names.h"
#include "native/mapped_files.h"
#include "native/symbols.h"

/* Of larger files, no symbols are read, and nothing else: a file may claim any size. */
#define LARGEST (256 << 20)

/* The size of the direct-mapped cache of functions. */
#define KEPT 4096u

/*
 * How long to wait before the mappings are read again because an address is in none of them: doubled each time that
 * this does not help.
 */
#define AGAIN_MIN_NS UINT64_C(5000000)
#define AGAIN_MAX_NS UINT64_C(2000000000)

/* What was read of a mapped file. */
struct code_file {
	bool read; /* the other members are set */
	Elf *elf;  /* NULL: damaged */
	Dwarf_CFI *frames;
	struct symbols *symbols;
	struct fde_table functions;
	uint64_t bias; /* address in the process = address in the file + bias */
	const char *path;
};

struct machine_code {
	pid_t pid; /* 0: the mappings are not read again */
	struct mapped_files mapped;
	struct code_file *files; /* for each of the mapped files */
	uint64_t mapped_ns;	 /* when the mappings were read */
	uint64_t generation;	 /* how often the mappings were read again */
	uint64_t again_ns;	 /* how long to wait until they are read again */
	struct kept_names names;
	struct kept_function {
		uint64_t address;
		struct machine_function function;
	} of[KEPT];
};

/* `target` is NULL for a process. */
static struct error *open_code(pid_t pid, struct target *target, struct machine_code **ret)
{
	struct machine_code *code = calloc(1, sizeof(*code));
	struct error *error;

	if (!code)
		return error_no_memory();
	elf_version(EV_CURRENT);
	code->pid = pid;
	code->mapped_ns = monotonic_ns();
	code->again_ns = AGAIN_MIN_NS;
	error = target ? mapped_files_of_target(target, &code->mapped) : mapped_files_open(pid, &code->mapped);
	if (!error) {
		code->files = calloc(code->mapped.count + 1, sizeof(*code->files));
		error = code->files ? NULL : error_no_memory();
	}
	if (error) {
		machine_code_close(code);
		return error;
	}
	*ret = code;
	return NULL;
}

struct error *machine_code_open(pid_t pid, struct machine_code **ret)
{
	return open_code(pid, NULL, ret);
}

struct error *machine_code_of_target(struct target *target, struct machine_code **ret)
{
	return open_code(0, target, ret);
}

static void clear_file(struct code_file *file)
{
	symbols_destroy(file->symbols);
	if (file->frames)
		dwarf_cfi_end(file->frames);
	elf_end(file->elf);
	*file = (struct code_file){0};
}

void machine_code_close(struct machine_code *code)
{
	if (!code)
		return;
	for (size_t i = 0; code->files && i < code->mapped.count; i++)
		clear_file(&code->files[i]);
	free(code->files);
	mapped_files_close(&code->mapped);
	kept_names_clear(&code->names);
	free(code);
}

/* ---- files */

/*
 * The difference between addresses in the process and in the file: the first segment, which has the headers, is mapped
 * at `start`. False if there is no segment.
 */
static bool find_bias(Elf *elf, uint64_t start, uint64_t *bias)
{
	GElf_Phdr header;
	size_t count;

	if (elf_getphdrnum(elf, &count) != 0)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!gelf_getphdr(elf, (int)i, &header) || header.p_type != PT_LOAD)
			continue;
		*bias = start - (header.p_vaddr - header.p_offset);
		return true;
	}
	return false;
}

/* The code that the kernel maps into each process: rbdump has the same. NULL if there is none. */
static Elf *open_vdso(void)
{
	const Elf64_Ehdr *header = (const void *)getauxval(AT_SYSINFO_EHDR);

	return header ? elf_memory((char *)header, header->e_shoff + (size_t)header->e_shnum * header->e_shentsize)
		      : NULL;
}

static void read_file(struct machine_code *code, struct mapped_file *mapped, struct code_file *file)
{
	struct stat status;

	file->read = true;
	file->path = kept_names_add(&code->names, NULL, mapped->path);
	if (mapped->fd >= 0 && (fstat(mapped->fd, &status) != 0 || status.st_size > LARGEST))
		return;
	/* A file is read, and not mapped: it may be truncated meanwhile. */
	file->elf = mapped->fd < 0 ? open_vdso() : elf_begin(mapped->fd, ELF_C_READ, NULL);
	if (!file->elf || !find_bias(file->elf, mapped->start, &file->bias)) {
		clear_file(file);
		file->read = true;
		return;
	}
	file->frames = dwarf_getcfi_elf(file->elf);
	file->symbols = symbols_read(file->elf);
	file->functions = fde_table_read(file->elf);
}

/* Keeps what was read of files that are still mapped. */
static void take_over(struct mapped_files *old, struct code_file *old_files, struct mapped_files *new,
		      struct code_file *new_files)
{
	for (size_t i = 0; i < new->count; i++) {
		for (size_t j = 0; j < old->count; j++) {
			if (!old_files[j].read || new->of[i].start != old->of[j].start ||
			    new->of[i].inode != old->of[j].inode || strcmp(new->of[i].path, old->of[j].path) != 0)
				continue;
			new_files[i] = old_files[j];
			old_files[j] = (struct code_file){0};
			/* Its Elf reads from the old descriptor. */
			if (new->of[i].fd >= 0)
				close(new->of[i].fd);
			new->of[i].fd = old->of[j].fd;
			old->of[j].fd = -1;
			break;
		}
	}
}

/* If that fails, the mappings of before are kept. */
void machine_code_refresh(struct machine_code *code)
{
	struct code_file *files;
	struct mapped_files mapped;
	struct error *error;

	if (code->pid == 0)
		return;
	error = mapped_files_open(code->pid, &mapped);
	files = error ? NULL : calloc(mapped.count + 1, sizeof(*files));
	code->mapped_ns = monotonic_ns();
	code->generation++;
	if (!files) {
		error_destroy(error);
		mapped_files_close(&mapped);
		return;
	}
	take_over(&code->mapped, code->files, &mapped, files);
	for (size_t i = 0; i < code->mapped.count; i++)
		clear_file(&code->files[i]);
	free(code->files);
	mapped_files_close(&code->mapped);
	code->mapped = mapped;
	code->files = files;
	memset(code->of, 0, sizeof(code->of));
}

/* The file that is mapped at an address. NULL if there is none. */
static struct code_file *file_at(struct machine_code *code, uint64_t address)
{
	size_t at = mapped_files_find(&code->mapped, address);

	/* It may have been mapped since, perhaps where there was other memory. */
	if (at == MAPPED_NONE && code->pid != 0 && !mapped_files_is_generated(&code->mapped, address) &&
	    monotonic_ns() - code->mapped_ns > code->again_ns) {
		machine_code_refresh(code);
		at = mapped_files_find(&code->mapped, address);
		if (at != MAPPED_NONE)
			code->again_ns = AGAIN_MIN_NS;
		else if (code->again_ns < AGAIN_MAX_NS)
			code->again_ns *= 2;
	}
	if (at == MAPPED_NONE)
		return NULL;
	if (!code->files[at].read)
		read_file(code, &code->mapped.of[at], &code->files[at]);
	return &code->files[at];
}

uint64_t machine_code_generation(const struct machine_code *code)
{
	return code->generation;
}

/* ---- functions */

/* A name for a function without a symbol. */
static const char *nameless(struct machine_code *code, const char *path, uint64_t address)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	char name[512];

	snprintf(name, sizeof(name), "%.400s+0x%" PRIx64, slash ? slash + 1 : path ? path : "", address);
	return kept_names_add(&code->names, NULL, name);
}

static struct machine_function find_function(struct machine_code *code, uint64_t address)
{
	struct machine_function function = {.kind = MACHINE_CODE_OF_FILE};
	struct code_file *file = file_at(code, address);
	uint64_t start = 0, of_symbol = 0;
	const char *name;
	bool known;

	if (!file) {
		function.kind =
		    mapped_files_is_generated(&code->mapped, address) ? MACHINE_CODE_GENERATED : MACHINE_CODE_NONE;
		return function;
	}
	function.file = file->path;
	known = fde_table_find(&file->functions, address - file->bias, &start);
	name = file->symbols ? symbols_find(file->symbols, address - file->bias, &of_symbol) : NULL;
	/* A symbol without a size may be that of a function before this one. */
	if (name && (!known || of_symbol >= start)) {
		function.name = kept_names_add(&code->names, NULL, name);
		start = of_symbol;
		known = true;
	} else {
		function.name = nameless(code, file->path, known ? start : address - file->bias);
	}
	if (known)
		function.start = start + file->bias;
	return function;
}

struct machine_function machine_code_function(struct machine_code *code, uint64_t address)
{
	struct kept_function *kept = &code->of[(address * UINT64_C(0x9e3779b97f4a7c15) >> 32) % KEPT];
	struct machine_function function;

	if (kept->address == address && kept->function.kind != MACHINE_CODE_NONE)
		return kept->function;
	/* That may read the mappings again, and then empties the cache. */
	function = find_function(code, address);
	*kept = (struct kept_function){.address = address, .function = function};
	return function;
}

Dwarf_CFI *machine_code_frame_information(struct machine_code *code, uint64_t address, uint64_t *bias)
{
	struct code_file *file = file_at(code, address);

	if (!file)
		return NULL;
	*bias = file->bias;
	return file->frames;
}
