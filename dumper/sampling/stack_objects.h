/*
 * Copies the objects that the frames of a copied stack refer to: code, method entries, and environments on the heap.
 * The function stack_copy_lay() puts these objects, together with the stack, over a snapshot of the target's memory.
 */
#ifndef RBDUMP_STACK_OBJECTS_H
#define RBDUMP_STACK_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>

struct old_objects;
struct stack_copy;

/*
 * Copies the objects that the innermost `frames` frames of a stack refer to. `copy` must contain the whole stack. The
 * new objects replace the objects that `copy` contained before. Objects that cannot be read are omitted.
 *   old  a table of old objects and known frames (see old_objects_at()). Objects in this table are copied from the
 *        table, and not read from the target. Objects of known frames are not copied. If `old` is NULL, all objects are
 *        read from the target
 */
void stack_objects_copy(struct stack_copy *copy, size_t frames, const struct old_objects *old);

/*
 * Whether frames of this target can refer to the native stack. Frames of ZJIT refer to the native stack, which changes
 * as soon as the thread goes on.
 */
bool stack_objects_are_native(const struct stack_copy *copy);

/*
 * Whether rbdump tried to read any object from the target. An object that was read may differ from the object that was
 * at the same address when the stack was copied.
 */
bool stack_objects_are_read(const struct stack_copy *copy);

/*
 * Whether the objects of some frames were not copied, because these frames are known (known_frames.h). When the stack
 * was copied, the objects of known frames were already old objects (in the garbage collector's old generation).
 */
bool stack_objects_lack_known(const struct stack_copy *copy);

/*
 * Whether all readable objects were copied. The objects of known frames are not considered. Returns false if a limit
 * was reached: the limit on the number of objects, on their total size, or on the length of a chain of references.
 */
bool stack_objects_are_all(const struct stack_copy *copy);

#endif
