/*
 * Finds the node of an observation's stack in the tables of a recording: decodes a new stack, and remembers the nodes
 * of cached and kept stacks.
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
	enum reason unnamed; /* why the names of the stack are not known, if a new copy may help; else REASON_NONE */
};

struct stack_nodes;

struct stack_nodes *stack_nodes_create(void);	     /* NULL if out of memory */
void stack_nodes_destroy(struct stack_nodes *nodes); /* NULL is fine */

/*
 * Finds the node of an observation's stack. If the observation keeps the stack in a slot, remembers the node for the
 * slot.
 *   tables  the tables of the recording; nodes are added if needed
 *   last    the previous stack of the thread, which the observation may have, too (`same`) If out of memory, the node
 *           is 0, and stack_nodes_failed() is true from then on.
 */
struct stack_node stack_nodes_find(struct stack_nodes *nodes, struct profile *tables, struct decoder *decoder,
				   const struct observation *seen, const struct stack_node *last);
bool stack_nodes_failed(const struct stack_nodes *nodes);

/*
 * Whether names are found too late: garbage collections have taken the names of many recent stacks, or the objects of
 * this stack were moved. `node` is the result for an observation with a new stack.
 */
bool stack_nodes_are_late(const struct stack_nodes *nodes, const struct stack_node *node);

/* Forgets the nodes of cached stacks. Call this function if the process has called exec. */
void stack_nodes_forget(struct stack_nodes *nodes);

/*
 * For new tables: the number of nodes that are remembered. stack_nodes_save() copies them to `ret`, and
 * stack_nodes_restore() replaces them by their numbers in the new tables.
 */
size_t stack_nodes_count(void);
void stack_nodes_save(const struct stack_nodes *nodes, uint32_t *ret);
void stack_nodes_restore(struct stack_nodes *nodes, const uint32_t *from);

#endif
