/*
 * The references of classes, modules and included modules (T_CLASS, T_MODULE, T_ICLASS), except RBasic.klass.
 *
 * Based on Ruby's sources, 2.5.0 to 4.0.5 and head: gc.c (gc_mark_children; since 3.4: rb_gc_mark_children; since 4.0:
 * gc_mark_classext_module and gc_mark_classext_iclass), internal/class.h, constant.h, id_table.c, vm_method.c. Up to Ruby
 * 2.4, id tables have other forms, so only some of the references are known. Up to 2.2, constants are in st_tables.
 *
 * References that Ruby does not mark are omitted: references to subclasses, references to the origin of a class, and
 * (up to Ruby 3.1) references to the class that includes a module.
 */
#ifndef RBDUMP_CLASS_REFS_H
#define RBDUMP_CLASS_REFS_H

#include "ruby/refs_walk.h"

/*
 * Calls `visit` for each reference of a T_CLASS or T_MODULE. For a method, a constant or a class variable, `name` of
 * struct object_ref is its ID. If the ID is from an id table, its scope bits are 0, because id tables do not contain
 * these bits. Up to Ruby 3.4, the instance variables of a class are in an st_table or in an array. If they are in an
 * st_table, `name` of an instance variable is its ID. If they are in an array, `name` is its index. Since Ruby 4.0, the
 * instance variables of a class are in a separate object, and `visit` is called for the reference to this object.
 * Returns whether all references are known.
 */
bool class_refs(struct refs_walk *walk);

/* Calls `visit` for each reference of a T_ICLASS. Returns whether all references are known. */
bool iclass_refs(struct refs_walk *walk);

/* Whether the layout has the members that class_refs_caches() needs. */
bool class_refs_caches_are_known(const struct layout *layout);

/*
 * Calls `visit` for each reference in a class's table of call caches. This table is an id table. Each of its values is
 * the address of a struct rb_class_cc_entries. Returns whether the whole table could be read.
 */
bool class_refs_caches(struct refs_walk *walk, uint64_t table);

/*
 * A sentence that says which references of classes are not known, and which member of the layout is missing; NULL if all
 * references are known.
 */
const char *class_refs_lack(const struct layout *layout);

#endif
