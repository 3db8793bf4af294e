/*
 * Finds the method's own name in the name of a frame (ruby/label.h).
 */
#ifndef RBDUMP_METHOD_NAME_H
#define RBDUMP_METHOD_NAME_H

/*
 * The last part of "Owner#name", "Owner.name" or "name"; NULL for code within a method, such as "block in Owner#name". The
 * result is a part of `name`.
 */
const char *method_name_of(const char *name);

#endif
