/*
 * Names of classes and modules, and which of them own a method. Facts: variable.c (classname, rb_mod_name0), class.c
 * (singleton classes), eval.c (rb_mod_refine), internal/class.h, 1.9.3 to 4.0.5 and
 * head.
 */
#ifndef RBDUMP_CLASS_H
#define RBDUMP_CLASS_H

#include "decode/text.h"
#include "vm/ruby.h"

/* Whether a layout says where class paths are. If they have no slot of their own, it takes a symbol table, too. */
bool class_has_paths(const struct layout *layout);

/*
 * Reads the class path of a class or module, which may be no more than a temporary one ("#<Class:0x…>::Foo").
 *   ret        its bytes; none if it has no name
 *   permanent  whether it is a constant's name, for ever
 * Fails the read if the class cannot be read.
 */
void class_path(const struct ruby *ruby, struct access *access, uint64_t klass, struct bytes *ret, bool *permanent);

/* Whether `klass` is a singleton class, and of which object. */
bool class_is_singleton(struct access *access, uint64_t klass);
uint64_t class_attached_object(const struct ruby *ruby, struct access *access, uint64_t klass);

/*
 * Appends "Owner#" or "Owner." as Ruby itself does since 3.4 (vm_backtrace.c, rb_gen_method_name): only if the owner's
 * path is permanent, else nothing.
 */
void class_add_ruby_prefix(const struct ruby *ruby, struct access *access, uint64_t owner, struct text *text);

/*
 * Appends the same for every owner, without addresses, so that names can be compared between processes:
 * "Foo#", "Foo.", "#<refinement Foo of Bar>#", "#<instance of Foo>#", "#<singleton of Foo>.", "#<anonymous subclass of
 * Foo>#",
 * "#<anonymous module>#", nested as needed. Nothing if the owner cannot be read.
 */
void class_add_prefix(const struct ruby *ruby, struct access *access, uint64_t owner, struct text *text);

#endif
