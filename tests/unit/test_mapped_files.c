/*
 * To which file a mapping belongs, and where the beginning of the file is: of a library as lld lays it out, whose segments
 * have addresses that are not their offsets, and begin and end in the middle of a page of the file.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "native/mapped_files.h"
#include "native/symbolize.h"

enum { PAGE = 4096, SEGMENTS = 5, PAGES = 6 };

/* As lld does: each begins in the file where the one before ends, and in memory a page further. */
static const Elf64_Phdr segments[SEGMENTS] = {
    {.p_type = PT_LOAD, .p_flags = PF_R, .p_offset = 0, .p_vaddr = 0, .p_filesz = 0x5a0, .p_memsz = 0x5a0},
    {.p_type = PT_LOAD,
     .p_flags = PF_R | PF_X,
     .p_offset = 0x5a0,
     .p_vaddr = 0x15a0,
     .p_filesz = 0x100,
     .p_memsz = 0x100},
    {.p_type = PT_LOAD,
     .p_flags = PF_R | PF_X,
     .p_offset = 0x6a0,
     .p_vaddr = 0x26a0,
     .p_filesz = 0x1200,
     .p_memsz = 0x1200},
    {.p_type = PT_LOAD,
     .p_flags = PF_R | PF_W,
     .p_offset = 0x18a0,
     .p_vaddr = 0x48a0,
     .p_filesz = 0x10,
     .p_memsz = 0x10},
    {.p_type = PT_LOAD,
     .p_flags = PF_R | PF_W,
     .p_offset = 0x18b0,
     .p_vaddr = 0x58b0,
     .p_filesz = 0x10,
     .p_memsz = 0x10},
};

/* A function in each of the two segments with code. */
enum { ONE = 0x15c0, OTHER = 0x36c0, FUNCTION = 0x20 };

static char path[] = "/tmp/rbdump-lld-XXXXXX";

/* The symbol table is behind all segments. */
static void write_file(int fd)
{
	enum { SYMBOLS = 0x2000, NAMES = 0x2100, SECTIONS = 0x2200 };
	static const char names[] = "\0one\0other\0.text\0.more\0.symtab\0.strtab";
	const Elf64_Sym symbols[] = {
	    {0},
	    {.st_name = 1,
	     .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
	     .st_shndx = 1,
	     .st_value = ONE,
	     .st_size = FUNCTION},
	    {.st_name = 5,
	     .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
	     .st_shndx = 2,
	     .st_value = OTHER,
	     .st_size = FUNCTION},
	};
	const Elf64_Shdr sections[] = {
	    {0},
	    {.sh_name = 11,
	     .sh_type = SHT_PROGBITS,
	     .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
	     .sh_addr = 0x15a0,
	     .sh_offset = 0x5a0,
	     .sh_size = 0x100,
	     .sh_addralign = 16},
	    {.sh_name = 17,
	     .sh_type = SHT_PROGBITS,
	     .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
	     .sh_addr = 0x26a0,
	     .sh_offset = 0x6a0,
	     .sh_size = 0x1200,
	     .sh_addralign = 16},
	    {.sh_name = 23,
	     .sh_type = SHT_SYMTAB,
	     .sh_offset = SYMBOLS,
	     .sh_size = sizeof(symbols),
	     .sh_link = 4,
	     .sh_info = 1,
	     .sh_entsize = sizeof(symbols[0]),
	     .sh_addralign = 8},
	    {.sh_name = 31, .sh_type = SHT_STRTAB, .sh_offset = NAMES, .sh_size = sizeof(names), .sh_addralign = 1},
	};
	const Elf64_Ehdr header = {
	    .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
	    .e_type = ET_DYN,
	    .e_machine = EM_X86_64,
	    .e_version = EV_CURRENT,
	    .e_phoff = sizeof(header),
	    .e_shoff = SECTIONS,
	    .e_ehsize = sizeof(header),
	    .e_phentsize = sizeof(segments[0]),
	    .e_phnum = SEGMENTS,
	    .e_shentsize = sizeof(sections[0]),
	    .e_shnum = sizeof(sections) / sizeof(sections[0]),
	    .e_shstrndx = 4,
	};

	assert_int_equal(ftruncate(fd, 0x3000), 0);
	assert_int_equal(pwrite(fd, &header, sizeof(header), 0), sizeof(header));
	assert_int_equal(pwrite(fd, segments, sizeof(segments), sizeof(header)), sizeof(segments));
	assert_int_equal(pwrite(fd, symbols, sizeof(symbols), SYMBOLS), sizeof(symbols));
	assert_int_equal(pwrite(fd, names, sizeof(names), NAMES), sizeof(names));
	assert_int_equal(pwrite(fd, sections, sizeof(sections), SECTIONS), sizeof(sections));
}

/* Maps the segments as the dynamic linker does. Returns where the beginning of the file is. */
static uint64_t map(int fd)
{
	uint8_t *base = mmap(NULL, (PAGES + 2) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(base != MAP_FAILED);
	base += PAGE;
	for (size_t i = 0; i < SEGMENTS; i++) {
		const Elf64_Phdr *segment = &segments[i];
		const uint64_t start = segment->p_vaddr / PAGE * PAGE, offset = segment->p_offset / PAGE * PAGE;
		const int allowed = (segment->p_flags & PF_R ? PROT_READ : 0) |
				    (segment->p_flags & PF_W ? PROT_WRITE : 0) |
				    (segment->p_flags & PF_X ? PROT_EXEC : 0);

		assert_true(mmap(base + start, segment->p_vaddr + segment->p_memsz - start, allowed,
				 MAP_PRIVATE | MAP_FIXED, fd, (off_t)offset) == base + start);
	}
	return (uint64_t)(uintptr_t)base;
}

static int set_up(void **state)
{
	static uint64_t base;
	int fd = mkstemp(path);

	if (fd < 0)
		return -1;
	write_file(fd);
	base = map(fd);
	close(fd);
	*state = &base;
	return 0;
}

static int tear_down(void **state)
{
	const uint64_t base = *(uint64_t *)*state;

	munmap((void *)(uintptr_t)(base - PAGE), (PAGES + 2) * PAGE);
	return unlink(path);
}

static void test_parts(void **state)
{
	const uint64_t base = *(uint64_t *)*state;
	struct mapped_files files;
	size_t file;

	assert_null(mapped_files_open(getpid(), &files));
	file = mapped_files_find(&files, base);
	assert_int_not_equal(file, MAPPED_NONE);
	assert_string_equal(files.of[file].path, path);
	assert_int_equal(files.of[file].start, base);
	for (size_t i = 0; i < SEGMENTS; i++)
		assert_int_equal(mapped_files_find(&files, base + segments[i].p_vaddr), file);
	assert_int_equal(mapped_files_find(&files, base + PAGES * PAGE), MAPPED_NONE);
	mapped_files_close(&files);
}

/* Another mapping of the whole file, to read it, is a file of its own; it does not take the parts of the library. */
static void test_read_as_a_whole(void **state)
{
	const uint64_t base = *(uint64_t *)*state;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *whole = mmap(NULL, 3 * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	struct mapped_files files;
	size_t file;

	assert_true(whole != MAP_FAILED);
	close(fd);
	assert_null(mapped_files_open(getpid(), &files));
	file = mapped_files_find(&files, base + ONE);
	assert_int_not_equal(file, MAPPED_NONE);
	assert_int_equal(files.of[file].start, base);
	assert_int_not_equal(mapped_files_find(&files, (uint64_t)(uintptr_t)whole), file);
	mapped_files_close(&files);
	munmap(whole, 3 * PAGE);
}

static void assert_symbol(struct symbolizer *symbolizer, uint64_t address, const char *name, uint64_t offset,
			  uint64_t in_file)
{
	struct symbolized found;

	assert_true(symbolize(symbolizer, address, &found));
	assert_string_equal(found.module, path);
	assert_non_null(found.function);
	assert_string_equal(found.function, name);
	assert_int_equal(found.offset, offset);
	assert_int_equal(found.module_address, in_file);
}

static void test_symbols(void **state)
{
	const uint64_t base = *(uint64_t *)*state;
	struct symbolizer *symbolizer;

	assert_null(symbolizer_open(getpid(), 60000, &symbolizer));
	assert_symbol(symbolizer, base + ONE + 4, "one", 4, ONE + 4);
	assert_symbol(symbolizer, base + OTHER + 8, "other", 8, OTHER + 8);
	symbolizer_close(symbolizer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_parts),
	    cmocka_unit_test(test_read_as_a_whole),
	    cmocka_unit_test(test_symbols),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
