#include "target/thread_pointer.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "memory/memory.h"

/*
 * glibc's struct pthread on x86-64 begins with its own address, and has it again in its third word (tcbhead_t,
 * sysdeps/x86_64/nptl/tls.h). The robust list follows, after some 700 bytes in glibc 2.36 (nptl/descr.h). Further away, there
 * can be another one: ld.so leaves an old copy of the first thread's, which it has made while it loaded libraries.
 */
#define SEARCHED   2 /* pages: that of the list, and the one before */
#define REACH	   2048
#define ALIGNMENT  16
#define SELF_AGAIN 16

uint64_t thread_robust_list(pid_t tid)
{
	struct robust_list_head *head = NULL;
	size_t length;

	return syscall(SYS_get_robust_list, tid, &head, &length) == 0 ? (uint64_t)(uintptr_t)head : 0;
}

static uint64_t word_at(const uint8_t *bytes, size_t offset)
{
	uint64_t word;

	memcpy(&word, bytes + offset, sizeof(word));
	return word;
}

uint64_t thread_pointer(struct target *target, pid_t tid)
{
	const uint64_t list = thread_robust_list(tid), start = list / MEMORY_PAGE * MEMORY_PAGE - MEMORY_PAGE;
	const uint64_t pages[SEARCHED] = {start, start + MEMORY_PAGE};
	uint8_t bytes[SEARCHED * MEMORY_PAGE] = {0};
	bool read[SEARCHED] = {0};
	uint64_t found = 0;

	if (list < SEARCHED * MEMORY_PAGE)
		return 0;
	target_read_pages(target, pages, SEARCHED, bytes, read);
	for (uint64_t at = (list - REACH) / ALIGNMENT * ALIGNMENT;
	     at < list && at - start + SELF_AGAIN + 8 <= sizeof(bytes); at += ALIGNMENT) {
		if (word_at(bytes, at - start) != at || word_at(bytes, at - start + SELF_AGAIN) != at)
			continue;
		if (found != 0)
			return 0;
		found = at;
	}
	return found;
}
