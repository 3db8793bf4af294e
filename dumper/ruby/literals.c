#include "ruby/literals.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "ruby/code.h"

/* How much code is looked at: the levels that enclose one frame, and the total. */
#define MAX_NESTING 256u
#define MAX_CODE    200000u

/* The most that are kept. There are six literals; the linker may have left several copies of each. */
#define MAX_FOUND 64u

static const char *const labels[] = {"<main>", "<compiled>", "singleton class", "<top (required)>", NULL};

/*
 * "<main>" can also be a path: that of an eval with TOPLEVEL_BINDING before the main script is loaded (vm.c, Init_VM).
 * The linker merges equal literals of one file (ld(1)), so that path was already found as a label.
 */
static const char *const paths[] = {"(eval)", "<compiled>", NULL};

struct search {
	uint64_t low, high;
	bool for_paths; /* else for labels */
	struct literals *found;
	size_t left;
	uint64_t last; /* the last code that was looked at, with everything that encloses it */
	bool no_memory;
};

static void add(struct search *search, struct bytes bytes, const char *const *known)
{
	struct literals *found = search->found;

	if (bytes.address < search->low || bytes.address >= search->high || found->count >= MAX_FOUND)
		return;
	for (size_t i = 0; i < found->count; i++)
		if (found->pieces[i].address == bytes.address)
			return;
	while (*known && strlen(*known) != bytes.length)
		known++;
	if (!*known)
		return;
	if (!array_make_room(found->pieces, found->capacity, found->count + 1)) {
		search->no_memory = true;
		return;
	}
	found->pieces[found->count++] =
	    (struct memory_piece){.address = bytes.address, .length = bytes.length, .data = (const uint8_t *)*known};
}

/* Looks at code, and at the code that encloses it, from which labels are made (label.c). */
static void look_at(struct search *search, const struct ruby *ruby, uint64_t iseq)
{
	struct access access = ruby_access(ruby);
	struct code code;

	if (iseq == search->last)
		return;
	search->last = iseq;
	for (size_t i = 0; i < MAX_NESTING && iseq != 0 && search->left > 0; i++, search->left--) {
		if (!code_read(&access, iseq, &code))
			return;
		if (search->for_paths)
			add(search, code.path, paths);
		else
			add(search, code.label, labels);
		iseq = code.parent != 0 || code.local == code.iseq ? code.parent : code.local;
	}
}

static int by_address(const void *a, const void *b)
{
	const struct memory_piece *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

bool literals_find(const struct ruby *ruby, const struct stack *stacks, size_t count, uint64_t low, uint64_t high,
		   struct literals *ret)
{
	bool enough = true;

	*ret = (struct literals){0};
	for (int pass = 0; pass < 2 && enough; pass++) {
		struct search search = {
		    .low = low, .high = high, .for_paths = pass > 0, .found = ret, .left = MAX_CODE};

		for (size_t i = 0; i < count; i++)
			for (size_t j = 0; j < stacks[i].nr_frames; j++)
				look_at(&search, ruby, stacks[i].frames[j].iseq);
		enough = !search.no_memory;
	}
	if (ret->count > 0)
		qsort(ret->pieces, ret->count, sizeof(*ret->pieces), by_address);
	return enough;
}

void literals_clear(struct literals *literals)
{
	free(literals->pieces);
	*literals = (struct literals){0};
}
