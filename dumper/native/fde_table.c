#include "native/fde_table.h"

#include <gelf.h>
#include <string.h>

/* From the Linux Standard Base, core specification 5.0, 10.6.2 and 10.5.1: the encodings that linkers use. */
#define VERSION	       1
#define UDATA4	       0x03
#define DATAREL_SDATA4 0x3b
#define HEADER_LENGTH  12u
#define ENTRY_LENGTH   8u

static uint32_t word_at(const uint8_t *bytes)
{
	uint32_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

/* The program header of the section. False if there is none. */
static bool find_header(Elf *elf, GElf_Phdr *ret)
{
	size_t count;

	if (elf_getphdrnum(elf, &count) != 0)
		return false;
	for (size_t i = 0; i < count; i++)
		if (gelf_getphdr(elf, (int)i, ret) && ret->p_type == PT_GNU_EH_FRAME)
			return true;
	return false;
}

struct fde_table fde_table_read(Elf *elf)
{
	struct fde_table table = {0};
	const uint8_t *bytes;
	GElf_Phdr header;
	Elf_Data *data;

	if (!find_header(elf, &header) || header.p_filesz < HEADER_LENGTH)
		return table;
	data = elf_getdata_rawchunk(elf, (int64_t)header.p_offset, header.p_filesz, ELF_T_BYTE);
	if (!data || data->d_size < HEADER_LENGTH)
		return table;
	bytes = data->d_buf;
	/* The bytes: version, the encodings of the address of .eh_frame, of the count and of the entries. */
	if (bytes[0] != VERSION || (bytes[1] & 0x0f) != (DATAREL_SDATA4 & 0x0f) || bytes[2] != UDATA4 ||
	    bytes[3] != DATAREL_SDATA4)
		return table;
	table.count = word_at(bytes + 8);
	if (table.count > (data->d_size - HEADER_LENGTH) / ENTRY_LENGTH)
		return (struct fde_table){0};
	table.entries = bytes + HEADER_LENGTH;
	table.base = header.p_vaddr;
	return table;
}

static uint64_t start_of(const struct fde_table *table, size_t at)
{
	return table->base + (uint64_t)(int64_t)(int32_t)word_at(table->entries + at * ENTRY_LENGTH);
}

bool fde_table_find(const struct fde_table *table, uint64_t address, uint64_t *start)
{
	size_t low = 0, high = table->entries ? table->count : 0;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (start_of(table, middle) > address)
			high = middle;
		else
			low = middle + 1;
	}
	if (low == 0)
		return false;
	*start = start_of(table, low - 1);
	return true;
}
