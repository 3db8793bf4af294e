/*
 * The notes of a core: its threads with their registers, the files that were mapped, what the process was and died of.
 * Facts: Linux, fs/binfmt_elf.c, fill_note_info() and fill_files_note(), 6.1; gdb, linux-tdep.c,
 * linux_make_corefile_notes(), 13.1.
 */
#ifndef RBDUMP_CORE_NOTES_H
#define RBDUMP_CORE_NOTES_H

#include <gelf.h>
#include <libelf.h>

#include "target/target.h"

struct core_notes {
	struct native_thread *threads; /* as they stand there: the first one died, or is the one that gdb was at */
	size_t nr_threads, threads_capacity;
	struct mapping *mappings; /* of files, by address */
	size_t nr_mappings;

	pid_t pid;	       /* 0 if not known */
	char program[17];      /* as the kernel calls the process; "" if not known */
	int signal;	       /* that ended it; 0 if none did, which is what gcore writes */
	bool has_fault;	       /* the signal is one for an access to memory: */
	uint64_t fault;	       /*   to this address */
	uint64_t program_page; /* an address in the first pages of the program (AT_PHDR); 0 if not known */
};

/*
 * Adds what the notes of one PT_NOTE segment say. They may be any bytes; notes that are too short for what they say
 * they are, and more threads or files than a process can have, are left out. Returns false if out of memory.
 */
bool core_notes_read(struct core_notes *notes, Elf_Data *segment);

/* Puts the mappings in order, and gives up those that overlap another: no process has such. */
void core_notes_settle(struct core_notes *notes);

void core_notes_clear(struct core_notes *notes);

#endif
