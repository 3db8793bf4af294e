#include "sampling/kernel_threads.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/watchdog.h"
#include "ruby/collections.h"
#include "sampling/subjects.h"
#include "sampling/thread_state.h"

/* How much of the target is read for a list of its threads (64 MiB), and for how long. */
#define LIST_PAGES    16384u
#define LIST_LIMIT_NS 500000000L

/* How much is read of one thread. */
#define FOUND_PAGES 64u

/* How often the list is read. If it could not be read, it is read again after BROKEN_NS, and each time after twice as long. */
#define LIST_NS	  UINT64_C(4000000000)
#define BROKEN_NS UINT64_C(10000000)

/*
 * For a thread that is not known: a new one may run before Ruby has noted its native thread, or it may be no Ruby
 * thread at all. So the list is read so often, and each time after twice as long.
 */
#define TRIES	 4u
#define AGAIN_NS UINT64_C(2000000)

/*
 * How many stacks of threads that leave their CPU are copied per second, on average, for each way of leaving it: of all
 * threads, as a multiple of the rate; and of one thread at least.
 */
#define WAITS_PER_SAMPLE 1.0
#define WAITS_MIN	 4.0

/* Over how many seconds it is averaged how often threads leave their CPU. A tenth of a second may be without any request. */
#define LEAVES_S 3.0

bool kernel_threads_init(struct kernel_threads *threads, const struct session *session, struct time_slots *slots)
{
	*threads = (struct kernel_threads){.session = session, .slots = slots, .ruby = session->ruby};
	threads->memory = threads->ruby.memory = memory_create(target_read_pages, session->target, LIST_PAGES);
	return threads->memory;
}

static void forget(struct kernel_threads *threads, struct kernel_follow *follow)
{
	if (!follow->ended)
		kernel_maps_forget_thread(&threads->maps, follow->subject.tid);
	subject_close(&follow->subject);
	time_slots_release(threads->slots, follow->wait_slot);
	time_line_clear(&follow->line);
}

void kernel_threads_clear(struct kernel_threads *threads)
{
	for (size_t i = 0; i < threads->count; i++)
		forget(threads, &threads->of[i]);
	free(threads->of);
	memory_destroy(threads->memory);
	*threads = (struct kernel_threads){0};
}

struct kernel_follow *kernel_threads_find(const struct kernel_threads *threads, pid_t tid, uint64_t address,
					  uint64_t time_ns)
{
	for (size_t i = 0; i < threads->count; i++) {
		struct kernel_follow *follow = &threads->of[i];

		if (follow->subject.tid == tid && !follow->ended && follow->since_ns <= time_ns &&
		    (address == 0 || follow->thread.address == address))
			return follow;
	}
	return NULL;
}

void kernel_threads_end(struct kernel_threads *threads, struct kernel_follow *follow, uint64_t time_ns)
{
	uint64_t known;

	time_line_end(&follow->line, time_ns);
	follow->ended = true;
	/* By now, the program may know that the native thread runs another one. */
	known = kernel_maps_thread(&threads->maps, follow->subject.tid).thread;
	if (known == follow->thread.address)
		kernel_maps_forget_thread(&threads->maps, follow->subject.tid);
	else if (known == 0)
		/* If there still is an entry, it says which thread has ended. */
		kernel_maps_forget_chances(&threads->maps, follow->subject.tid);
}

/*
 * Whether an entry is that of a thread of a list. A thread with another native thread is another one.
 *   exactly  false: what is not known of the native thread may be anything
 */
static bool is_entry_of(const struct kernel_follow *follow, const struct ruby_thread *thread, bool exactly)
{
	const struct ruby_thread *known = &follow->thread;

	return !follow->ended && known->address == thread->address &&
	       (known->tid == thread->tid || (!exactly && known->tid == 0)) &&
	       (known->pthread == thread->pthread || (!exactly && known->pthread == 0));
}

/*
 * The entry of a thread of a list; NULL if it has none. When a thread that the program has found was read, Ruby may not
 * have noted its native thread yet.
 */
static struct kernel_follow *entry_of(const struct kernel_threads *threads, const struct ruby_thread *thread)
{
	for (int exactly = 1; exactly >= 0; exactly--)
		for (size_t i = 0; i < threads->count; i++)
			if (is_entry_of(&threads->of[i], thread, exactly))
				return &threads->of[i];
	return NULL;
}

void kernel_threads_open(const struct kernel_threads *threads, struct kernel_follow *follow)
{
	if (follow->subject.task.tid == 0)
		task_open(&follow->subject.task, threads->session->target->pid, follow->subject.tid);
}

/* What a thread does by the kernel's word; SAMPLE_CPU if it runs, or could. */
static enum sample_state look_at(const struct kernel_threads *threads, struct kernel_follow *follow,
				 enum trace_state listed, int *syscall)
{
	struct task_look look;
	enum sample_state state;

	kernel_threads_open(threads, follow);
	look = task_look(&follow->subject.task, NULL);
	state = thread_state(listed, &look, false);
	*syscall = state == SAMPLE_BLOCKED ? look.syscall : -1;
	return look.known && look.asleep ? state : SAMPLE_CPU;
}

/* An entry for a thread, which has no time line yet. NULL if there is no room. */
static struct kernel_follow *add(struct kernel_threads *threads, const struct ruby_thread *thread, pid_t tid,
				 uint64_t since_ns)
{
	struct kernel_follow *follow;

	if (!array_make_room(threads->of, threads->capacity, threads->count + 1))
		return NULL;
	follow = &threads->of[threads->count++];
	*follow =
	    (struct kernel_follow){.thread = *thread, .since_ns = since_ns, .wait_slot = TIME_NONE, .chances = {1, 1}};
	follow->subject = (struct subject){
	    .tid = tid,
	    .task = TASK_CLOSED,
	    .extent = {.thread = thread->address, .ec = thread->ec},
	    .pthread = thread->pthread,
	};
	return follow;
}

/* Begins to follow a thread of a list. NULL if its native thread is not known, or if there is no room. */
static struct kernel_follow *begin(struct kernel_threads *threads, const struct ruby_thread *thread)
{
	const pid_t tid = subject_tid(threads->session, thread);
	const uint64_t since_ns = monotonic_ns();
	struct kernel_follow *follow;
	struct kernel_thread known;
	enum sample_state state;
	int syscall;

	if (tid == 0)
		return NULL;
	/* The program may have found it already. */
	known = kernel_maps_thread(&threads->maps, tid);
	if (known.thread != thread->address && !kernel_maps_set_thread(&threads->maps, tid, thread->address))
		return NULL;
	follow = add(threads, thread, tid, since_ns);
	if (!follow)
		return NULL;
	follow->lost = known.thread == thread->address ? (uint32_t)known.lost : 0;
	follow->collections = threads->collections;
	state = look_at(threads, follow, thread->state, &syscall);
	time_line_init(&follow->line, threads->slots, monotonic_ns(), state, syscall);
	return follow;
}

/* Reads a thread as it is now: the list of threads may be seconds old. Without memory, only its address is known. */
static struct ruby_thread read_now(const struct kernel_threads *threads, uint64_t address, uint64_t *collections)
{
	struct memory *memory = memory_create(target_read_pages, threads->session->target, FOUND_PAGES);
	struct ruby_thread thread = {.address = address};
	struct ruby ruby = threads->ruby;

	*collections = 0;
	if (!memory)
		return thread;
	ruby.memory = memory;
	watchdog_reads(READING_STACKS);
	*collections = collections_read(&ruby).begun;
	thread = threads_read_one(&ruby, address);
	thread.ractor = threads_ractor(&ruby, address);
	watchdog_has_read(READING_STACKS);
	memory_destroy(memory);
	return thread;
}

/*
 * Reads a thread that the program in the kernel has found. If it has ended since, there may be another one at its
 * address: then nothing is known of it but the address.
 */
static struct ruby_thread read_found(const struct kernel_threads *threads, pid_t tid, uint64_t address,
				     uint64_t *collections)
{
	const struct ruby_thread unknown = {.address = address, .ractor = 1};
	const struct ruby_thread thread = read_now(threads, address, collections);

	if (thread.state == STATE_DEAD || thread.ractor == 0 ||
	    kernel_maps_thread(&threads->maps, tid).thread != address)
		return unknown;
	return thread;
}

/*
 * Ends the threads that a native thread has run before a time and before `next`. Returns that time; or if more of these
 * threads is known, the end of that.
 */
static uint64_t end_before(struct kernel_threads *threads, pid_t tid, uint64_t time_ns,
			   const struct kernel_follow *next)
{
	for (size_t i = 0; i < threads->count; i++) {
		struct kernel_follow *follow = &threads->of[i];

		if (follow == next || follow->subject.tid != tid || follow->since_ns > time_ns)
			continue;
		if (!follow->ended) {
			time_line_end(&follow->line, time_ns);
			follow->ended = true;
		}
		time_ns = follow->line.at_ns > time_ns ? follow->line.at_ns : time_ns;
	}
	return time_ns;
}

struct kernel_follow *kernel_threads_found(struct kernel_threads *threads, pid_t tid, uint64_t address,
					   uint64_t time_ns, bool reads)
{
	struct kernel_follow *follow = kernel_threads_find(threads, tid, address, UINT64_MAX);
	struct ruby_thread thread = {.address = address, .ractor = 1};
	uint64_t collections = 0;

	/* The list was read after the record was written. */
	if (follow && (follow->taken || follow->since_ns <= time_ns))
		return NULL;
	time_ns = end_before(threads, tid, time_ns, follow);
	if (follow) {
		time_line_clear(&follow->line);
	} else {
		if (reads)
			thread = read_found(threads, tid, address, &collections);
		thread.main = address == threads->main;
		follow = add(threads, &thread, tid, time_ns);
		if (!follow)
			return NULL;
		follow->collections = collections;
	}
	follow->since_ns = time_ns;
	follow->lost = 0;
	time_line_init(&follow->line, threads->slots, time_ns, SAMPLE_CPU, -1);
	return follow;
}

void kernel_threads_lose(struct kernel_threads *threads, uint64_t until_ns, bool is_now)
{
	for (size_t i = 0; i < threads->count; i++) {
		struct kernel_follow *follow = &threads->of[i];
		struct kernel_thread known;
		enum trace_state listed;
		enum sample_state state;
		uint64_t collections;
		int syscall;

		if (follow->ended)
			continue;
		known = kernel_maps_thread(&threads->maps, follow->subject.tid);
		if (known.thread == follow->thread.address && (uint32_t)known.lost == follow->lost)
			continue;
		time_line_lose(&follow->line, until_ns);
		if (!is_now)
			continue;
		/* The record of its end was lost. */
		if (known.thread != follow->thread.address) {
			kernel_threads_end(threads, follow, until_ns);
			continue;
		}
		follow->lost = (uint32_t)known.lost;
		listed = read_now(threads, follow->thread.address, &collections).state;
		/* As in kernel_process_state(). */
		if (listed == STATE_UNKNOWN && layout_has(threads->ruby.layout, F_thread_gvl_node))
			listed = STATE_BLOCKED;
		state = look_at(threads, follow, listed, &syscall);
		time_line_correct(&follow->line, until_ns, state, syscall, known.out_ns);
	}
}

/* Notes that the threads that are not in a list have ended. */
static void end_unlisted(struct kernel_threads *threads, const struct ruby_threads *list)
{
	for (size_t i = 0; i < threads->count; i++)
		threads->of[i].listed = false;
	for (size_t i = 0; i < list->count; i++) {
		struct kernel_follow *follow = entry_of(threads, &list->threads[i]);

		/* The main thread ends only with its native thread (kernel/threads.bpf.h, has_ended()). */
		if (follow && list->threads[i].ec != 0 && (list->threads[i].state != STATE_DEAD || follow->thread.main))
			follow->listed = true;
	}
	for (size_t i = 0; i < threads->count; i++) {
		struct kernel_follow *follow = &threads->of[i];

		if (follow->listed)
			follow->gone_ns = 0;
		else if (follow->gone_ns == 0 && list->missing == LIST_COMPLETE)
			follow->gone_ns = threads->listed_ns;
	}
}

void kernel_threads_end_gone(struct kernel_threads *threads, uint64_t until_ns)
{
	for (size_t i = 0; i < threads->count; i++) {
		struct kernel_follow *follow = &threads->of[i];

		/* One that was found since the list was read is not gone. */
		if (follow->gone_ns == 0 || follow->ended || follow->gone_ns > until_ns)
			continue;
		if (follow->since_ns < follow->gone_ns)
			kernel_threads_end(threads, follow, follow->line.at_ns);
		follow->gone_ns = 0;
	}
}

/* Follows the threads of a list, and no others. Those that have ended come first: a new one may have the tid of one of them. */
static void follow_all(struct kernel_threads *threads, const struct ruby_threads *list)
{
	end_unlisted(threads, list);
	for (size_t i = 0; i < list->count; i++) {
		const struct ruby_thread *thread = &list->threads[i];
		struct kernel_follow *follow = entry_of(threads, thread);

		if (thread->state == STATE_DEAD || thread->ec == 0)
			continue;
		if (!follow)
			follow = begin(threads, thread);
		if (!follow)
			continue;
		follow->thread = *thread;
		follow->subject.pthread = thread->pthread;
		if (follow->subject.extent.ec == 0)
			follow->subject.extent.ec = thread->ec;
		threads->main = thread->main ? thread->address : threads->main;
		follow->collections = threads->collections;
	}
}

void kernel_threads_sweep(struct kernel_threads *threads)
{
	size_t kept = 0;

	for (size_t i = 0; i < threads->count; i++) {
		if (threads->of[i].ended)
			forget(threads, &threads->of[i]);
		else
			threads->of[kept++] = threads->of[i];
	}
	threads->count = kept;
}

/* Begins with a new snapshot. Keeps the old one if there is not enough memory. */
static void begin_memory(struct kernel_threads *threads)
{
	struct memory *memory = memory_create(target_read_pages, threads->session->target, LIST_PAGES);

	if (!memory)
		return;
	memory_destroy(threads->memory);
	threads->memory = threads->ruby.memory = memory;
}

/* Reads the list, and follows its threads. False if it cannot be read, because it is changing. */
static bool read_list(struct kernel_threads *threads)
{
	struct ruby_threads list;
	bool is_right = false;

	if (memory_pages(threads->memory) >= LIST_PAGES / 2)
		begin_memory(threads);
	if (!memory_forget(threads->memory))
		return false;
	watchdog_reads(READING_STACKS);
	memory_prefetch(threads->memory);
	memory_limit(threads->memory, LIST_LIMIT_NS);
	if (threads_list(&threads->ruby, &list)) {
		threads->collections = collections_read(&threads->ruby).begun;
		is_right = list.missing != LIST_BROKEN && list.count > 0;
		if (is_right)
			follow_all(threads, &list);
		threads_clear(&list);
	}
	watchdog_has_read(READING_STACKS);
	return is_right;
}

void kernel_threads_keep(struct kernel_threads *threads, uint64_t now_ns)
{
	const bool is_wanted = threads->wanted_ns != 0 && now_ns >= threads->wanted_ns;

	if (!is_wanted && threads->listed_ns != 0 && now_ns - threads->listed_ns < threads->rest_ns)
		return;
	threads->listed_ns = now_ns;
	if (read_list(threads))
		threads->rest_ns = LIST_NS;
	else
		threads->rest_ns =
		    threads->rest_ns > 0 && threads->rest_ns < LIST_NS / 2 ? 2 * threads->rest_ns : BROKEN_NS;
	if (!is_wanted)
		return;
	if (kernel_threads_find(threads, threads->wanted, 0, UINT64_MAX) || threads->tries == TRIES)
		threads->wanted_ns = 0;
	else
		threads->wanted_ns = now_ns + (AGAIN_NS << threads->tries++);
}

void kernel_threads_want(struct kernel_threads *threads, pid_t tid)
{
	threads->wanted = tid;
	threads->wanted_ns = monotonic_ns();
	threads->tries = 0;
}

/*
 * How likely it is that the stack of a thread is copied when it leaves its CPU in one way.
 *   mine, all  how often the thread, and all threads, have left their CPU in this way, per second
 *   most       how many of these stacks to copy per second, of all threads
 */
static double choose_chance(double mine, double all, double most)
{
	const double chance = all > most ? most / all : 1;

	if (chance * mine >= WAITS_MIN)
		return chance;
	return mine > WAITS_MIN ? WAITS_MIN / mine : 1;
}

/* Chooses the chances of a thread. `begun` is how often all threads have left their CPU in each way, per second. */
static void choose_chances(struct kernel_threads *threads, struct kernel_follow *follow, double most,
			   const double begun[KERNEL_LEAVES])
{
	bool differ = false;

	for (size_t i = 0; i < KERNEL_LEAVES; i++) {
		const double chance = choose_chance(follow->rates[i], begun[i], most);

		if (chance > 0.8 * follow->chances[i] && chance < 1.25 * follow->chances[i])
			continue;
		follow->chances[i] = chance;
		differ = true;
	}
	if (differ && !follow->ended)
		kernel_maps_set_chances(&threads->maps, follow->subject.tid, follow->chances);
}

/* Adds the last seconds to the averages of a thread. If it leaves its CPU more often than before, that counts at once. */
static void note_rates(struct kernel_follow *follow, double seconds)
{
	for (size_t way = 0; way < KERNEL_LEAVES; way++) {
		const double rate = follow->outs[way] / seconds;

		follow->means[way] += (rate - follow->means[way]) * seconds / (follow->rated_s + seconds);
		follow->rates[way] = rate > follow->means[way] ? rate : follow->means[way];
		follow->outs[way] = 0;
	}
	follow->rated_s = follow->rated_s + seconds < LEAVES_S ? follow->rated_s + seconds : LEAVES_S;
}

void kernel_threads_choose_waits(struct kernel_threads *threads, double rate, double seconds)
{
	double begun[KERNEL_LEAVES] = {0};

	for (size_t i = 0; i < threads->count; i++)
		note_rates(&threads->of[i], seconds);
	for (size_t i = 0; i < threads->count; i++)
		for (size_t way = 0; way < KERNEL_LEAVES; way++)
			begun[way] += threads->of[i].rates[way];
	for (size_t i = 0; i < threads->count; i++)
		choose_chances(threads, &threads->of[i], rate * WAITS_PER_SAMPLE, begun);
}
