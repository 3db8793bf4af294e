/*
 * Decodes the bytes of a sample into frames, names and a verdict.
 *
 * A decoder reads names, code and method entries while the target runs, and keeps this data for many samples. After a
 * sample was taken, the target may move objects that the sampled stack refers to (REASON_COMPACTED), or may free and
 * replace such objects (REASON_COLLECTED). So a decoder returns frames only if there is proof that the names of the
 * frames were right at the moment of the sample. The header ruby/resolve.h describes the possible proofs. For Ruby 2.1
 * and older, and for a garbage collector that is not Ruby's own, rbdump does not notice freed objects, because rbdump
 * cannot read the state of the garbage collector.
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
 * Drops the decoder's snapshot of the target's memory. After this call, the decoder reads the target's memory again,
 * and decoder_ruby() gives access to the new snapshot. If there is not enough memory, returns false and changes
 * nothing.
 */
bool decoder_look_again(struct decoder *decoder);

/*
 * Decodes a sample. The caller frees the `frames` of the result. The strings of the frames are valid until the next
 * call of decoder_decode(), because that call drops all strings if they take too much memory. The verdict of the result
 * depends on the checks that were made when the sample was taken, and on the decoder's own checks. For a sample from an
 * unchecked source (source.h), some checks are omitted (`unchecked` in ruby/ruby.h). If the names might have changed
 * since the sample was taken, the result has no frames. If `lacks_innermost` is set in the sample, the result does not
 * contain the innermost frame.
 *   holds  receives true if the stack is complete, and one of two conditions is true. Either the decoder already had
 *          all names, and they are known to be right for the moment of the sample (resolver_knows() in ruby/resolve.h).
 *          Or it is certain that no object to which the stack refers was freed or moved between the sample and the
 *          decoding. In all other cases, receives false. If `*holds` is true, every stack with the same fingerprint
 *          has the same frames until the next collection after the sample (see collections_same_objects())
 */
struct trace_thread decoder_decode(struct decoder *decoder, const struct sample *sample, bool *holds);

/* A `struct ruby` that reads the target through the decoder's snapshot. */
const struct ruby *decoder_ruby(const struct decoder *decoder);

#endif
