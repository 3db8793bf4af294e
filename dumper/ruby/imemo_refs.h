/*
 * The references of internal objects (T_IMEMO): environments, lexical scopes, method entries, code, caches and others.
 *
 * Based on Ruby's sources, 2.3.0 to 4.0.5 and head: imemo.c (rb_imemo_mark_and_move; up to 3.3 gc.c, gc_mark_imemo; up
 * to 2.4: gc.c, gc_mark_children), internal/imemo.h (up to 2.7: internal.h), method.h, vm_callinfo.h.
 *
 * Two kinds of references are not known: the references of a syntax tree (imemo_ast) that is not compiled yet; and, up to
 * 3.3, the references of an imemo_parser_strterm (the end of a string that is being parsed). Since 4.0, the instance
 * variables in an imemo_fields are known only if the address of rb_shape_tree is known.
 *
 * References that Ruby does not mark are omitted: the class of a call cache; and since 3.3 the method entry of a call
 * cache, unless the cache is for super or for a refinement.
 */
#ifndef RBDUMP_IMEMO_REFS_H
#define RBDUMP_IMEMO_REFS_H

#include "ruby/refs_walk.h"

/*
 * Gives the references of a T_IMEMO. Some words are REF_CONSERVATIVE: the words of a C function's temporary memory
 * (imemo_tmpbuf), and words whose meaning only a C function knows (the data of imemo_ifunc, the third word of
 * imemo_memo). Ruby's collector, too, takes such a word for a reference only if the word is the address of an
 * object. Returns whether all references are known.
 */
bool imemo_refs(struct refs_walk *walk);

#endif
