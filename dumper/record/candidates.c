#include "record/candidates.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* One look more after the first, which nothing can happen behind the back of; then seldom, and seldom in all. */
#define SECOND_LOOK_NS UINT64_C(500000000)
#define REST_NS	       UINT64_C(2000000000)
#define REST_EACH_NS   UINT64_C(1000000000)

/* After so long the memory of all is read, whoever is said to have called exec. */
#define READ_NS UINT64_C(1000000000)

/* So many programs are known at most: they are a machine's own. */
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

/* Opens its memory, and finds a place that it has some at. */
static void open_memory(struct candidate *of)
{
	char path[64];
	unsigned long start;
	FILE *maps;

	forget(of);
	snprintf(path, sizeof(path), "/proc/%d/mem", of->pid);
	of->memory_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (of->memory_fd < 0)
		return;
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

/* Without room it is looked at as if it was not known. */
static void note_program(struct candidate_list *list, pid_t pid)
{
	struct program program;

	if (!program_of(pid, &program) || is_known(list, &program) || list->nr_programs == PROGRAMS_MAX)
		return;
	if (list->nr_programs == list->programs_capacity) {
		size_t more = list->programs_capacity ? list->programs_capacity * 2 : 16;
		struct program *grown = reallocarray(list->programs, more, sizeof(*grown));

		if (!grown)
			return;
		list->programs = grown;
		list->programs_capacity = more;
	}
	list->programs[list->nr_programs++] = program;
}

static uint64_t rest_of(const struct candidate_list *list)
{
	uint64_t all = REST_EACH_NS * list->count;

	return all > REST_NS ? all : REST_NS;
}

/* When it is to be looked at, being new, or another program than before. */
static void plan(struct candidate_list *list, struct candidate *of, uint64_t now_ns)
{
	struct program program = {0};
	bool known;

	open_memory(of);
	known = program_of(of->pid, &program) && is_known(list, &program);
	of->program = program;
	/* Its memory, and what it runs, may be its parent's still (vfork): that is looked up once more. */
	of->again_ns = of->fresh ? now_ns + SECOND_LOOK_NS : 0;
	/* One is as the first one of its program was, unless it loads Ruby later. */
	of->fresh &= !known;
	of->looks = known ? 1 : 0;
	of->due_ns = now_ns + (known ? rest_of(list) + REST_EACH_NS * ((uint64_t)of->pid % (list->count + 1)) : 0);
}

/* Where it is, or would be. */
static size_t place_of(const struct candidate_list *list, pid_t pid)
{
	size_t low = 0, high = list->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (list->of[middle].pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
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
	if (list->count == list->capacity) {
		size_t more = list->capacity ? list->capacity * 2 : 64;
		struct candidate *grown = reallocarray(list->of, more, sizeof(*grown));

		if (!grown)
			return false;
		list->of = grown;
		list->capacity = more;
	}
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
		/* What was opened between vfork and exec is the memory of its parent, which goes on. */
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

struct candidate *candidates_next(struct candidate_list *list, uint64_t now_ns)
{
	struct candidate *first = NULL;

	/* One that is fresh does not wait for those that were always there. */
	for (size_t i = 0; i < list->count; i++) {
		struct candidate *of = &list->of[i];
		struct program program;

		if (of->looked_at || of->due_ns > now_ns)
			continue;
		/* While it waited for its turn, another one of its program was looked at. */
		if (of->looks == 0 && program_of(of->pid, &program) && is_known(list, &program))
			plan(list, of, now_ns);
		else if (!first || (of->fresh && !first->fresh))
			first = of;
	}
	return first;
}

void candidates_is_none(struct candidate_list *list, pid_t pid, uint64_t started, bool no_ruby, uint64_t now_ns)
{
	struct candidate *of = find(list, pid, started);

	if (!of)
		return;
	of->looked_at = false;
	/* The memory may have been its parent's, before an exec (vfork): what is opened now is its own. */
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
