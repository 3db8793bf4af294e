/*
 * From the bytes of a sample to frames, names and a verdict.
 *
 * Names, code and method entries are read while the target goes on, and kept for many samples. Those of a sample are
 * known as of its moment, by one of the two proofs of decode/resolve.h; if they are not, there are none: what was seen
 * then may have been freed since, and another come to its place (REASON_COLLECTED), or have been moved
 * (REASON_COMPACTED). Of a Ruby that does not tell how often it has collected (until 2.1) only the latter is known.
 *
 * A decoder belongs to one thread of rbdump.
 */
#ifndef RBDUMP_DECODER_H
#define RBDUMP_DECODER_H

#include "sample/sampler.h"
#include "session/session.h"
#include "trace/trace.h"

struct decoder;

/* A decoder of samples of a session's target; the session must outlive it. NULL if out of memory. */
struct decoder *decoder_create(const struct session *session);
void decoder_destroy(struct decoder *decoder); /* NULL is fine */

/* What decoder_ruby() reads is the target as it is from now on. False if out of memory: then all is as it was. */
bool decoder_look_again(struct decoder *decoder);

/*
 * What a sample shows. Its `frames` are the caller's to free(); what they point to stays until the next
 * decoder_decode(), which begins anew when there is too much.
 * The verdict is that of all checks, but of a naive mode's sample that of none. Where it is not known whether the names
 * are those of what the sample refers to, there are no frames.
 *   holds  receives whether it is complete, and was read before anything could be freed or moved: each stack with the
 *          same fingerprint shows the same, as long as nothing is (collections_same_objects())
 */
struct trace_thread decoder_decode(struct decoder *decoder, const struct sample *sample, bool *holds);

/* The target as the decoder reads it. */
const struct ruby *decoder_ruby(const struct decoder *decoder);

#endif
