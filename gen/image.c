#include "gen/image.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "sentence.h"

/* What an ELF file is for, by its e_machine. */
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

char *image_check(const char *name, int fd)
{
	Elf64_Ehdr header;
	ssize_t length = pread(fd, &header, sizeof(header), 0);

	if (length < 0)
		return sentence("%s: cannot be read: %s", name, strerror(errno));
	if (length == 0)
		return sentence("%s: the file is empty", name);
	if (length < SELFMAG || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
		return sentence("%s: not an ELF file", name);
	if (length < EI_NIDENT)
		return sentence("%s: cut short: not even the ELF header is there", name);
	if (header.e_ident[EI_CLASS] == ELFCLASS32)
		return sentence("%s: a 32-bit ELF file; rbdump reads those of x86_64", name);
	if (header.e_ident[EI_DATA] == ELFDATA2MSB)
		return sentence("%s: a big-endian ELF file; rbdump reads those of x86_64", name);
	if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
		return sentence("%s: an ELF file of unknown class or byte order", name);
	if (length < (ssize_t)sizeof(header))
		return sentence("%s: cut short: not even the ELF header is there", name);
	if (header.e_machine != EM_X86_64) {
		const char *machine = machine_name(header.e_machine);

		if (machine)
			return sentence("%s: an ELF file for %s; rbdump reads those of x86_64", name, machine);
		return sentence("%s: an ELF file for machine %u; rbdump reads those of x86_64", name, header.e_machine);
	}
	if (header.e_type != ET_EXEC && header.e_type != ET_DYN && header.e_type != ET_REL)
		return sentence("%s: neither an executable nor a shared library nor an object file (ELF type %u)", name,
				header.e_type);
	return NULL;
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
			return "is compressed in a way that this elfutils does not know (zstd?); objcopy "
			       "--decompress-debug-sections makes it readable";
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
