/*
 * Finds the name of a method, without the method's owner, in the name of a frame (ruby/label.h).
 */
#ifndef RBDUMP_METHOD_NAME_H
#define RBDUMP_METHOD_NAME_H

/*
 * The last part of a frame's name: "foo" for "Owner#foo", "Owner.foo" or "foo". NULL for code within a method, such as
 * "block in Owner#foo". The result is a part of `name`.
 */
const char *method_name_of(const char *name);

#endif
