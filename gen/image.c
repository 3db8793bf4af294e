#include "gen/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK	  (256 << 10)
#define MAX_COPY  (INT64_C(1) << 30)  /* bytes of a file that is copied as a whole; libruby 4.0 has 60 MB */
#define MAX_PARTS (UINT64_C(1) << 28) /* bytes of the parts that are copied of a file */
#define MAX_FILE  (INT64_C(16) << 30) /* bytes of a file of which parts are copied */

/* The machine of an ELF file, by its e_machine. */
static const char *machine_name(unsigned int machine)
{
	switch (machine) {
	case EM_386:
		return "i386";
	case EM_ARM:
		return "32-bit ARM";
	case EM_AARCH64:
		return "aarch64";
	case EM_PPC64:
		return "64-bit PowerPC";
	case EM_RISCV:
		return "RISC-V";
	case EM_S390:
		return "s390";
	default:
		return NULL;
	}
}

static struct error *check_header(const char *name, const Elf64_Ehdr *header, ssize_t length)
{
	if (length == 0)
		return error_create(EXIT_FAILED, "%s: the file is empty", name);
	if (length < SELFMAG || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
		return error_create(EXIT_FAILED, "%s: not an ELF file", name);
	if (length < EI_NIDENT)
		return error_create(EXIT_FAILED, "%s: cut short: the ELF header is incomplete", name);
	if (header->e_ident[EI_CLASS] == ELFCLASS32)
		return error_create(EXIT_FAILED, "%s: a 32-bit ELF file; rbdump reads only ELF files for x86_64", name);
	if (header->e_ident[EI_DATA] == ELFDATA2MSB)
		return error_create(EXIT_FAILED, "%s: a big-endian ELF file; rbdump reads only ELF files for x86_64",
				    name);
	if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB)
		return error_create(EXIT_FAILED, "%s: an ELF file of unknown class or byte order", name);
	if (length < (ssize_t)sizeof(*header))
		return error_create(EXIT_FAILED, "%s: cut short: the ELF header is incomplete", name);
	if (header->e_machine != EM_X86_64) {
		const char *machine = machine_name(header->e_machine);

		if (machine)
			return error_create(EXIT_FAILED,
					    "%s: an ELF file for %s; rbdump reads only ELF files for x86_64", name,
					    machine);
		return error_create(EXIT_FAILED,
				    "%s: an ELF file for machine %u; rbdump reads only ELF files for x86_64", name,
				    header->e_machine);
	}
	if (header->e_type != ET_EXEC && header->e_type != ET_DYN && header->e_type != ET_REL)
		return error_create(EXIT_FAILED,
				    "%s: neither an executable, nor a shared library, nor an object file (ELF type %u)",
				    name, header->e_type);
	return NULL;
}

struct error *image_check(const char *name, int fd)
{
	Elf64_Ehdr header;
	ssize_t length = pread(fd, &header, sizeof(header), 0);

	if (length < 0)
		return error_create(EXIT_FAILED, "%s: cannot be read: %s", name, strerror(errno));
	return check_header(name, &header, length);
}

/* ---- copies */

static bool is_zero(const char *bytes, size_t length)
{
	return length == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0);
}

/* Copies a whole file. Zeros become holes. */
static bool copy_bytes(int from, int to)
{
	char *chunk = malloc(CHUNK);
	ssize_t length = -1;
	off_t done = 0;

	while (chunk && done <= MAX_COPY && (length = pread(from, chunk, CHUNK, done)) > 0) {
		if (!is_zero(chunk, (size_t)length) && pwrite(to, chunk, (size_t)length, done) != length) {
			free(chunk);
			return false;
		}
		done += length;
	}
	free(chunk);
	if (length > 0)
		errno = EFBIG;
	return length == 0 && ftruncate(to, done) == 0;
}

int image_copy(int fd)
{
	int copy = memfd_create("rbdump", MFD_CLOEXEC | MFD_ALLOW_SEALING), saved;

	if (copy < 0)
		return -1;
	/*
	 * The size must be sealed, because a mapping relies on it. The seal against writing may fail if the kernel
	 * holds a reference to a page just now (mm/memfd.c, memfd_wait_for_pins(), v6.1). That is fine: nobody else
	 * has it open.
	 */
	if (copy_bytes(fd, copy) && fcntl(copy, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0) {
		fcntl(copy, F_ADD_SEALS, F_SEAL_WRITE);
		return copy;
	}
	saved = errno;
	close(copy);
	errno = saved;
	return -1;
}

/* The state while parts of a file are copied. */
struct copying {
	int fd;
	char *bytes;
	uint64_t size;
	uint64_t budget; /* bytes that may still be copied */
};

static bool copy_part(struct copying *copying, uint64_t offset, uint64_t length)
{
	uint64_t done = 0;

	if (offset > copying->size || length > copying->size - offset || length > copying->budget)
		return false;
	copying->budget -= length;
	while (done < length) {
		ssize_t n = pread(copying->fd, copying->bytes + offset + done, length - done, (off_t)(offset + done));

		if (n <= 0)
			return false;
		done += (uint64_t)n;
	}
	return true;
}

/* Copies the notes and the dynamic section, by the program headers. False if there is no table of these. */
static bool copy_segments(struct copying *copying, const Elf64_Ehdr *header)
{
	if (header->e_phnum == PN_XNUM || header->e_phoff % 8 != 0 ||
	    (header->e_phnum > 0 && header->e_phentsize != sizeof(Elf64_Phdr)) ||
	    !copy_part(copying, header->e_phoff, header->e_phnum * sizeof(Elf64_Phdr)))
		return false;
	for (size_t i = 0; i < header->e_phnum; i++) {
		Elf64_Phdr *segment = (Elf64_Phdr *)(void *)(copying->bytes + header->e_phoff) + i;
		Elf64_Phdr now = *segment;

		if ((now.p_type == PT_NOTE || now.p_type == PT_DYNAMIC) &&
		    !copy_part(copying, now.p_offset, now.p_filesz))
			segment->p_type = PT_NULL;
		else
			*segment = now; /* if a part lies over the table */
	}
	return true;
}

/* Copies the sections that are needed. Of symbol tables, copies the first of each kind: there is only one (gABI). */
static void copy_sections(struct copying *copying, const Elf64_Ehdr *header, Elf64_Shdr *sections)
{
	bool symtab = false, dynsym = false;

	for (size_t i = 0; i < header->e_shnum; i++) {
		Elf64_Shdr *section = &sections[i];
		bool *seen = section->sh_type == SHT_SYMTAB ? &symtab : section->sh_type == SHT_DYNSYM ? &dynsym : NULL;
		bool wanted = (seen && !*seen) || section->sh_type == SHT_DYNAMIC || section->sh_type == SHT_NOTE;

		if (!seen && !wanted)
			continue;
		if (seen)
			*seen = true;
		if (!wanted || !copy_part(copying, section->sh_offset, section->sh_size)) {
			section->sh_type = SHT_NULL;
			continue;
		}
		if (section->sh_type != SHT_NOTE && section->sh_link < header->e_shnum)
			copy_part(copying, sections[section->sh_link].sh_offset, sections[section->sh_link].sh_size);
	}
	if (header->e_shstrndx < header->e_shnum)
		copy_part(copying, sections[header->e_shstrndx].sh_offset, sections[header->e_shstrndx].sh_size);
}

/*
 * Copies what is needed. The headers are checked and changed in copies of their own, and put into place last: a part
 * that lies over them must not overwrite them.
 */
static bool copy_parts(struct copying *copying)
{
	Elf64_Ehdr header;
	Elf64_Shdr *sections = NULL;
	size_t table;
	struct error *problem;

	if (copying->size < sizeof(header) || !copy_part(copying, 0, sizeof(header)))
		return false;
	memcpy(&header, copying->bytes, sizeof(header));
	problem = check_header("", &header, sizeof(header));
	error_destroy(problem);
	if (problem || !copy_segments(copying, &header))
		return false;
	table = header.e_shnum * sizeof(*sections);
	/* e_shnum is enough: no program has more sections than it can count. */
	if (header.e_shnum > 0 && header.e_shentsize == sizeof(*sections) && header.e_shoff % 8 == 0 &&
	    copy_part(copying, header.e_shoff, table) && (sections = malloc(table))) {
		memcpy(sections, copying->bytes + header.e_shoff, table);
		copy_sections(copying, &header, sections);
		memcpy(copying->bytes + header.e_shoff, sections, table);
	} else {
		header.e_shoff = 0;
		header.e_shnum = header.e_shstrndx = 0;
	}
	free(sections);
	memcpy(copying->bytes, &header, sizeof(header));
	return true;
}

bool image_parts_open(int fd, struct image_parts *ret)
{
	struct copying copying = {.fd = fd, .budget = MAX_PARTS};
	struct stat status;
	void *bytes;

	*ret = (struct image_parts){0};
	if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size <= 0 || status.st_size > MAX_FILE)
		return false;
	copying.size = (uint64_t)status.st_size;
	bytes = mmap(NULL, copying.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (bytes == MAP_FAILED)
		return false;
	copying.bytes = bytes;
	*ret = (struct image_parts){.bytes = bytes, .size = copying.size};
	if (copy_parts(&copying))
		ret->elf = elf_memory(bytes, copying.size);
	if (ret->elf)
		return true;
	image_parts_close(ret);
	return false;
}

void image_parts_close(struct image_parts *parts)
{
	elf_end(parts->elf);
	if (parts->bytes)
		munmap(parts->bytes, parts->size);
	*parts = (struct image_parts){0};
}

bool image_is_constant(Elf *elf, size_t section)
{
	Elf_Scn *place = section == SHN_UNDEF ? NULL : elf_getscn(elf, section);
	GElf_Shdr header;

	return place && gelf_getshdr(place, &header) && !(header.sh_flags & SHF_WRITE);
}

static bool table_defines(Elf_Scn *section, const GElf_Shdr *header, Elf *elf, const char *name)
{
	Elf_Data *data = elf_getdata(section, NULL);

	if (!data || !header->sh_entsize)
		return false;
	for (int i = 0; (size_t)i < header->sh_size / header->sh_entsize; i++) {
		GElf_Sym symbol;

		if (!gelf_getsym(data, i, &symbol))
			return false;
		if (!image_is_constant(elf, symbol.st_shndx))
			continue;
		const char *text = elf_strptr(elf, header->sh_link, symbol.st_name);

		if (text && strcmp(text, name) == 0)
			return true;
	}
	return false;
}

bool image_defines_constant(Elf *elf, const char *name)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section))) {
		if (gelf_getshdr(section, &header) && (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM) &&
		    table_defines(section, &header, elf, name))
			return true;
	}
	return false;
}

bool image_read(Elf *elf, size_t section, uint64_t address, void *buffer, size_t length)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr header;

	while ((scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, &header) || !(header.sh_flags & SHF_ALLOC) || header.sh_type == SHT_NOBITS)
			continue;
		if (section && elf_ndxscn(scn) != section)
			continue;
		uint64_t start = section ? 0 : header.sh_addr;

		if (address < start || address - start >= header.sh_size || header.sh_size - (address - start) < length)
			continue;
		Elf_Data *data = elf_rawdata(scn, NULL);

		if (!data || !data->d_buf || data->d_size < address - start + length)
			return false;
		memcpy(buffer, (char *)data->d_buf + (address - start), length);
		return true;
	}
	return false;
}

const char *image_debug_info_obstacle(Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	GElf_Chdr compression;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return NULL;
	while ((section = elf_nextscn(elf, section))) {
		const char *name = gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;

		if (!name || header.sh_type == SHT_NOBITS || strcmp(name, ".debug_info") != 0)
			continue;
		if (header.sh_flags & SHF_COMPRESSED && gelf_getchdr(section, &compression) &&
		    compression.ch_type != ELFCOMPRESS_ZLIB)
			return "is compressed in a way that this version of elfutils does not know (zstd?); objcopy "
			       "--decompress-debug-sections makes the debug info readable";
		return "cannot be read";
	}
	return NULL;
}

const char *image_dynamic_string(Elf *elf, int64_t tag, size_t n)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section))) {
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_DYNAMIC)
			break;
	}
	Elf_Data *data = section && header.sh_entsize ? elf_getdata(section, NULL) : NULL;

	for (int i = 0; data && (size_t)i < header.sh_size / header.sh_entsize; i++) {
		GElf_Dyn entry;

		if (!gelf_getdyn(data, i, &entry) || entry.d_tag == DT_NULL)
			break;
		if (entry.d_tag == tag && n-- == 0)
			return elf_strptr(elf, header.sh_link, entry.d_un.d_val);
	}
	return NULL;
}
