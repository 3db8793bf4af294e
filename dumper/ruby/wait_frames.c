#include "ruby/wait_frames.h"

#include <stdlib.h>
#include <string.h>

#include "ruby/arguments.h"
#include "ruby/class.h"
#include "ruby/method_name.h"
#include "ruby/plain_locks.h"
#include "ruby/value.h"

/* In how many of the innermost frames the Monitor is looked for whose Mutex a thread waits for. */
#define MONITOR_FRAMES 4u

/* A class with a longer name counts as not known, so that many waits cannot take much memory. */
#define CLASS_NAME_MAX 1024u

/* A longer time limit is not believed. */
#define SECONDS_MAX 1e15

/* The index of the frame that waits: of a fiber that waits in a hook of its scheduler, the frame that has called it. */
static size_t waiting_frame(const struct trace_thread *entry)
{
	size_t index = 0;

	if (!entry->waits_in)
		return 0;
	while (index < entry->nr_frames && entry->frames[index].name != entry->waits_in)
		index++;
	return index + 1;
}

/* One frame, with its receiver. */
struct place {
	const struct trace_frame *frame;
	const char *method; /* the method's own name; NULL if the frame is not the method itself */
	uint64_t self;	    /* the receiver; 0 if it cannot be read */
	struct typed typed; /* the same, if it is a T_DATA */
	bool is_data;
};

static uint64_t nil_of(const struct ruby *ruby)
{
	return (uint64_t)ruby->layout->enumerators[E_RUBY_Qnil].value;
}

static bool is_one_of(const char *name, const char *const *names)
{
	for (; name && *names; names++)
		if (strcmp(name, *names) == 0)
			return true;
	return false;
}

/* Types that were renamed (thread_sync.c, v4_0_0) have both names. */
static bool is_queue(const struct ruby *ruby, const struct typed *typed)
{
	return typed_is(ruby, typed, "queue") || typed_is(ruby, typed, "Thread::Queue");
}

static bool is_sized_queue(const struct ruby *ruby, const struct typed *typed)
{
	return typed_is(ruby, typed, "sized_queue") || typed_is(ruby, typed, "Thread::SizedQueue");
}

/* The frame with the index `index`; false if there is none that can be read. */
static bool look_at(const struct ruby *ruby, const struct trace_thread *entry, size_t index, struct place *ret)
{
	struct access access = ruby_access(ruby);

	*ret = (struct place){0};
	if (index >= entry->nr_frames || entry->frames[index].kind == TRACE_UNREADABLE)
		return false;
	ret->frame = &entry->frames[index];
	ret->method = method_name_of(ret->frame->name);
	if (!layout_has(ruby->layout, F_cfp_self))
		return true;
	ret->self = access_member(&access, ret->frame->address, F_cfp_self);
	if (access.failed)
		ret->self = 0;
	ret->is_data = ret->self != 0 && typed_read(ruby, ret->self, &ret->typed);
	return true;
}

/* The name of an object's class; NULL if it cannot be read. */
static const char *class_of(const struct ruby *ruby, uint64_t object, struct trace *trace)
{
	struct access access = ruby_access(ruby);
	const enum memory_kind kind = memory_reads(ruby->memory, MEMORY_LASTS);
	const uint64_t klass = class_real(&access, access_member(&access, object, F_basic_klass));
	const char *name = NULL;
	struct text text = {0};

	if (!access.failed && klass != 0) {
		class_add_name(ruby, &access, klass, &text);
		if (!text.failed && text.length > 0 && text.length <= CLASS_NAME_MAX)
			name = trace_string(trace, text.data);
	}
	text_clear(&text);
	memory_reads(ruby->memory, kind);
	return name;
}

static void waits_for(const struct ruby *ruby, enum wait_kind kind, uint64_t object, struct trace_thread *entry,
		      struct trace *trace)
{
	const bool can_have_limit = kind != WAIT_MUTEX && kind != WAIT_MONITOR;

	entry->wait.kind = kind;
	entry->wait.object = object;
	entry->wait.class_name = object != 0 ? class_of(ruby, object, trace) : NULL;
	/*
	 * thread_sync.c and thread.c, sleep_forever and sleep_hrtime: the state tells it. A fiber scheduler is given the
	 * limit as an argument, and has no such state. Nobody locks with a limit.
	 */
	entry->wait.limited = can_have_limit && !entry->suspended && entry->state == STATE_SLEEPING;
	entry->wait.limit_unknown = can_have_limit && (entry->suspended || entry->state == STATE_BLOCKED);
}

/* Whether the method in a frame is written in C. Those of Ruby itself that are written in Ruby are shown as such, too. */
static bool is_written_in_c(const struct ruby *ruby, const struct place *place)
{
	struct access access = ruby_access(ruby);

	return place->frame->kind == TRACE_CFUNC && access_member(&access, place->frame->address, F_cfp_iseq) == 0 &&
	       !access.failed;
}

/* The maximum number of arguments of a C function that are read. */
#define ARGUMENTS_READ 2

/* For note_seconds(): of a method that is written in C, no argument is a time limit. */
#define NO_ARGUMENT ARGUMENTS_READ

/*
 * Reads an argument of the C function in a frame, counted from 0; `*value` is nil if there is none. Returns false if that
 * cannot be read.
 */
static bool argument(const struct ruby *ruby, const struct place *place, size_t index, uint64_t *value)
{
	uint64_t values[ARGUMENTS_READ];
	size_t count = 0;

	if (!is_written_in_c(ruby, place) || index >= ARGUMENTS_READ ||
	    !arguments_read(ruby, place->frame->address, values, ARGUMENTS_READ, &count))
		return false;
	*value = index < count ? values[index] : nil_of(ruby);
	return true;
}

/*
 * Reads the time limit that a fiber scheduler was given: block(blocker, timeout), kernel_sleep(duration) (scheduler.c,
 * v3_0_0 to v4.0.5 and head). Returns false if it cannot be read, or if it can be something else.
 */
static bool hooks_limit(const struct ruby *ruby, const struct trace_thread *entry, uint64_t *value)
{
	const size_t index = waiting_frame(entry);
	const char *hook = entry->suspended && entry->waits_in ? method_name_of(entry->waits_in) : NULL;
	double seconds;

	if (!hook || index == 0 || index > entry->nr_frames || entry->frames[index - 1].kind != TRACE_RUBY)
		return false;
	if (!arguments_parameter(ruby, entry->frames[index - 1].address, strcmp(hook, "block") == 0 ? 1 : 0, value))
		return false;
	return *value == nil_of(ruby) || arguments_number(*value, &seconds);
}

/*
 * Notes the time limit that was given as an argument. Methods that are written in Ruby (thread_sync.rb: of queues since
 * v3_2_0, of ConditionVariable and Mutex since v4_0_0) have it as the parameter `timeout`. A thread that waits in them has
 * called a C function that can raise, so a JIT has written the parameter to memory (locals.h). Does nothing if it is known
 * already that there is none.
 */
static void note_seconds(const struct ruby *ruby, const struct place *place, size_t index, struct trace_thread *entry)
{
	struct trace_wait *wait = &entry->wait;
	uint64_t value;
	double seconds;

	if (!wait->limited && !wait->limit_unknown)
		return;
	if (!arguments_named(ruby, place->frame->address, "timeout", &value) && !argument(ruby, place, index, &value) &&
	    !hooks_limit(ruby, entry, &value))
		return;
	wait->limit_unknown = false;
	/* What has no limit has it as nil, or not at all. */
	if (value == nil_of(ruby))
		return;
	wait->limited = true;
	if (!arguments_number(value, &seconds) || !(seconds >= 0 && seconds < SECONDS_MAX))
		return;
	wait->has_seconds = true;
	wait->seconds = seconds;
}

/* The child process that a method waits for: its argument; -1: any child; 0: not known. */
static int64_t child_of(const struct ruby *ruby, const struct place *place)
{
	static const char *const with_pid[] = {"wait", "wait2", "waitpid", "waitpid2", NULL};
	const uint64_t nil = nil_of(ruby);
	uint64_t value = nil;
	int64_t pid = -1;

	/* Without an argument, they wait for any child (process.c, proc_wait), and so does waitall (proc_waitall). */
	if ((!place->method || strcmp(place->method, "waitall") != 0) &&
	    (!is_one_of(place->method, with_pid) || !argument(ruby, place, 0, &value)))
		return 0;
	return value == nil || (arguments_integer(value, &pid) && pid >= INT32_MIN && pid <= INT32_MAX) ? pid : 0;
}

static void note_child(struct locks *locks, uint64_t ec, const struct place *place, struct trace_wait *wait)
{
	wait->child = locks_child(locks, ec);
	if (wait->child == 0)
		wait->child = child_of(locks->ruby, place);
}

/*
 * Whether a fiber waits in the hook `block` of its scheduler. In a method that sleeps, which calls another hook for that
 * (thread_sync.c, rb_mutex_sleep, v3_0_0 to v4.0.5 and head), this means that it wants to lock the Mutex again.
 */
static bool is_in_hook_block(const struct trace_thread *entry)
{
	const char *hook = entry->suspended && entry->waits_in ? method_name_of(entry->waits_in) : NULL;

	return hook && strcmp(hook, "block") == 0;
}

static void waits_for_mutex(const struct ruby *ruby, const struct typed *mutex, struct trace_thread *entry,
			    struct trace *trace, struct wait_found *ret)
{
	ret->mutex = mutex->data;
	waits_for(ruby, WAIT_MUTEX, mutex->object, entry, trace);
}

/* The method `sleep` of a Mutex, which ConditionVariable#wait calls, too. */
static void note_mutex_sleep(const struct ruby *ruby, const struct place *place, const struct place *caller,
			     struct trace_thread *entry, struct trace *trace, struct wait_found *ret)
{
	const bool is_condition =
	    (caller->is_data && typed_is(ruby, &caller->typed, "condvar")) ||
	    (caller->frame && caller->frame->kind == TRACE_CFUNC && !caller->is_data &&
	     strcmp(caller->frame->name, "Thread::ConditionVariable#wait") == 0 && plain_is_struct(ruby, caller->self));

	if (is_in_hook_block(entry)) {
		waits_for_mutex(ruby, &place->typed, entry, trace, ret);
		return;
	}
	/* The second argument of ConditionVariable#wait is its time limit. */
	if (is_condition) {
		waits_for(ruby, WAIT_CONDITION, caller->self, entry, trace);
		note_seconds(ruby, caller, 1, entry);
	} else {
		waits_for(ruby, WAIT_SLEEP, 0, entry, trace);
		note_seconds(ruby, place, 0, entry);
	}
}

/* The method `wait` of a ConditionVariable, since 4.0. */
static void note_condition_wait(const struct ruby *ruby, const struct place *place, struct trace_thread *entry,
				struct trace *trace, struct wait_found *ret)
{
	struct typed mutex;
	uint64_t value;

	if (is_in_hook_block(entry) && arguments_named(ruby, place->frame->address, "mutex", &value) &&
	    typed_read(ruby, value, &mutex) && typed_is(ruby, &mutex, "mutex")) {
		waits_for_mutex(ruby, &mutex, entry, trace, ret);
		return;
	}
	waits_for(ruby, WAIT_CONDITION, place->typed.object, entry, trace);
	note_seconds(ruby, place, 1, entry);
}

/* A method of a Mutex, a Monitor or a ConditionVariable. Returns whether it is one that waits. */
static bool is_lock(struct locks *locks, const struct place *place, const struct place *caller,
		    struct trace_thread *entry, struct trace *trace, struct wait_found *ret)
{
	static const char *const locking[] = {"lock", "synchronize", NULL};
	static const char *const entering[] = {"enter", "mon_enter", "synchronize", "mon_synchronize", NULL};
	const struct ruby *ruby = locks->ruby;
	struct typed mutex;

	if (typed_is(ruby, &place->typed, "mutex")) {
		if (is_one_of(place->method, locking)) {
			waits_for_mutex(ruby, &place->typed, entry, trace, ret);
			return true;
		}
		if (!place->method || strcmp(place->method, "sleep") != 0)
			return false;
		note_mutex_sleep(ruby, place, caller, entry, trace, ret);
		return true;
	}
	if (typed_is(ruby, &place->typed, "condvar") && place->method && strcmp(place->method, "wait") == 0) {
		note_condition_wait(ruby, place, entry, trace, ret);
		return true;
	}
	if (!is_one_of(place->method, entering) || !typed_read(ruby, locks_monitor_mutex(locks, &place->typed), &mutex))
		return false;
	ret->mutex = mutex.data;
	waits_for(ruby, WAIT_MONITOR, place->typed.object, entry, trace);
	return true;
}

/* A queue that is a T_STRUCT. */
static bool is_plain_queue(const struct ruby *ruby, const struct place *place, bool *sized)
{
	static const char queue[] = "Thread::Queue#", sized_queue[] = "Thread::SizedQueue#";

	*sized = strncmp(place->frame->name, sized_queue, sizeof(sized_queue) - 1) == 0;
	return place->frame->kind == TRACE_CFUNC && !place->is_data &&
	       (*sized || strncmp(place->frame->name, queue, sizeof(queue) - 1) == 0) &&
	       plain_is_struct(ruby, place->self);
}

/* A method of a Queue or a SizedQueue. */
static bool is_queues(struct locks *locks, const struct place *place, struct trace_thread *entry, struct trace *trace)
{
	static const char *const popping[] = {"pop", "shift", "deq", NULL}, *const pushing[] = {"push", "<<", "enq",
												NULL};
	const struct ruby *ruby = locks->ruby;
	const bool pops = is_one_of(place->method, popping);
	bool sized = place->is_data && is_sized_queue(ruby, &place->typed);
	const bool is_data = sized || (place->is_data && is_queue(ruby, &place->typed));
	struct trace_wait *wait = &entry->wait;

	if ((!is_data && !is_plain_queue(ruby, place, &sized)) ||
	    (!pops && !(sized && is_one_of(place->method, pushing))))
		return false;
	waits_for(ruby, pops ? WAIT_POP : WAIT_PUSH, place->self, entry, trace);
	wait->has_length = is_data ? locks_queue_length(locks, &place->typed, sized, &wait->length, &wait->max)
				   : plain_queue_length(ruby, place->self, sized, &wait->length, &wait->max);
	/* Before 3.2, these methods are written in C, and have no limit. */
	if (is_written_in_c(ruby, place))
		wait->limit_unknown = false;
	note_seconds(ruby, place, NO_ARGUMENT, entry);
	return true;
}

static bool is_join(const struct ruby *ruby, const struct place *place, struct trace_thread *entry, struct trace *trace,
		    struct wait_found *ret)
{
	static const char *const joining[] = {"join", "value", NULL};

	if (!is_one_of(place->method, joining) || !typed_is(ruby, &place->typed, "VM/thread"))
		return false;
	ret->thread = place->typed.data;
	waits_for(ruby, WAIT_JOIN, place->typed.object, entry, trace);
	if (strcmp(place->method, "join") != 0)
		entry->wait.limit_unknown = false;
	else
		note_seconds(ruby, place, 0, entry);
	return true;
}

/* A child process that Ruby's own list says the context waits for, whatever its frames are. */
static void note_listed_child(struct locks *locks, uint64_t ec, struct trace_wait *wait)
{
	const int64_t child = wait->kind == WAIT_NONE ? locks_child(locks, ec) : 0;

	if (child == 0)
		return;
	wait->kind = WAIT_PROCESS;
	wait->child = child;
}

/* A method that waits for no object. */
static void note_other(struct locks *locks, uint64_t ec, const struct place *place, struct trace_thread *entry)
{
	static const char *const sleeping[] = {"Kernel#sleep", "Kernel.sleep", "Thread.stop", NULL};
	static const char *const waiting[] = {"Process.wait",
					      "Process.wait2",
					      "Process.waitpid",
					      "Process.waitpid2",
					      "Process.waitall",
					      "Process::Status.wait",
					      "Kernel#system",
					      "Kernel.system",

					      NULL};
	struct trace_wait *wait = &entry->wait;

	if (is_one_of(place->frame->name, sleeping)) {
		/* The state is the same with and without a limit (process.c, rb_f_sleep). */
		wait->kind = WAIT_SLEEP;
		wait->limit_unknown = strcmp(place->frame->name, "Thread.stop") != 0;
		note_seconds(locks->ruby, place, 0, entry);
		return;
	}
	if (!is_one_of(place->frame->name, waiting))
		return;
	note_child(locks, ec, place, wait);
	wait->kind = WAIT_PROCESS;
}

/* Whether the receiver of a method is the Monitor of a Mutex. Up to 2.6, the method tells that it is a Monitor. */
static bool is_monitor_of(struct locks *locks, const struct place *place, const char *method, uint64_t object,
			  uint64_t mutex)
{
	static const char mixin[] = "MonitorMixin#";
	uint64_t mutexes[PLAIN_MUTEXES_MAX];
	size_t count;

	if (place->is_data)
		return locks_monitor_mutex(locks, &place->typed) == object;
	if (strncmp(place->frame->name, mixin, sizeof(mixin) - 1) != 0 ||
	    strcmp(place->frame->name + sizeof(mixin) - 1, method) != 0)
		return false;
	count = plain_monitor_mutexes(locks, place->self, mutexes);
	while (count > 0 && mutexes[count - 1] != mutex)
		count--;
	return count > 0;
}

/* The Mutex that the thread itself names, and the Monitor that it belongs to. */
static bool is_locking(struct locks *locks, uint64_t locking, struct trace_thread *entry, struct trace *trace,
		       struct wait_found *ret)
{
	struct typed mutex;

	if (!typed_read(locks->ruby, locking, &mutex) || !typed_is(locks->ruby, &mutex, "mutex"))
		return false;
	ret->mutex = mutex.data;
	for (size_t i = 0; i < MONITOR_FRAMES; i++) {
		struct place place;

		if (look_at(locks->ruby, entry, i, &place) &&
		    is_monitor_of(locks, &place, "mon_enter", locking, mutex.data)) {
			waits_for(locks->ruby, WAIT_MONITOR, place.self, entry, trace);
			return true;
		}
	}
	waits_for(locks->ruby, WAIT_MUTEX, mutex.object, entry, trace);
	return true;
}

/* Whether a thread or fiber can be waiting for something that its frames tell. */
static bool can_wait(const struct trace_thread *entry)
{
	if (entry->suspended)
		return entry->waits_in != NULL;
	return entry->state == STATE_SLEEPING || entry->state == STATE_SLEEPING_FOREVER ||
	       entry->state == STATE_BLOCKED;
}

void wait_frames_find(struct locks *locks, uint64_t ec, struct trace_thread *entry, struct trace *trace,
		      struct wait_found *ret)
{
	const struct layout *layout = locks->ruby->layout;
	struct access access = ruby_access(locks->ruby);
	struct place place, caller;
	uint64_t locking;
	size_t index;

	*ret = (struct wait_found){0};
	entry->wait = (struct trace_wait){.holder_entry = WAIT_NO_ENTRY};
	if (!entry->suspended && entry->state == STATE_WAITING_GVL) {
		entry->wait.kind = WAIT_GVL;
		return;
	}
	if (!can_wait(entry))
		return;
	index = waiting_frame(entry);
	if (index < entry->nr_frames && entry->frames[index].kind != TRACE_UNREADABLE)
		entry->wait.method = entry->frames[index].name;
	if (!entry->suspended && layout_has(layout, F_thread_locking_mutex)) {
		locking = access_member(&access, entry->id, F_thread_locking_mutex);
		if (!access.failed && is_locking(locks, locking, entry, trace, ret))
			return;
	}
	if (!look_at(locks->ruby, entry, index, &place)) {
		note_listed_child(locks, ec, &entry->wait);
		return;
	}
	look_at(locks->ruby, entry, index + 1, &caller);
	if (place.is_data &&
	    (is_lock(locks, &place, &caller, entry, trace, ret) || is_join(locks->ruby, &place, entry, trace, ret)))
		return;
	if (is_queues(locks, &place, entry, trace))
		return;
	note_other(locks, ec, &place, entry);
	note_listed_child(locks, ec, &entry->wait);
}

/* The Mutexes that the method `synchronize` in a frame has locked: one, or those of which one is a Monitor's. */
static size_t locked_in(struct locks *locks, const struct place *place, uint64_t *mutexes)
{
	static const char *const holding[] = {"synchronize", "mon_synchronize", NULL};
	struct typed mutex = place->typed;

	if (!is_one_of(place->method, holding))
		return 0;
	if (!place->is_data)
		return strcmp(place->frame->name, "MonitorMixin#mon_synchronize") == 0
			   ? plain_monitor_mutexes(locks, place->self, mutexes)
			   : 0;
	if (!typed_is(locks->ruby, &mutex, "mutex") &&
	    !typed_read(locks->ruby, locks_monitor_mutex(locks, &place->typed), &mutex))
		return 0;
	mutexes[0] = mutex.data;
	return 1;
}

/* Notes the object and the frame of a Mutex that was locked with synchronize. */
static void find_frame(struct locks *locks, const struct place *place, size_t index, struct trace_thread *entry,
		       struct trace *trace)
{
	uint64_t mutexes[PLAIN_MUTEXES_MAX];
	const size_t count = locked_in(locks, place, mutexes);

	for (size_t i = 0; i < entry->nr_holds * count; i++) {
		struct trace_hold *hold = &entry->holds[i / count];

		/* Of a Monitor that was entered several times, the oldest frame counts, which comes last. */
		if (hold->lock != mutexes[i % count])
			continue;
		hold->object = place->self;
		hold->class_name = class_of(locks->ruby, place->self, trace);
		hold->has_frame = true;
		hold->frame = index;
	}
}

bool wait_frames_holds(struct locks *locks, const uint64_t *mutexes, size_t count, struct trace_thread *entry,
		       struct trace *trace)
{
	free(entry->holds);
	entry->nr_holds = 0;
	entry->holds = calloc(count + 1, sizeof(*entry->holds));
	if (!entry->holds)
		return false;
	for (size_t i = 0; i < count; i++)
		entry->holds[entry->nr_holds++] = (struct trace_hold){.lock = mutexes[i]};
	for (size_t i = 0; count > 0 && i < entry->nr_frames; i++) {
		struct place place;

		if (entry->frames[i].kind != TRACE_UNREADABLE && strstr(entry->frames[i].name, "synchronize") &&
		    look_at(locks->ruby, entry, i, &place))
			find_frame(locks, &place, i, entry, trace);
	}
	return true;
}
