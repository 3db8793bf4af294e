/*
 * From the bytes of a sample to frames, names and a verdict.
 *
 * Names, code and method entries are read while the target goes on, and kept for many samples, until a collection of
 * garbage begins: that may free them, or move them, and others come to be where they were (vm/collections.h). If one
 * has moved objects between the moment at which a sample was taken and the end of reading its names, there are none.
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

/*
 * Forgets all that was read of the target. The strings of every trace_thread that decoder_decode() gave are gone.
 * False if out of memory: then nothing is forgotten.
 */
bool decoder_refresh(struct decoder *decoder);

/*
 * What a sample shows. Its `frames` are the caller's to free(); what they point to stays until decoder_refresh(), or
 * the next decoder_decode(), which refreshes where names do not fit what was read before.
 * The verdict is that of all checks, but of a naive mode's sample that of none; REASON_COMPACTED has no frames.
 */
struct trace_thread decoder_decode(struct decoder *decoder, const struct sample *sample);

/* The target as the decoder reads it. */
const struct ruby *decoder_ruby(const struct decoder *decoder);

#endif
