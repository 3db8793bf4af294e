#include "render/identity.h"

#include "base/text.h"

void identity_print(const struct trace_thread *thread, bool with_ractor, FILE *stream)
{
	if (thread->tid != 0)
		fprintf(stream, " %d", thread->tid);
	if (thread->main)
		fputs(" (main)", stream);
	if (thread->name) {
		fputs(" \"", stream);
		text_print(thread->name, stream);
		fputc('"', stream);
	}
	if (with_ractor)
		fprintf(stream, " of ractor %llu", (unsigned long long)thread->ractor);
}
