/*
 * Each process of a recording has a table of nodes. The functions of this header find the node of an observation's
 * stack in this table, and decode new stacks. They remember the nodes of cached stacks (sampling/stack_cache.h) and of
 * the stacks in slots (sampling/time_line.h), so that these stacks are not decoded again.
 */
#ifndef RBDUMP_STACK_NODES_H
#define RBDUMP_STACK_NODES_H

#include "recording/profile.h"
#include "sampling/decoder.h"
#include "sampling/observation.h"

/* A stack of a recording. */
struct stack_node {
	uint32_t node;
	uint8_t verdict;
	/*
	 * Why the names of the stack's frames are not known. REASON_NONE if the names are known, or if a new copy of
	 * the stack would not help to find the names.
	 */
	enum reason unnamed;
};

struct stack_nodes;

struct stack_nodes *stack_nodes_create(void);	     /* NULL if there is not enough memory */
void stack_nodes_destroy(struct stack_nodes *nodes); /* NULL is fine */

/*
 * Finds the node of an observation's stack. If `seen->keeps` is set, also remembers this node for the slot `seen->kept`.
 * If there is not enough memory, the node is 0, or the native frames are missing from the stack. In both cases,
 * stack_nodes_failed() returns true from then on.
 *   tables  the tables of the recording; nodes are added if needed
 *   last    the previous stack of the same thread; the result is this stack if `seen->same` is set
 */
struct stack_node stack_nodes_find(struct stack_nodes *nodes, struct profile *tables, struct decoder *decoder,
				   const struct observation *seen, const struct stack_node *last);
bool stack_nodes_failed(const struct stack_nodes *nodes);

/*
 * Returns whether rbdump reads names too late. There are two possible causes. First, because of garbage collections,
 * rbdump could not read the names of the frames in many recent stacks. Second, compaction may have moved objects to
 * which the stack of `node` refers. `node` is the result of stack_nodes_find() for a new stack.
 */
bool stack_nodes_are_late(const struct stack_nodes *nodes, const struct stack_node *node);

/* Forgets the nodes of cached stacks. Call this function if the process has called exec. */
void stack_nodes_forget(struct stack_nodes *nodes);

/*
 * When a recording gets new tables, the remembered nodes get new numbers. stack_nodes_save() copies the old numbers to
 * `ret`. stack_nodes_count() returns how many numbers stack_nodes_save() copies. stack_nodes_restore() takes the new
 * numbers from `from`, in the same order.
 */
size_t stack_nodes_count(void);
void stack_nodes_save(const struct stack_nodes *nodes, uint32_t *ret);
void stack_nodes_restore(struct stack_nodes *nodes, const uint32_t *from);

#endif
