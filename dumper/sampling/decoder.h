/*
 * Decodes the bytes of a sample into frames, names and a verdict.
 *
 * A decoder reads names, code and method entries while the target runs, and keeps them for many samples. After a sample
 * was taken, objects that its stack refers to may have been moved (REASON_COMPACTED), or freed and replaced
 * (REASON_COLLECTED). So a decoder returns frames only if there is proof that their names were right at the moment of
 * the sample. The header ruby/resolve.h describes the possible proofs. For Ruby 2.1 and older, rbdump does not notice
 * freed objects, because it cannot read the state of the garbage collector.
 *
 * A decoder belongs to one thread of rbdump.
 */
#ifndef RBDUMP_DECODER_H
#define RBDUMP_DECODER_H

#include "sampling/source.h"
#include "session/session.h"
#include "trace/trace.h"

struct decoder;

/*
 * Creates a decoder for samples of a session's target. The session must outlive the decoder. Returns NULL if out of
 * memory.
 */
struct decoder *decoder_create(const struct session *session);
void decoder_destroy(struct decoder *decoder); /* NULL is fine */

/*
 * Drops the decoder's snapshot of the target. After this call, all data is read from the target again. This also
 * applies to reads through decoder_ruby(). If out of memory, returns false and changes nothing.
 */
bool decoder_look_again(struct decoder *decoder);

/*
 * Decodes a sample. The caller frees the `frames` of the result. The strings of the frames are valid until the next
 * call of decoder_decode(). That call drops all strings if they take too much memory. The verdict is the result of all
 * checks. For a sample from an unchecked source (source.h), some checks are omitted (`unchecked` in ruby/ruby.h). If
 * the names might have changed since the sample was taken, the result has no frames. If the sample lacks its innermost
 * frame (struct sample), the result does not have this frame.
 *   holds  receives true if the stack is complete, and if no object can have been freed or moved before the stack was
 *          decoded. Otherwise receives false. If `*holds` is true, every stack with the same fingerprint has the same
 *          frames until the next collection (see collections_same_objects())
 */
struct trace_thread decoder_decode(struct decoder *decoder, const struct sample *sample, bool *holds);

/* A `struct ruby` that reads the target through the decoder's snapshot. */
const struct ruby *decoder_ruby(const struct decoder *decoder);

#endif
