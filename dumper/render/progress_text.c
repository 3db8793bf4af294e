#include <time.h>

#include "base/text.h"
#include "render/identity.h"
#include "render/text_parts.h"

/* So many threads that have ended are named. */
#define GONE_NAMED 12

void text_put_look(const struct trace_look *look, const struct palette *palette, FILE *stream)
{
	char words[64] = "";
	struct tm local;

	if (look->number == 0)
		return;
	if (localtime_r(&look->time.tv_sec, &local))
		strftime(words, sizeof(words), " at %Y-%m-%d %H:%M:%S", &local);
	fprintf(stream, "%sLook %u%s%s", palette->bold, look->number, palette->reset, words);
	if (look->before > 0)
		fprintf(stream, ", %.2f s after look %u", (double)look->since_ns / 1e9, look->before);
	fputc('\n', stream);
}

void text_put_gone(const struct trace_look *look, const struct palette *palette, FILE *stream)
{
	if (look->nr_gone == 0)
		return;
	fprintf(stream, "%sEnded since look %u:%s", palette->bold, look->before, palette->reset);
	for (size_t i = 0; i < look->nr_gone && i < GONE_NAMED; i++) {
		const struct trace_thread thread = {.tid = look->gone[i].tid, .name = look->gone[i].name};

		fputs(i > 0 ? ", thread" : " thread", stream);
		identity_print(&thread, false, stream);
	}
	if (look->nr_gone > GONE_NAMED)
		fprintf(stream, " and %zu more", look->nr_gone - GONE_NAMED);
	fputc('\n', stream);
}

void text_put_cpu(uint64_t ns, size_t count, FILE *stream)
{
	fprintf(stream, "; %.2f s CPU%s", (double)ns / 1e9, count > 1 ? " together" : "");
}

void text_put_progress(const struct trace_progress *progress, size_t count, const struct palette *palette, FILE *stream)
{
	static const struct {
		const char *one, *several;
	} words[] = {
	    [MOVED_NOT_ASKED] = {NULL, NULL},
	    [MOVED_NEW] = {"new", "new"},
	    [MOVED_NOT] = {"has not moved", "have not moved"},
	    [MOVED_SAME_STACK] = {"same stack", "same stack"},
	    [MOVED_YES] = {"moved", "moved"},
	    [MOVED_NOT_KNOWN] = {"not known whether it has moved", "not known whether they have moved"},
	};
	const char *said = count > 1 ? words[progress->moved].several : words[progress->moved].one;

	if (!said)
		return;
	fprintf(stream, "; %s%s%s", progress->moved == MOVED_NOT ? palette->bold : "", said,
		progress->moved == MOVED_NOT ? palette->reset : "");
	if (progress->has_cpu)
		text_put_cpu(progress->cpu_ns, count, stream);
}
