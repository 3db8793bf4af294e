/*
 * Reads the notes of a core: its threads with their registers, the files that were mapped, the pid and name of the
 * process, and how the process died. The notes have the format of Linux 6.1 (fs/binfmt_elf.c, fill_note_info() and
 * fill_files_note()) or of gdb 13.1 (linux-tdep.c, linux_make_corefile_notes()).
 */
#ifndef RBDUMP_CORE_NOTES_H
#define RBDUMP_CORE_NOTES_H

#include <gelf.h>
#include <libelf.h>

#include "target/target.h"

struct core_notes {
	/*
	 * The threads, in the same order as in the core file. The first thread in this list is the thread that received
	 * the signal. In a core made by gcore, the first thread is the thread that was selected in gdb.
	 */
	struct native_thread *threads;
	size_t nr_threads, threads_capacity;
	struct mapping *mappings; /* mappings of files, sorted by address */
	size_t nr_mappings;

	pid_t pid;	       /* the pid of the process; 0 if not known */
	char program[17];      /* the kernel's name for the process; "" if not known */
	char arguments[81];    /* the beginning of the command line, with spaces between words; "" if not known */
	int signal;	       /* the signal that killed the process; 0 if no signal killed it (gcore) */
	bool has_fault;	       /* the signal reports a bad memory access, and `fault` is set */
	uint64_t fault;	       /* the address of the bad access */
	uint64_t program_page; /* an address in the first pages of the program (AT_PHDR); 0 if not known */
};

/*
 * Reads the notes in one PT_NOTE segment, and adds their contents to `notes`. The segment may contain arbitrary bytes.
 * Notes that are too short for their type are skipped. If the notes contain more than 65,536 threads, the excess
 * threads are skipped. A list of mapped files is skipped if it contains more than 262,144 mappings. Returns false if
 * there is not enough memory.
 */
bool core_notes_read(struct core_notes *notes, Elf_Data *segment);

/*
 * Sorts the mappings. The mappings of a process never overlap. So a mapping that overlaps the mapping before it must be
 * wrong, and is dropped.
 */
void core_notes_settle(struct core_notes *notes);

/* Frees the memory, and leaves the notes empty. */
void core_notes_clear(struct core_notes *notes);

#endif
