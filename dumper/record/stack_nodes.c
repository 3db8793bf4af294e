#include "record/stack_nodes.h"

#include <stdlib.h>
#include <string.h>

#include "record/stacks.h"
#include "sampling/time_line.h"

/*
 * If collections take the names of more than this share of the stacks, as a mean over about so many stacks, names are found
 * too late: other stacks wait for theirs.
 */
#define COLLECTED_MANY	 0.2
#define COLLECTED_STACKS 50.0

/* The node of a cached stack (sampling/stack_cache.h). */
struct result {
	uint64_t epoch; /* 0: none */
	uint32_t node;
	uint8_t verdict;
};

/* A stack that is kept (sampling/time_line.h). */
struct kept_stack {
	uint32_t node;
	uint8_t verdict;
};

struct stack_nodes {
	struct result results[CACHE_MAX];
	struct kept_stack kept[TIME_SLOTS];
	struct stacks_functions functions;
	double collected; /* the mean share of stacks whose names a collection has taken */
	bool failed;
};

struct stack_nodes *stack_nodes_create(void)
{
	return calloc(1, sizeof(struct stack_nodes));
}

void stack_nodes_destroy(struct stack_nodes *nodes)
{
	free(nodes);
}

bool stack_nodes_failed(const struct stack_nodes *nodes)
{
	return nodes->failed;
}

void stack_nodes_forget(struct stack_nodes *nodes)
{
	memset(nodes->results, 0, sizeof(nodes->results));
	nodes->functions = (struct stacks_functions){0};
}

/* Whether the frames of a stack are shown. */
static bool is_shown(int verdict)
{
	return verdict == VERDICT_COMPLETE || verdict == VERDICT_TRUNCATED;
}

/* What is shown instead of a stack. */
static struct stack_node mark(struct stack_nodes *nodes, struct profile *tables, const char *what, enum reason reason)
{
	struct stack_node ret = {.node = stacks_add_mark(tables, what, reason), .verdict = VERDICT_UNREADABLE};

	nodes->failed |= ret.node == UINT32_MAX;
	if (ret.node == UINT32_MAX)
		ret.node = 0;
	return ret;
}

static struct stack_node unreadable(struct stack_nodes *nodes, struct profile *tables, enum reason reason)
{
	return mark(nodes, tables, validate_verdict_name(VERDICT_UNREADABLE), reason);
}

/* Keeps the node of a decoded stack if what is shown of it will decode to the same frames whenever it is seen again. */
static struct stack_node keep_result(struct stack_nodes *nodes, struct profile *tables, const struct observation *seen,
				     struct stack_node decoded, bool holds)
{
	const bool is_new = seen->stack.id >= CACHE_MAX || nodes->results[seen->stack.id].node != decoded.node;

	if (seen->sample->cache.remote && is_shown(decoded.verdict) && is_new) {
		/* The words match a stale entry, but decode to other frames: it may be a mixture of two stacks. */
		stack_cache_reject(seen->cache, seen->stack);
		return unreadable(nodes, tables, REASON_COLLECTED);
	}
	if (holds && seen->stack.id < CACHE_MAX) {
		nodes->results[seen->stack.id] =
		    (struct result){.epoch = seen->stack.epoch, .node = decoded.node, .verdict = decoded.verdict};
		stack_cache_confirm(seen->cache, seen->stack);
	}
	return decoded;
}

static struct stack_node decode(struct stack_nodes *nodes, struct profile *tables, struct decoder *decoder,
				const struct observation *seen)
{
	bool holds;
	struct trace_thread stack = decoder_decode(decoder, seen->sample, &holds);
	const bool is_mixed = seen->mixed && is_shown(stack.verdict);
	struct stack_node ret = {
	    .node = is_mixed ? stacks_add_mixed(tables, &nodes->functions, &stack, seen->mixed)
			     : stacks_add(tables, &nodes->functions, &stack),
	    .verdict = (uint8_t)stack.verdict,
	};

	if (seen->sample->lacks_innermost && is_shown(stack.verdict) && ret.node != UINT32_MAX) {
		ret.node = stacks_add_window(tables, ret.node);
		ret.verdict = VERDICT_TRUNCATED;
	}
	free(stack.frames);
	if (ret.node != UINT32_MAX) {
		ret = keep_result(nodes, tables, seen, ret, holds);
	} else {
		nodes->failed = true;
		ret = (struct stack_node){.verdict = VERDICT_UNREADABLE};
	}
	if (stack.reason == REASON_COMPACTED || stack.reason == REASON_COLLECTED)
		ret.unnamed = stack.reason;
	nodes->collected += ((ret.unnamed == REASON_COLLECTED) - nodes->collected) / COLLECTED_STACKS;
	return ret;
}

/* The node of a stack that was decoded before. */
static struct stack_node recall(struct stack_nodes *nodes, struct profile *tables, struct cached_stack stack)
{
	const struct result *result = &nodes->results[stack.id];
	struct stack_node ret;

	if (result->epoch == stack.epoch)
		return (struct stack_node){.node = result->node, .verdict = result->verdict};
	ret = mark(nodes, tables, "unreadable", REASON_NONE);
	ret.unnamed = REASON_COLLECTED;
	return ret;
}

/* A stack was lost before it could be decoded. */
static struct stack_node lost(struct stack_nodes *nodes, struct profile *tables)
{
	struct stack_node ret = unreadable(nodes, tables, REASON_LOST);

	ret.unnamed = REASON_LOST;
	return ret;
}

/* The stack of a slot. */
static struct stack_node of_slot(struct stack_nodes *nodes, struct profile *tables, uint32_t slot)
{
	if (slot >= TIME_SLOTS)
		return unreadable(nodes, tables, REASON_NOT_SAMPLED);
	return (struct stack_node){.node = nodes->kept[slot].node, .verdict = nodes->kept[slot].verdict};
}

/* Adds the native frames inside of a stack. */
static void add_native(struct stack_nodes *nodes, struct profile *tables, const struct inner_functions *native,
		       struct stack_node *to)
{
	const uint32_t node = stacks_add_native(tables, &nodes->functions, to->node, native);

	nodes->failed |= node == UINT32_MAX;
	if (node != UINT32_MAX)
		to->node = node;
}

struct stack_node stack_nodes_find(struct stack_nodes *nodes, struct profile *tables, struct decoder *decoder,
				   const struct observation *seen, const struct stack_node *last)
{
	struct stack_node ret = *last;

	if (seen->of_kept)
		ret = of_slot(nodes, tables, seen->kept);
	else if (seen->sample)
		ret = decode(nodes, tables, decoder, seen);
	else if (seen->lost)
		ret = lost(nodes, tables);
	else if (!seen->same)
		ret = recall(nodes, tables, seen->stack);
	if (seen->native && is_shown(ret.verdict))
		add_native(nodes, tables, seen->native, &ret);
	if (seen->keeps)
		nodes->kept[seen->kept] = (struct kept_stack){.node = ret.node, .verdict = ret.verdict};
	return ret;
}

bool stack_nodes_are_late(const struct stack_nodes *nodes, const struct stack_node *node)
{
	return node->unnamed == REASON_COMPACTED || nodes->collected > COLLECTED_MANY;
}

size_t stack_nodes_count(void)
{
	return CACHE_MAX + TIME_SLOTS;
}

void stack_nodes_save(const struct stack_nodes *nodes, uint32_t *ret)
{
	for (size_t i = 0; i < CACHE_MAX; i++)
		ret[i] = nodes->results[i].node;
	for (size_t i = 0; i < TIME_SLOTS; i++)
		ret[CACHE_MAX + i] = nodes->kept[i].node;
}

void stack_nodes_restore(struct stack_nodes *nodes, const uint32_t *from)
{
	for (size_t i = 0; i < CACHE_MAX; i++)
		nodes->results[i].node = from[i];
	for (size_t i = 0; i < TIME_SLOTS; i++)
		nodes->kept[i].node = from[CACHE_MAX + i];
	nodes->functions = (struct stacks_functions){0};
}
