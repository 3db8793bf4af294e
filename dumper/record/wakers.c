#include "record/wakers.h"

#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "target/process_stat.h"

/* A name is read again after so long: the process may have ended, and another one may have its id. */
#define READ_NS UINT64_C(1000000000)

/* The kernel's name of a process; "" if it is not known. */
static const char *name_of(struct wakers *wakers, pid_t pid)
{
	const size_t at = (size_t)pid % WAKERS;
	const uint64_t now_ns = monotonic_ns();
	struct process_stat stat;

	if (wakers->of[at].pid == pid && now_ns - wakers->of[at].read_ns < READ_NS)
		return wakers->of[at].name;
	/* If it has ended by now, its name is still the right one. */
	if (wakers->of[at].pid != pid)
		wakers->of[at].name[0] = '\0';
	wakers->of[at].pid = pid;
	wakers->of[at].read_ns = now_ns;
	if (process_stat_read("/proc", pid, &stat))
		memcpy(wakers->of[at].name, stat.name, sizeof(wakers->of[at].name));
	return wakers->of[at].name;
}

uint32_t wakers_find(struct wakers *wakers, struct profile *tables, pid_t pid, pid_t tid)
{
	const char *name = name_of(wakers, pid);
	struct text text = {0};
	struct profile_waker waker = {.pid = pid, .tid = tid};
	uint32_t index;

	/* It may be any bytes. */
	text_add(&text, name, strlen(name));
	waker.name = name[0] != '\0' ? profile_string(tables, text.data) : NULL;
	text_clear(&text);
	index = profile_add_waker(tables, &waker);
	return index == UINT32_MAX ? 0 : index + 1;
}
