#include "record/execs.h"

#include <stdlib.h>
#include <unistd.h>

#include "sampling/perf_ring.h"

/* Room for the reports of one CPU: about 1,000 execs in a tenth of a second. */
#define RECORDS_BYTES ((size_t)16 * 4096)

struct execs {
	size_t count;
	struct perf_ring of[]; /* one per CPU */
};

static bool open_cpu(int cpu, struct perf_ring *ret)
{
	struct perf_event_attr attributes = {
	    .comm = 1, .comm_exec = 1, .wakeup_watermark = RECORDS_BYTES, /* nobody waits for it */
	};

	return perf_ring_open(&attributes, -1, cpu, RECORDS_BYTES, ret);
}

struct execs *execs_create(void)
{
	const long configured = sysconf(_SC_NPROCESSORS_CONF), online = sysconf(_SC_NPROCESSORS_ONLN);
	struct execs *execs;

	if (configured <= 0)
		return NULL;
	execs = calloc(1, sizeof(*execs) + (size_t)configured * sizeof(execs->of[0]));
	if (!execs)
		return NULL;
	for (int cpu = 0; cpu < configured; cpu++)
		execs->count += open_cpu(cpu, &execs->of[execs->count]);
	/* An offline CPU has no event; all others must have one. */
	if (execs->count > 0 && (long)execs->count >= online)
		return execs;
	execs_destroy(execs);
	return NULL;
}

void execs_destroy(struct execs *execs)
{
	if (!execs)
		return;
	for (size_t i = 0; i < execs->count; i++)
		perf_ring_close(&execs->of[i]);
	free(execs);
}

static bool take_of_cpu(const struct perf_ring *ring, execs_told *told, void *context)
{
	struct perf_told record;
	bool all = true;

	while (perf_ring_take(ring, &record)) {
		all &= record.type != 0 && record.type != PERF_RECORD_LOST;
		if (record.type == PERF_RECORD_COMM && record.misc & PERF_RECORD_MISC_COMM_EXEC)
			told(context, record.pid);
	}
	return all;
}

bool execs_take(struct execs *execs, execs_told *told, void *context)
{
	bool all = execs != NULL;

	for (size_t i = 0; execs && i < execs->count; i++)
		all &= take_of_cpu(&execs->of[i], told, context);
	return all;
}
