#include "mixed/merge.h"

struct merging {
	const struct merge_function *functions;
	size_t nr_functions, next_function;
	const struct merge_frame *frames;
	size_t nr_frames, next_frame;
	struct merge_item *ret;
	size_t count;
	bool handling; /* vm_exec() without the function that interprets code is an activation, too */
};

static void put_functions(struct merging *merging, size_t end)
{
	while (merging->next_function < end)
		merging->ret[merging->count++] = (struct merge_item){.native = true, .index = merging->next_function++};
}

static void put_frame(struct merging *merging)
{
	merging->ret[merging->count++] = (struct merge_item){.native = false, .index = merging->next_frame++};
}

static size_t count_groups(const struct merging *merging)
{
	size_t count = 0;

	for (size_t i = 0; i < merging->nr_frames; i++)
		count += merging->frames[i].kind == MERGE_RUBY && merging->frames[i].finish;
	return count;
}

/* Whether a function is vm_exec() while it handles an exception. It calls the function that interprets code else. */
static bool handles_exception(const struct merging *merging, size_t at)
{
	const struct merge_function *inner = at > 0 ? &merging->functions[at - 1] : NULL;

	return merging->functions[at].executes && !(inner && (inner->interprets || inner->executes));
}

static bool is_activation(const struct merging *merging, size_t at)
{
	return merging->functions[at].interprets || (merging->handling && handles_exception(merging, at));
}

static size_t count_activations(const struct merging *merging)
{
	size_t count = 0;

	for (size_t i = 0; i < merging->nr_functions; i++)
		count += is_activation(merging, i);
	return count;
}

/* Returns the number of activations, among them those that handle exceptions if each of these has a group. */
static size_t find_activations(struct merging *merging, size_t groups)
{
	size_t count = count_activations(merging);

	if (groups <= count)
		return count;
	merging->handling = true;
	if (count_activations(merging) > groups)
		merging->handling = false;
	return count_activations(merging);
}

/* The next activation from a function on; the number of functions if there is none. */
static size_t next_activation(const struct merging *merging, size_t from)
{
	while (from < merging->nr_functions && !is_activation(merging, from))
		from++;
	return from;
}

/*
 * Where the function is that implements a method in C: its innermost occurrence, because the method may be called by
 * itself through other methods. `end` if it is not there.
 */
static size_t find_function(const struct merging *merging, size_t frame, size_t end)
{
	const uint64_t function = merging->frames[frame].function;
	size_t at = merging->next_function;

	while (at < end && (function == 0 || merging->functions[at].start != function))
		at++;
	return at;
}

/* Where the functions end at most that run in a method in C whose own function is not there. */
static size_t end_of_unknown(const struct merging *merging, size_t end)
{
	size_t at = merging->next_function, limit = end;

	for (size_t i = merging->next_frame + 1; i < merging->nr_frames && limit == end; i++) {
		if (merging->frames[i].kind == MERGE_RUBY)
			break;
		limit = find_function(merging, i, end);
	}
	while (at < limit && !merging->functions[at].calls_c)
		at++;
	return at;
}

/* Puts the frame of a method in C, and before it the functions that run in it. */
static void put_cfunc(struct merging *merging, size_t end)
{
	const size_t at = find_function(merging, merging->next_frame, end);

	/* If it is not there, the method has left its frame to another function, or is just being called. */
	put_functions(merging, at < end ? at + 1 : end_of_unknown(merging, end));
	put_frame(merging);
}

/* Puts one group, up to the activation that runs its Ruby code, without it. */
static void put_group(struct merging *merging, size_t activation)
{
	while (merging->next_frame < merging->nr_frames && merging->frames[merging->next_frame].kind != MERGE_RUBY) {
		if (merging->frames[merging->next_frame].kind == MERGE_CFUNC)
			put_cfunc(merging, activation);
		else
			put_frame(merging);
	}
	put_functions(merging, activation);
	while (merging->next_frame < merging->nr_frames) {
		const struct merge_frame *frame = &merging->frames[merging->next_frame];

		put_frame(merging);
		if (frame->kind == MERGE_RUBY && frame->finish)
			return;
	}
}

/* Whether vm_exec() may not have begun yet with the innermost frame. */
static bool is_just_made(const struct merging *merging)
{
	return merging->nr_frames > 0 && merging->frames[0].kind == MERGE_RUBY && merging->frames[0].finish;
}

/* Of 1.9.3, no frame tells that an activation begins with it. Then nothing tells where native functions belong. */
static bool has_ruby_code(const struct merging *merging)
{
	for (size_t i = 0; i < merging->nr_frames; i++)
		if (merging->frames[i].kind == MERGE_RUBY)
			return true;
	return false;
}

bool merge_stacks(const struct merge_function *functions, size_t nr_functions, const struct merge_frame *frames,
		  size_t nr_frames, bool whole, struct merge_item *ret)
{
	struct merging merging = {
	    .functions = functions,
	    .nr_functions = nr_functions,
	    .frames = frames,
	    .nr_frames = nr_frames,
	    .ret = ret,
	};
	const size_t groups = count_groups(&merging), activations = find_activations(&merging, groups);
	/* The outermost group belongs to the outermost activation, if that is there. */
	size_t early = whole && groups > activations ? groups - activations : 0;
	size_t extra = whole && activations > groups ? activations - groups : 0;
	size_t activation = next_activation(&merging, 0);

	/* vm_exec() has not begun yet with a frame that was just made; or it is about to return. */
	for (size_t i = 0; i < early; i++)
		put_group(&merging, 0);
	for (size_t i = 0; i < extra; i++)
		activation = next_activation(&merging, activation + 1);
	for (size_t i = early; i < groups && (whole || activation < nr_functions); i++) {
		put_group(&merging, activation);
		put_functions(&merging, activation < nr_functions ? activation + 1 : nr_functions);
		activation = next_activation(&merging, merging.next_function);
	}
	/* Beyond the last group, or where the native stack was lost. */
	if (!whole)
		put_group(&merging, nr_functions);
	put_functions(&merging, nr_functions);
	while (merging.next_frame < nr_frames)
		put_frame(&merging);
	/* Without its end, it is not known whether the innermost group has its activation. */
	return (whole || !is_just_made(&merging)) && early <= (is_just_made(&merging) ? 1 : 0) && extra <= 1 &&
	       !(groups == 0 && activations > 0 && has_ruby_code(&merging));
}
