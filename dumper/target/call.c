#include "target/call.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/signal_name.h"
#include "base/system_calls.h"
#include "base/text.h"
#include "memory/memory.h"
#include "target/call_events.h"
#include "target/call_forms.h"
#include "target/socket_address.h"

#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13 /* Linux 5.14 */
#endif

/* The most pages that one call's arguments may be on: all of CALL_FDS_COUNTED, and what surrounds them. */
#define PAGES 256

#define BITS_OF_WORD 64

/* What reads a call. */
struct reader {
	struct memory *memory; /* NULL: the memory must not be read */
	const uint64_t *of;    /* the arguments */
	bool same_clocks;
	struct call *call;
	bool no_memory;
};

void call_clear(struct call *call)
{
	for (size_t i = 0; i < call->nr_fds; i++)
		facts_clear(&call->fds[i].facts);
	free(call->fds);
	facts_clear(&call->facts);
	*call = (struct call){0};
}

size_t call_bytes(const struct call *call)
{
	size_t bytes = array_implied_capacity(call->nr_fds) * sizeof(*call->fds) + facts_bytes(&call->facts);

	for (size_t i = 0; i < call->nr_fds; i++)
		bytes += facts_bytes(&call->fds[i].facts);
	return bytes;
}

/* Reads memory of the target; notes if that fails. */
static bool read_bytes(struct reader *reader, uint64_t address, void *buffer, size_t length)
{
	const bool done = reader->memory && memory_read(reader->memory, address, buffer, length);

	reader->call->unread |= !done;
	return done;
}

static void add_fd(struct reader *reader, int fd, const char *role, const char *events)
{
	struct call *call = reader->call;

	if (call->nr_fds >= CALL_FDS_MAX) {
		call->nr_more++;
	} else if (!array_make_room_for_one(call->fds, call->nr_fds)) {
		reader->no_memory = true;
	} else {
		call->fds[call->nr_fds++] = (struct call_fd){.fd = fd, .role = role, .events = events};
	}
}

/* A descriptor in an argument: the kernel takes the lower half of the register. */
static void add_fd_argument(struct reader *reader, unsigned int which, const char *role)
{
	add_fd(reader, (int)reader->of[which], role, NULL);
}

static void set_object(struct reader *reader, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void set_object(struct reader *reader, const char *format, ...)
{
	char words[128];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(words, sizeof(words), format, arguments);
	va_end(arguments);
	facts_add_text(&reader->call->facts, "object", words);
}

/* A duration of the call; a negative one is none. */
static void set_duration(struct reader *reader, int64_t ns)
{
	if (ns < 0)
		return;
	reader->call->limit = CALL_FOR;
	reader->call->limit_ns = ns;
}

static void set_milliseconds(struct reader *reader, unsigned int which)
{
	set_duration(reader, (int64_t)(int)reader->of[which] * 1000000);
}

/* Reads a struct timespec, or a timeval, to which an argument points. False if there is none, or if it is invalid. */
static bool read_time(struct reader *reader, uint64_t address, int64_t ns_of_unit, int64_t *ret)
{
	int64_t words[2], seconds;

	if (address == 0)
		return false;
	if (!read_bytes(reader, address, words, sizeof(words)))
		return false;
	return words[0] >= 0 && words[1] >= 0 && !__builtin_mul_overflow(words[0], 1000000000LL, &seconds) &&
	       !__builtin_mul_overflow(words[1], ns_of_unit, ret) && !__builtin_add_overflow(seconds, *ret, ret);
}

static void set_timespec(struct reader *reader, unsigned int which)
{
	int64_t ns;

	if (read_time(reader, reader->of[which], 1, &ns))
		set_duration(reader, ns);
}

/* A point in time on a clock of the target. */
static void set_until(struct reader *reader, unsigned int which, clockid_t clock)
{
	struct call *call = reader->call;
	struct timespec now, real;
	int64_t at;

	if (!read_time(reader, reader->of[which], 1, &at))
		return;
	call->limit = CALL_UNTIL;
	clock_gettime(CLOCK_REALTIME, &real);
	if (clock == CLOCK_REALTIME) {
		call->has_until = true;
		call->until_ns = at;
	}
	if (!reader->same_clocks || clock_gettime(clock, &now) != 0)
		return;
	call->has_remaining = true;
	call->remaining_ns = at - (int64_t)ns_of(&now);
	if (!call->has_until)
		call->has_until = !__builtin_add_overflow((int64_t)ns_of(&real), call->remaining_ns, &call->until_ns);
}

static void read_poll(struct reader *reader)
{
	const uint64_t count = reader->of[1] < CALL_FDS_COUNTED ? reader->of[1] : CALL_FDS_COUNTED;

	for (uint64_t i = 0; i < count; i++) {
		struct pollfd one;

		if (!read_bytes(reader, reader->of[0] + i * sizeof(one), &one, sizeof(one)))
			return;
		/* A negative one is skipped (poll(2)). */
		if (one.fd >= 0)
			add_fd(reader, one.fd, NULL, call_events((uint32_t)(uint16_t)one.events));
	}
	/* The kernel refuses more than RLIMIT_NOFILE; the registers in a core may say anything. */
	if (reader->of[1] > count)
		reader->call->nr_more += reader->of[1] - count < INT32_MAX ? reader->of[1] - count : INT32_MAX;
}

/* Three sets of bits, for descriptors to read from, to write to, and with urgent data. */
static void read_select(struct reader *reader)
{
	static const uint32_t events[] = {POLLIN, POLLOUT, POLLPRI};
	const int count = (int)reader->of[0] < CALL_FDS_COUNTED ? (int)reader->of[0] : CALL_FDS_COUNTED;

	for (int first = 0; first < count; first += BITS_OF_WORD) {
		uint64_t words[3] = {0};

		for (unsigned int set = 0; set < 3; set++)
			if (reader->of[1 + set] != 0 && !read_bytes(reader, reader->of[1 + set] + (uint64_t)first / 8,
								    &words[set], sizeof(words[set])))
				return;
		for (int bit = 0; bit < BITS_OF_WORD && first + bit < count; bit++) {
			uint32_t wanted = 0;

			for (unsigned int set = 0; set < 3; set++)
				wanted |= words[set] >> bit & 1 ? events[set] : 0;
			if (wanted != 0)
				add_fd(reader, first + bit, NULL, call_events(wanted));
		}
	}
}

/* Adds a text of the target as a fact, and as the object of the action. */
static void set_object_text(struct reader *reader, const char *name, const char *before, const struct text *text)
{
	struct text object = {0};

	if (text->failed || !text->data)
		return;
	facts_add_text(&reader->call->facts, name, text->data);
	text_format(&object, "%s%s", before, text->data);
	if (object.data)
		facts_add_text(&reader->call->facts, "object", object.data);
	text_clear(&object);
}

/* An address that the call sends to. */
static void read_address(struct reader *reader, unsigned int which, unsigned int which_length)
{
	uint8_t bytes[sizeof(struct sockaddr_storage)] = {0};
	const uint64_t length = reader->of[which_length] < sizeof(bytes) ? reader->of[which_length] : sizeof(bytes);
	struct text text = {0};

	if (reader->of[which] == 0 || length == 0 || !read_bytes(reader, reader->of[which], bytes, (size_t)length))
		return;
	socket_address_add(&text, bytes, (size_t)length);
	set_object_text(reader, "to", "to ", &text);
	text_clear(&text);
}

static void read_path(struct reader *reader, unsigned int which)
{
	char path[4096];
	struct text text = {0};
	size_t length = 0;

	while (length < sizeof(path) && read_bytes(reader, reader->of[which] + length, path + length, 1) &&
	       path[length] != '\0')
		length++;
	text_add(&text, path, length);
	set_object_text(reader, "path", "", &text);
	text_clear(&text);
}

static void read_fcntl(struct reader *reader)
{
	const int command = (int)reader->of[1];

	add_fd_argument(reader, 0, NULL);
	reader->call->locks = command == F_SETLKW || command == F_OFD_SETLKW;
	if (command == F_SETLKW)
		reader->call->action = "waits for a lock (fcntl) on";
	else if (command == F_OFD_SETLKW)
		reader->call->action = "waits for an open file description lock (fcntl) on";
}

static void set_child(struct reader *reader, int64_t pid)
{
	facts_add_number(&reader->call->facts, "child", pid);
	reader->call->for_children = true;
	reader->call->child = (pid_t)pid;
	set_object(reader, "child %lld", (long long)pid);
}

static void set_any_child(struct reader *reader)
{
	reader->call->for_children = true;
	set_object(reader, "any child");
}

static void read_wait4(struct reader *reader)
{
	const int pid = (int)reader->of[0];

	if (pid > 0)
		set_child(reader, pid);
	else if (pid == -1)
		set_any_child(reader);
	else if (pid == 0)
		set_object(reader, "any child of its process group");
	else
		set_object(reader, "any child of process group %lld", -(long long)pid);
}

static void read_waitid(struct reader *reader)
{
	const int id = (int)reader->of[1];

	switch ((int)reader->of[0]) {
	case P_PID:
		set_child(reader, id);
		break;
	case P_PGID:
		set_object(reader, "any child of process group %d", id);
		break;
	case 3: /* P_PIDFD, Linux 5.4 */
		reader->call->action = "waits for the child of";
		add_fd(reader, id, NULL, NULL);
		break;
	default:
		set_any_child(reader);
	}
}

static void read_clock_sleep(struct reader *reader)
{
	if ((int)reader->of[1] & TIMER_ABSTIME)
		set_until(reader, 2, (clockid_t)(int)reader->of[0]);
	else
		set_timespec(reader, 2);
}

/* futex(2): FUTEX_WAIT has a duration, all others have a point in time. */
static void read_futex(struct reader *reader)
{
	const int operation = (int)reader->of[1], command = operation & FUTEX_CMD_MASK;
	clockid_t clock = operation & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC;

	set_object(reader, "futex 0x%llx", (unsigned long long)reader->of[0]);
	if (command == FUTEX_WAIT)
		set_timespec(reader, 3);
	else if (command == FUTEX_LOCK_PI)
		set_until(reader, 3, CLOCK_REALTIME);
	else if (command == FUTEX_WAIT_BITSET || command == FUTEX_WAIT_REQUEUE_PI || command == FUTEX_LOCK_PI2)
		set_until(reader, 3, clock);
}

/* The array has elements of 24 bytes: value, address, flags (futex(2), struct futex_waitv). */
static void read_futex_waitv(struct reader *reader)
{
	const uint32_t count = (uint32_t)reader->of[1];
	uint64_t first[2];

	if (count == 1 && read_bytes(reader, reader->of[0], first, sizeof(first)))
		set_object(reader, "futex 0x%llx", (unsigned long long)first[1]);
	else
		set_object(reader, "any of %u futexes", count);
	set_until(reader, 3, (clockid_t)(int)reader->of[4]);
}

static void read_signals(struct reader *reader)
{
	struct text text = {0};
	uint64_t set;

	if (read_bytes(reader, reader->of[0], &set, sizeof(set))) {
		call_add_signals(&text, set);
		set_object_text(reader, "signals", "one of the signals ", &text);
	} else {
		set_object(reader, "a signal");
	}
	text_clear(&text);
	set_timespec(reader, 2);
}

static void read_arguments(struct reader *reader, enum call_shape shape)
{
	switch (shape) {
	case CALL_PLAIN:
		break;
	case CALL_ON_FD:
		add_fd_argument(reader, 0, NULL);
		break;
	case CALL_FROM_TO:
		add_fd_argument(reader, 0, "from");
		add_fd_argument(reader, 1, "to");
		break;
	case CALL_TO_FROM:
		add_fd_argument(reader, 1, "from");
		add_fd_argument(reader, 0, "to");
		break;
	case CALL_FROM_AT_TO_AT:
		add_fd_argument(reader, 0, "from");
		add_fd_argument(reader, 2, "to");
		break;
	case CALL_SENDTO:
		add_fd_argument(reader, 0, NULL);
		read_address(reader, 4, 5);
		break;
	case CALL_CONNECT:
		add_fd_argument(reader, 0, NULL);
		read_address(reader, 1, 2);
		break;
	case CALL_FCNTL:
		read_fcntl(reader);
		break;
	case CALL_OPEN:
		read_path(reader, 0);
		break;
	case CALL_OPENAT:
		read_path(reader, 1);
		break;
	case CALL_POLL:
		read_poll(reader);
		set_milliseconds(reader, 2);
		break;
	case CALL_PPOLL:
		read_poll(reader);
		set_timespec(reader, 2);
		break;
	case CALL_SELECT:
	case CALL_PSELECT: {
		int64_t ns;

		read_select(reader);
		if (read_time(reader, reader->of[4], shape == CALL_SELECT ? 1000 : 1, &ns))
			set_duration(reader, ns);
		break;
	}
	case CALL_EPOLL:
		add_fd_argument(reader, 0, NULL);
		set_milliseconds(reader, 3);
		break;
	case CALL_EPOLL2:
		add_fd_argument(reader, 0, NULL);
		set_timespec(reader, 3);
		break;
	case CALL_WAIT4:
		read_wait4(reader);
		break;
	case CALL_WAITID:
		read_waitid(reader);
		break;
	case CALL_NANOSLEEP:
		set_timespec(reader, 0);
		break;
	case CALL_CLOCK_SLEEP:
		read_clock_sleep(reader);
		break;
	case CALL_FUTEX:
		read_futex(reader);
		break;
	case CALL_FUTEX_WAITV:
		read_futex_waitv(reader);
		break;
	case CALL_SIGWAIT:
		read_signals(reader);
		break;
	case CALL_SEMAPHORE:
		set_object(reader, "%d", (int)reader->of[0]);
		set_timespec(reader, 3);
		break;
	case CALL_QUEUE:
		set_object(reader, "%d", (int)reader->of[0]);
		break;
	case CALL_QUEUE_FD:
		add_fd_argument(reader, 0, NULL);
		set_until(reader, 4, CLOCK_REALTIME);
		break;
	}
}

bool call_read(struct target *target, const struct system_call *at, enum call_source source, struct call *ret)
{
	const struct call_form *form = call_form_of(at->number);
	struct reader reader = {.of = at->arguments, .same_clocks = source == CALL_OF_SLEEPER, .call = ret};

	*ret = (struct call){.at = *at, .name = system_call_name(at->number)};
	if (!form)
		return true;
	if (source != CALL_OF_STOPPED)
		reader.memory = memory_create(target_read_pages, target, PAGES);
	if (!reader.memory && source != CALL_OF_STOPPED)
		return false;
	ret->action = form->action;
	ret->locks = at->number == SYS_flock;
	ret->sleeps = form->shape == CALL_NANOSLEEP || form->shape == CALL_CLOCK_SLEEP;
	read_arguments(&reader, form->shape);
	memory_destroy(reader.memory);
	return !reader.no_memory && !ret->facts.failed;
}
