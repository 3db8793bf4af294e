#include "target/core_notes.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/user.h>

#include "base/array.h"
#include "target/registers.h"

/* The most that are read; a kernel allows 65,530 mappings and, on most systems, fewer threads. */
#define THREADS_MAX  65536u
#define MAPPINGS_MAX 262144u

static bool add_thread(struct core_notes *notes, const uint8_t *bytes, size_t length)
{
	struct user_regs_struct registers;
	struct elf_prstatus status;

	_Static_assert(sizeof(status.pr_reg) == sizeof(registers),
		       "pr_reg must have the same layout as the registers that ptrace(2) returns");
	if (length < sizeof(status) || notes->nr_threads >= THREADS_MAX)
		return true;
	memcpy(&status, bytes, sizeof(status));
	memcpy(&registers, &status.pr_reg, sizeof(registers));
	if (!array_make_room(notes->threads, notes->threads_capacity, notes->nr_threads + 1))
		return false;
	/* Not from siginfo: in a core of gcore, that has the SIGSTOP by which gdb stopped the process. */
	if (notes->nr_threads == 0 && status.pr_cursig > 0 && status.pr_cursig < NSIG)
		notes->signal = status.pr_cursig;
	notes->threads[notes->nr_threads] = (struct native_thread){
	    .tid = status.pr_pid > 0 ? status.pr_pid : 0,
	    .stopped = true,
	    .call = system_call_of_registers(&registers),
	};
	registers_take(&registers, &notes->threads[notes->nr_threads++]);
	return true;
}

/*
 * NT_FILE: count and page size; then for each file start, end, and offset in pages; then the paths, each with a NUL.
 */
static bool add_mappings(struct core_notes *notes, const uint8_t *bytes, size_t length)
{
	uint64_t head[2], place[3];
	size_t names, left;

	if (length < sizeof(head) || notes->mappings)
		return true;
	memcpy(head, bytes, sizeof(head));
	if (head[0] > MAPPINGS_MAX || head[0] > (length - sizeof(head)) / sizeof(place))
		return true;
	notes->mappings = calloc((size_t)head[0] + 1, sizeof(*notes->mappings));
	if (!notes->mappings)
		return false;
	names = sizeof(head) + (size_t)head[0] * sizeof(place);
	left = length - names;
	for (size_t i = 0; i < head[0]; i++) {
		const char *name = (const char *)bytes + names;
		size_t size = strnlen(name, left) + 1;
		struct mapping mapping;

		if (size > left)
			break;
		memcpy(place, bytes + sizeof(head) + i * sizeof(place), sizeof(place));
		names += size;
		left -= size;
		mapping = (struct mapping){.start = place[0], .end = place[1]};
		if (place[0] >= place[1] || __builtin_mul_overflow(place[2], head[1], &mapping.offset))
			continue;
		mapping.path = strdup(name);
		if (!mapping.path)
			return false;
		notes->mappings[notes->nr_mappings++] = mapping;
	}
	return true;
}

static void take_process(struct core_notes *notes, const uint8_t *bytes, size_t length)
{
	struct elf_prpsinfo process;

	if (length < sizeof(process))
		return;
	memcpy(&process, bytes, sizeof(process));
	_Static_assert(sizeof(notes->program) > sizeof(process.pr_fname), "room for a NUL");
	notes->pid = process.pr_pid > 0 ? process.pr_pid : 0;
	memcpy(notes->program, process.pr_fname, sizeof(process.pr_fname));
	_Static_assert(sizeof(notes->arguments) > sizeof(process.pr_psargs), "room for a NUL");
	memcpy(notes->arguments, process.pr_psargs, sizeof(process.pr_psargs));
}

/* Only the first thread's: that is the one that died. */
static void take_fault(struct core_notes *notes, const uint8_t *bytes, size_t length)
{
	siginfo_t info;

	if (length < sizeof(info) || notes->has_fault || notes->nr_threads > 1)
		return;
	memcpy(&info, bytes, sizeof(info));
	/* si_code is positive if the kernel sent the signal; else a process did, and there is no address. */
	if (info.si_signo != notes->signal || info.si_code <= 0 || info.si_code == SI_KERNEL)
		return;
	if (info.si_signo == SIGSEGV || info.si_signo == SIGBUS) {
		notes->has_fault = true;
		notes->fault = (uint64_t)(uintptr_t)info.si_addr;
	}
}

static void take_program_page(struct core_notes *notes, const uint8_t *bytes, size_t length)
{
	uint64_t entry[2];

	for (size_t at = 0; length - at >= sizeof(entry); at += sizeof(entry)) {
		memcpy(entry, bytes + at, sizeof(entry));
		if (entry[0] == AT_PHDR)
			notes->program_page = entry[1];
	}
}

bool core_notes_read(struct core_notes *notes, Elf_Data *segment)
{
	static const char owner[] = "CORE";
	size_t at = 0, name, content;
	bool enough = true;
	GElf_Nhdr header;

	while (enough && (at = gelf_getnote(segment, at, &header, &name, &content)) > 0) {
		const uint8_t *bytes = (const uint8_t *)segment->d_buf + content;

		if (header.n_namesz != sizeof(owner) ||
		    memcmp((const uint8_t *)segment->d_buf + name, owner, sizeof(owner)) != 0)
			continue;
		if (header.n_type == NT_PRSTATUS)
			enough = add_thread(notes, bytes, header.n_descsz);
		else if (header.n_type == NT_FILE)
			enough = add_mappings(notes, bytes, header.n_descsz);
		else if (header.n_type == NT_PRPSINFO)
			take_process(notes, bytes, header.n_descsz);
		else if (header.n_type == NT_SIGINFO)
			take_fault(notes, bytes, header.n_descsz);
		else if (header.n_type == NT_AUXV)
			take_program_page(notes, bytes, header.n_descsz);
	}
	return enough;
}

static int by_start(const void *a, const void *b)
{
	const struct mapping *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

void core_notes_settle(struct core_notes *notes)
{
	size_t kept = 0;

	if (notes->nr_mappings > 0)
		qsort(notes->mappings, notes->nr_mappings, sizeof(*notes->mappings), by_start);
	for (size_t i = 0; i < notes->nr_mappings; i++) {
		if (kept > 0 && notes->mappings[i].start < notes->mappings[kept - 1].end)
			free(notes->mappings[i].path);
		else
			notes->mappings[kept++] = notes->mappings[i];
	}
	notes->nr_mappings = kept;
}

void core_notes_clear(struct core_notes *notes)
{
	for (size_t i = 0; i < notes->nr_mappings; i++)
		free(notes->mappings[i].path);
	free(notes->mappings);
	free(notes->threads);
	*notes = (struct core_notes){0};
}
