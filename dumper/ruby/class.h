/*
 * Names of classes and modules, and the class part of method names. Based on Ruby's sources, 1.9.3 to 4.0.5 and head:
 * variable.c (classname, rb_mod_name0), class.c (singleton classes), eval.c (rb_mod_refine), internal/class.h.
 */
#ifndef RBDUMP_CLASS_H
#define RBDUMP_CLASS_H

#include "ruby/ruby.h"
#include "ruby/value.h"

/*
 * Whether a layout says where Ruby keeps class paths. If this Ruby has no struct member for class paths, rbdump also
 * needs Ruby's table of symbols (ruby->symbols) to find a class path.
 */
bool class_has_paths(const struct layout *layout);

/*
 * Reads the class path of a class or module. The path can be temporary ("#<Class:0x…>::Foo").
 *   ret        receives the bytes of the path; `ret->address` is 0 if the class has no class path
 *   permanent  receives whether the path is permanent (the path of a constant)
 * Sets access->failed if the class cannot be read.
 */
void class_path(const struct ruby *ruby, struct access *access, uint64_t klass, struct bytes *ret, bool *permanent);

/*
 * The address of a class's rb_classext_struct. Since Ruby 3.2, the rb_classext_struct can be in the slot of the class,
 * behind the struct RClass.
 */
uint64_t class_ext(struct access *access, uint64_t klass);

/* Whether `klass` is a singleton class. */
bool class_is_singleton(struct access *access, uint64_t klass);

/* The object that the singleton class `klass` belongs to. */
uint64_t class_attached_object(const struct ruby *ruby, struct access *access, uint64_t klass);

/*
 * Appends the prefix that Ruby 3.4 and later print before the name of a method: "Owner#" or "Owner." (vm_backtrace.c,
 * rb_gen_method_name). Appends nothing if the owner's path is not permanent.
 */
void class_add_ruby_prefix(const struct ruby *ruby, struct access *access, uint64_t owner, struct text *text);

/*
 * Appends a prefix for any owner of a method, for example "Foo#", "Foo.", "#<refinement Foo of Bar>#",
 * "#<instance of Foo>#", "#<singleton of Foo>.", "#<anonymous subclass of Foo>#" or "#<anonymous module>#". One form
 * can contain another: "#<instance of #<anonymous subclass of Foo>>#". The prefix contains no addresses, so names from
 * different processes can be compared. Appends nothing if the owner cannot be read.
 */
void class_add_prefix(const struct ruby *ruby, struct access *access, uint64_t owner, struct text *text);

/*
 * The class of an object, as Object#class returns it: the first class that is neither a singleton class nor an included
 * module (object.c, rb_class_real). The search begins at `klass` itself, and goes up the hierarchy. Returns 0 if there
 * is no such class, or if a class in the hierarchy cannot be read.
 *   klass  RBasic.klass of the object
 */
uint64_t class_real(struct access *access, uint64_t klass);

/*
 * The first class above `klass` that is neither a singleton class nor an included module. Returns 0 if there is no such
 * class, or if a class in the hierarchy cannot be read.
 */
uint64_t class_real_superclass(struct access *access, uint64_t klass);

/*
 * The value of the instance variable `name` of a class. Returns 0 if the class has no instance variable of that name.
 * Searches at most 256 instance variables. If the variable is not among these 256, but the class may have more, sets
 * access->failed. Up to Ruby 3.1, the rb_classext_struct of a class has a table of the class's instance variables. The
 * keys of this table are IDs. In Ruby 3.2, the shape of the class says where each instance variable is. For later
 * releases, the function always returns 0: see class_ivars_in_order().
 */
uint64_t class_ivar(const struct ruby *ruby, struct access *access, uint64_t klass, const char *name);

/*
 * Since 3.3: the address of the values of a class's own instance variables. The values are in the order in which the
 * variables were first set. Returns 0 if the class has no instance variables.
 */
uint64_t class_ivars_in_order(struct access *access, uint64_t klass);

/*
 * Appends the name of a class or module, in the forms that class_add_prefix() uses, but without "#" at the end. For the
 * singleton class of Foo, appends "#<singleton of Foo>". Appends nothing if the class cannot be read.
 */
void class_add_name(const struct ruby *ruby, struct access *access, uint64_t klass, struct text *text);

#endif
