/*
 * Makes the frames of a flame graph that shows a counted heap (heap_count.h). Each outermost frame stands for the objects of
 * one age. The frames below it stand for the types of these objects. The frames below a type stand for the classes of the
 * objects of this type.
 */
#ifndef RBDUMP_COUNT_FLAMES_H
#define RBDUMP_COUNT_FLAMES_H

#include "heap/flames.h"
#include "heap/heap_count.h"

/*
 * Makes the frames. Reads the names of the classes from the target during this call, as histogram_make() does. If this Ruby
 * has no generations, live objects have no frame for their age. Returns false if there is not enough memory. Call
 * flames_clear() also after a failure.
 *   ruby  is used to read the names of the classes
 */
bool count_flames(const struct ruby *ruby, const struct heap_count *count, struct flames *ret);

#endif
