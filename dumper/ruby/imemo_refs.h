#ifndef RBDUMP_IMEMO_REFS_H
#define RBDUMP_IMEMO_REFS_H
#include "ruby/object_refs.h"
static inline bool imemo_refs(struct refs_walk *walk)
{
	(void)walk;
	return false;
}
#endif
