/*
 * Describes an object or a reference in a few words. rbdump prints these descriptions where it shows an object, or a
 * path to an object. No code of the target runs, so the `inspect` methods of the target are not called.
 */
#ifndef RBDUMP_OBJECT_TEXT_H
#define RBDUMP_OBJECT_TEXT_H

#include "base/text.h"
#include "ruby/object_refs.h"

/* At most this many bytes of a String are shown. */
#define OBJECT_TEXT_BYTES 60

/*
 * Appends a description of any VALUE, for example `42`, `:name`, `"text" 0x7f0012345678`,
 * `nil`, `Array (3 entries) 0x7f0012345678`, `Foo 0x7f0012345678`, `class Foo 0x7f0012345678`.
 */
void object_add_text(const struct ruby *ruby, struct access *access, uint64_t value, struct text *text);

/*
 * Appends the place of a reference in its object, for example `@name`, `[3]`, `[:key]`, `constant Foo::BAR`, `class`.
 *   from   the object that has the reference
 *   ivars  as read by ivars_read()
 */
void object_add_ref(const struct ruby *ruby, struct access *access, struct ivars *ivars, uint64_t from,
		    const struct object_ref *ref, struct text *text);

#endif
