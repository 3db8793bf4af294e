#include "record/candidates.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"

/*
 * An exec during the first look can go unnoticed (vfork), so a second look follows. Later looks are rare: one every
 * REST_NS, or every REST_EACH_NS times the number of candidates if that is longer.
 */
#define SECOND_LOOK_NS UINT64_C(500000000)

/* How long it takes until a candidate that was excluded is considered again. */
#define EXCLUDED_NS  UINT64_C(2000000000)
#define REST_NS	     UINT64_C(2000000000)
#define REST_EACH_NS UINT64_C(1000000000)

/* How often all candidates are checked for an exec, whatever the kernel has reported. */
#define READ_NS UINT64_C(1000000000)

/* How many more files rbdump must be able to open. Otherwise, the memory of a candidate is not kept open. */
#define FREE_FILES 64u

/* The most programs that are remembered. */
#define PROGRAMS_MAX 4096u

static void forget(struct candidate *of)
{
	if (of->memory_fd >= 0)
		close(of->memory_fd);
	of->memory_fd = -1;
}

void candidates_clear(struct candidate_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		forget(&list->of[i]);
	free(list->of);
	free(list->programs);
	*list = (struct candidate_list){0};
}

/* Opens its memory, and finds an address that is mapped. */
static void open_memory(struct candidate *of)
{
	struct rlimit limit;
	char path[64];
	unsigned long start;
	FILE *maps;

	forget(of);
	snprintf(path, sizeof(path), "/proc/%d/mem", of->pid);
	of->memory_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (of->memory_fd < 0)
		return;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && (rlim_t)of->memory_fd + FREE_FILES > limit.rlim_cur) {
		forget(of);
		return;
	}
	snprintf(path, sizeof(path), "/proc/%d/maps", of->pid);
	maps = fopen(path, "re");
	if (!maps || fscanf(maps, "%lx-", &start) != 1)
		forget(of);
	else
		of->address = start;
	if (maps)
		fclose(maps);
}

static bool program_of(pid_t pid, struct program *ret)
{
	struct stat status;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	if (stat(path, &status) != 0)
		return false;
	*ret = (struct program){.device = status.st_dev, .inode = status.st_ino};
	return true;
}

static bool has_become_another(const struct candidate *of)
{
	struct program program;
	char byte;

	if (of->memory_fd >= 0)
		return pread(of->memory_fd, &byte, 1, (off_t)of->address) == 0;
	return program_of(of->pid, &program) &&
	       (program.device != of->program.device || program.inode != of->program.inode);
}

static bool is_known(const struct candidate_list *list, const struct program *program)
{
	for (size_t i = 0; i < list->nr_programs; i++)
		if (list->programs[i].device == program->device && list->programs[i].inode == program->inode)
			return true;
	return false;
}

/* If there is no room, the program stays unknown: each of its processes is looked at. */
static void note_program(struct candidate_list *list, pid_t pid)
{
	struct program program;

	if (!program_of(pid, &program) || is_known(list, &program) || list->nr_programs == PROGRAMS_MAX)
		return;
	if (!array_make_room(list->programs, list->programs_capacity, list->nr_programs + 1))
		return;
	list->programs[list->nr_programs++] = program;
}

static uint64_t rest_of(const struct candidate_list *list)
{
	uint64_t all = REST_EACH_NS * list->count;

	return all > REST_NS ? all : REST_NS;
}

/* Sets when to look at a candidate that is new, or runs another program than before. */
static void plan(struct candidate_list *list, struct candidate *of, uint64_t now_ns)
{
	struct program program = {0};
	bool known;

	open_memory(of);
	known = program_of(of->pid, &program) && is_known(list, &program);
	of->program = program;
	/* After vfork, memory and program may still be the parent's: they are read once more later. */
	of->again_ns = of->fresh ? now_ns + SECOND_LOOK_NS : 0;
	/* If a process of its program was no Ruby, this one is none either, unless it loads Ruby later. */
	of->fresh &= !known;
	of->looks = known ? 1 : 0;
	of->due_ns = now_ns + (known ? rest_of(list) + REST_EACH_NS * ((uint64_t)of->pid % (list->count + 1)) : 0);
}

/* The index of that pid, or where to insert it. */
static size_t place_of(const struct candidate_list *list, pid_t pid)
{
	return array_first(list->of, list->count, candidate, candidate->pid >= pid);
}

static struct candidate *find(struct candidate_list *list, pid_t pid, uint64_t started)
{
	const size_t at = place_of(list, pid);

	return at < list->count && list->of[at].pid == pid && list->of[at].started == started ? &list->of[at] : NULL;
}

void candidates_execed(struct candidate_list *list, pid_t pid)
{
	const size_t at = place_of(list, pid);

	if (at < list->count && list->of[at].pid == pid)
		list->of[at].execed = true;
}

void candidates_begin(struct candidate_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		list->of[i].there = false;
}

bool candidates_see(struct candidate_list *list, pid_t pid, uint64_t started, bool fresh, uint64_t now_ns)
{
	struct candidate *of = find(list, pid, started);
	size_t at = list->count;

	if (of) {
		of->there = true;
		return true;
	}
	if (!array_make_room(list->of, list->capacity, list->count + 1))
		return false;
	for (; at > 0 && list->of[at - 1].pid > pid; at--)
		list->of[at] = list->of[at - 1];
	list->count++;
	list->of[at] =
	    (struct candidate){.pid = pid, .started = started, .memory_fd = -1, .fresh = fresh, .there = true};
	plan(list, &list->of[at], now_ns);
	return true;
}

void candidates_sweep(struct candidate_list *list, bool ask_all, uint64_t now_ns)
{
	size_t kept = 0;

	ask_all |= now_ns - list->read_ns >= READ_NS;
	if (ask_all)
		list->read_ns = now_ns;
	for (size_t i = 0; i < list->count; i++) {
		struct candidate *of = &list->of[i];

		if (!of->there && !of->looked_at) {
			forget(of);
			continue;
		}
		/*
		 * Memory that was opened between vfork and exec is the parent's, and can still be read. So `execed` is also
		 * checked.
		 */
		if (!of->looked_at && (of->execed || (ask_all && has_become_another(of)))) {
			of->fresh = true;
			plan(list, of, now_ns);
		} else if (!of->looked_at && of->again_ns != 0 && now_ns >= of->again_ns) {
			plan(list, of, now_ns);
		}
		of->execed &= of->looked_at;
		list->of[kept++] = *of;
	}
	list->count = kept;
}

/* The next candidate that is due; NULL if there is none. Fresh candidates come first. */
static struct candidate *first_due(const struct candidate_list *list, uint64_t now_ns)
{
	struct candidate *first = NULL;

	for (size_t i = 0; i < list->count; i++) {
		struct candidate *of = &list->of[i];

		if (!of->looked_at && of->due_ns <= now_ns && (!first || (of->fresh && !first->fresh)))
			first = of;
	}
	return first;
}

struct candidate *candidates_next(struct candidate_list *list, uint64_t now_ns)
{
	struct candidate *first;
	struct program program;

	/* If another process of its program was looked at meanwhile, it is not due. */
	while ((first = first_due(list, now_ns)) && first->looks == 0 && program_of(first->pid, &program) &&
	       is_known(list, &program))
		plan(list, first, now_ns);
	return first;
}

void candidates_postpone(struct candidate *candidate, uint64_t now_ns)
{
	candidate->due_ns = now_ns + EXCLUDED_NS;
}

void candidates_is_none(struct candidate_list *list, pid_t pid, uint64_t started, bool no_ruby, uint64_t now_ns)
{
	struct candidate *of = find(list, pid, started);

	if (!of)
		return;
	of->looked_at = false;
	/* The memory may have been the parent's, before an exec (vfork). What is opened now is its own. */
	if (of->looks++ == 0 && !has_become_another(of)) {
		if (no_ruby)
			note_program(list, pid);
		open_memory(of);
		of->due_ns = now_ns + SECOND_LOOK_NS;
	} else {
		of->due_ns = now_ns + rest_of(list);
	}
	of->fresh = false;
}

void candidates_drop(struct candidate_list *list, pid_t pid, uint64_t started)
{
	struct candidate *of = find(list, pid, started);

	if (of)
		of->there = of->looked_at = false;
}
