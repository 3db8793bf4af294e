/*
 * The frames of a heap that was counted (heap_count.h): the age of objects, their type, and their class.
 */
#ifndef RBDUMP_COUNT_FLAMES_H
#define RBDUMP_COUNT_FLAMES_H

#include "heap/flames.h"
#include "heap/heap_count.h"

/*
 * Makes the frames. The names of the classes are read now, as for histogram_make(). If this Ruby has no generations, live
 * objects have no age. The caller always calls flames_clear(). Returns false if there is not enough memory.
 *   ruby  for the names of the classes
 */
bool count_flames(const struct ruby *ruby, const struct heap_count *count, struct flames *ret);

#endif
