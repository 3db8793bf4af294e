#ifndef RBDUMP_CLASS_REFS_H
#define RBDUMP_CLASS_REFS_H
#include "ruby/object_refs.h"
static inline bool class_refs(struct refs_walk *walk)
{
	(void)walk;
	return false;
}
static inline bool iclass_refs(struct refs_walk *walk)
{
	(void)walk;
	return false;
}
#endif
