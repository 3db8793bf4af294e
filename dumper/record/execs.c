#include "record/execs.h"

#include <linux/perf_event.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A page for the kernel to tell where it is, and some for what it tells: of about 1,000 execs in a tenth of a second.
 */
#define PAGE	      ((size_t)4096)
#define RECORDS_BYTES (16 * PAGE)
#define MAPPED_BYTES  (PAGE + RECORDS_BYTES)

/* What a CPU tells. */
struct of_cpu {
	int fd;
	struct perf_event_mmap_page *page;
};

struct execs {
	size_t count;
	struct of_cpu of[];
};

static bool open_cpu(int cpu, struct of_cpu *ret)
{
	struct perf_event_attr attributes = {
	    .size = sizeof(attributes),
	    .type = PERF_TYPE_SOFTWARE,
	    .config = PERF_COUNT_SW_DUMMY,
	    .comm = 1,
	    .comm_exec = 1,
	    .exclude_kernel = 1,
	    .exclude_hv = 1,
	    .watermark = 1,
	    .wakeup_watermark = RECORDS_BYTES, /* nobody waits for it */
	};
	void *page;

	ret->fd = (int)syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (ret->fd < 0)
		return false;
	page = mmap(NULL, MAPPED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, ret->fd, 0);
	if (page != MAP_FAILED) {
		ret->page = page;
		return true;
	}
	close(ret->fd);
	return false;
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
	/* One that is offline has no event: but all others must tell. */
	if (execs->count > 0 && (long)execs->count >= online)
		return execs;
	execs_destroy(execs);
	return NULL;
}

void execs_destroy(struct execs *execs)
{
	if (!execs)
		return;
	for (size_t i = 0; i < execs->count; i++) {
		munmap(execs->of[i].page, MAPPED_BYTES);
		close(execs->of[i].fd);
	}
	free(execs);
}

/* A record begins at a multiple of eight bytes, as the ring does: its first words are in one piece. */
struct record {
	struct perf_event_header header;
	uint32_t pid, tid; /* of PERF_RECORD_COMM */
};

static bool take_of_cpu(struct perf_event_mmap_page *page, execs_told *told, void *context)
{
	const uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	bool all = true;
	struct record record;

	for (uint64_t at = page->data_tail; at < head; at += record.header.size) {
		memcpy(&record, (const char *)page + PAGE + at % RECORDS_BYTES, sizeof(record));
		all &= record.header.size >= sizeof(record) && record.header.type != PERF_RECORD_LOST;
		if (record.header.size < sizeof(record))
			break;
		if (record.header.type == PERF_RECORD_COMM && record.header.misc & PERF_RECORD_MISC_COMM_EXEC)
			told(context, (pid_t)record.pid);
	}
	__atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
	return all;
}

bool execs_take(struct execs *execs, execs_told *told, void *context)
{
	bool all = execs != NULL;

	for (size_t i = 0; execs && i < execs->count; i++)
		all &= take_of_cpu(execs->of[i].page, told, context);
	return all;
}
