#include "sample/sampler.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "moments.h"
#include "sample/glances.h"
#include "sample/publication.h"
#include "session/windows.h"
#include "target/tracee.h"
#include "vm/call_site.h"
#include "vm/frame.h"

/* How often a guess where the stack is may be off, or a paused sample be taken again. */
#define AIMS  6
#define TRIES 8

/*
 * How much of a native stack is searched for what the kernel keeps there of code that a signal handler interrupts; and
 * where in struct rt_sigframe (arch/x86/include/asm/sigframe.h, uapi/asm/sigcontext.h) the words around rip are.
 */
#define HANDLER_BYTES 16384u
enum { SAVED_RSP = -1, SAVED_RIP = 0, SAVED_SELECTORS = 2 };
#define USER_CODE_SELECTOR 0x33u

/* Instructions from inside a torn window to its end: vm_push_frame has some thirty. After so long, none is begun. */
#define STEPS_MAX 200
#define STEP_US	  100000.0

/*
 * How long a thread may take to stop, and is looked for awake; and what it is given between two tries, the first. To
 * sleep takes longer than it does to get going, and out of a torn window: from another CPU, rbdump stays awake once.
 */
#define STOP_TIMEOUT_US	 200000L
#define STOP_AWAKE_US	 50L
#define BETWEEN_NS	 20000L
#define BETWEEN_AWAKE_NS 15000L

/* How much of the code is kept: 16 MiB. */
#define CODE_PAGES 4096u

/*
 * What was read of code is read anew after so long; and before a stack is rejected by it, if it is older than that: a
 * program that loads code has made some since, where there was something else.
 */
#define CODE_AGE_NS	250000000L
#define CODE_REJECTS_NS 10000000L

/* The deepest stack that a sample holds; and what is looked at first: what call_site_judge() takes. */
#define FRAMES_MAX 65536u
#define INNERMOST  2u

/* How often a running thread is glanced at before rbdump goes to its CPU (glance()). */
#define GLANCES 3

/* How long a place that is not the thread's is taken to be none: threads seldom move. */
#define OFF_NS 50000000L

struct sampler {
	const struct session *session;
	struct sampler_options options;
	struct publication *publication;
	struct memory *memory; /* what shots are laid over: code, and what is called there */
	struct ruby ruby;      /* through that */
	struct timespec read;  /* since when */
	cpu_set_t cpus;	       /* that rbdump may run on */
	int cpu;	       /* that the thread is bound to; -1 if to none */
	struct timespec off;   /* when it was seen to it that it is not where a thread runs; 0: it may be there */
	pid_t off_tid;	       /* which one; 0: it may be where that runs */
	pid_t worker;	       /* 0: none */
	int worker_off;	       /* the CPU that it is kept off; -1: none */
	struct timespec moved; /* when that was another one */
	struct known *known;   /* NULL */
	struct glances glances;
	uint64_t times_full; /* of what is known, as of the last sample */
	struct fingerprint fingerprint;
	uint64_t low, high; /* where the file that Ruby is in is mapped: [low, high) */
};

const char *sample_mode_name(enum sample_mode mode)
{
	static const char *const names[SAMPLE_MODES] = {
	    [MODE_UNPAUSED_NAIVE] = "unpaused-naive",	[MODE_UNPAUSED_ONCE] = "unpaused-once",
	    [MODE_UNPAUSED_DOUBLE] = "unpaused-double", [MODE_UNPAUSED] = "unpaused",
	    [MODE_PAUSED_NAIVE] = "paused-naive",	[MODE_PAUSED] = "paused",
	    [MODE_UNDISTURBED] = "undisturbed",
	};

	return names[mode];
}

bool sample_mode_pauses(enum sample_mode mode)
{
	return mode == MODE_PAUSED_NAIVE || mode == MODE_PAUSED;
}

bool sample_mode_tries(enum sample_mode mode)
{
	return mode == MODE_UNPAUSED_DOUBLE || mode == MODE_UNPAUSED;
}

bool sample_mode_naive(enum sample_mode mode)
{
	return mode == MODE_UNPAUSED_NAIVE || mode == MODE_UNPAUSED_ONCE || mode == MODE_PAUSED_NAIVE;
}

const char *on_torn_name(enum on_torn on_torn)
{
	static const char *const names[ON_TORN_WAYS] = {
	    [ON_TORN_STEP] = "step",
	    [ON_TORN_AGAIN] = "again",
	    [ON_TORN_REPORT] = "report",
	    [ON_TORN_DROP] = "drop",
	};

	return names[on_torn];
}

void subject_open(struct subject *subject, pid_t pid, pid_t tid, uint64_t thread, uint64_t ec)
{
	*subject = (struct subject){.tid = tid, .aim = {.thread = thread, .ec = ec}};
	task_open(&subject->task, pid, tid);
}

void subject_close(struct subject *subject)
{
	task_close(&subject->task);
}

bool sample_init(struct sample *sample, const struct session *session)
{
	*sample = (struct sample){.shot = shot_create(&session->ruby, session->target)};
	return sample->shot;
}

void sample_clear(struct sample *sample)
{
	shot_destroy(sample->shot);
	*sample = (struct sample){0};
}

/* Forgets what was read of code: it may be freed, and something else be there. */
static bool renew_memory(struct sampler *sampler)
{
	struct memory *memory = memory_create(target_read_pages, sampler->session->target, CODE_PAGES);

	if (!memory)
		return false;
	memory_destroy(sampler->memory);
	sampler->memory = sampler->ruby.memory = memory;
	clock_gettime(CLOCK_MONOTONIC, &sampler->read);
	return true;
}

static void find_ruby(struct sampler *sampler)
{
	const struct target *target = sampler->session->target;
	const char *path = sampler->session->module->path;

	for (size_t i = 0; i < target->nr_mappings; i++) {
		const struct mapping *mapping = &target->mappings[i];

		if (strncmp(mapping->path, path, strlen(path)) != 0)
			continue;
		if (sampler->high == 0)
			sampler->low = mapping->start;
		sampler->high = mapping->end;
	}
}

/* Keeps the thread that works on the samples off the target's CPU, where it would take time from that. */
static void keep_worker_off(struct sampler *sampler, int cpu)
{
	cpu_set_t set = sampler->cpus;

	if (sampler->worker == 0 || cpu == sampler->worker_off || CPU_COUNT(&set) < 2)
		return;
	/* Where several threads run by turns, it need not go to and fro. */
	if (cpu >= 0 && sampler->moved.tv_sec != 0 && elapsed_ns(&sampler->moved) < OFF_NS)
		return;
	clock_gettime(CLOCK_MONOTONIC, &sampler->moved);
	sampler->worker_off = cpu;
	if (cpu >= 0)
		CPU_CLR(cpu, &set);
	sched_setaffinity(sampler->worker, sizeof(set), &set);
}

struct sampler *sampler_create(const struct session *session, const struct sampler_options *options)
{
	struct sampler *sampler = calloc(1, sizeof(*sampler));

	if (!sampler)
		return NULL;
	sampler->session = session;
	sampler->options = *options;
	sampler->cpu = sampler->worker_off = -1;
	sched_getaffinity(0, sizeof(sampler->cpus), &sampler->cpus);
	sampler->ruby = session->ruby;
	find_ruby(sampler);
	glances_init(&sampler->glances);
	/* It learns from steps. */
	if (options->on_torn == ON_TORN_STEP)
		sampler->publication = publication_create(session);
	if ((options->on_torn == ON_TORN_STEP && !sampler->publication) || !renew_memory(sampler)) {
		sampler_destroy(sampler);
		return NULL;
	}
	return sampler;
}

void sampler_destroy(struct sampler *sampler)
{
	if (!sampler)
		return;
	keep_worker_off(sampler, -1);
	publication_destroy(sampler->publication);
	memory_destroy(sampler->memory);
	free(sampler->fingerprint.words);
	free(sampler);
}

void sampler_set_worker(struct sampler *sampler, pid_t worker)
{
	sampler->worker = worker;
}

void sampler_use_known(struct sampler *sampler, struct known *known)
{
	sampler->known = known;
}

static double microseconds_since(const struct timespec *from)
{
	return (double)elapsed_ns(from) / 1e3;
}

bool sampler_enter(struct sampler *sampler)
{
	renew_memory(sampler);
	sampler->cpu = -1;
	sampler->off = (struct timespec){0};
	sampler->off_tid = 0;
	keep_worker_off(sampler, -1);
	sched_setaffinity(0, sizeof(sampler->cpus), &sampler->cpus);
	if (sched_getscheduler(0) == SCHED_OTHER)
		sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
	return sched_getscheduler(0) != SCHED_OTHER;
}

/* Goes where the thread runs: it is then not running. False if it cannot: rbdump may not run there (taskset). */
static bool follow(struct sampler *sampler, const struct subject *subject)
{
	int cpu = task_cpu(&subject->task);
	cpu_set_t set;

	if (cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET((size_t)cpu, &sampler->cpus))
		return false;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (cpu != sampler->cpu && sched_setaffinity(0, sizeof(set), &set) != 0)
		return false;
	sampler->cpu = cpu;
	sampler->off = (struct timespec){0};
	sampler->off_tid = 0;
	keep_worker_off(sampler, cpu);
	return true;
}

/*
 * Goes where the thread does not run, if there is such a place: woken up on its CPU by chance, any reader has taken
 * that away from it. On a machine of many CPUs, the chance is small.
 */
static void avoid(struct sampler *sampler, const struct subject *subject)
{
	int cpu = task_cpu(&subject->task);
	cpu_set_t set = sampler->cpus;

	sampler->cpu = -1;
	sampler->off_tid = 0;
	clock_gettime(CLOCK_MONOTONIC, &sampler->off);
	if (cpu < 0 || cpu >= CPU_SETSIZE)
		return;
	CPU_CLR(cpu, &set);
	if (CPU_COUNT(&set) == 0 || sched_setaffinity(0, sizeof(set), &set) != 0)
		return;
	sampler->off_tid = subject->tid;
	keep_worker_off(sampler, cpu);
}

/*
 * The same, now and then. Who wakes up each time where the thread runs takes that away from it, and the kernel moves
 * the thread to another CPU: it loses more by that than by a stop from elsewhere, which takes a little longer.
 */
static void stay_off(struct sampler *sampler, const struct subject *subject)
{
	if (sampler->off.tv_sec == 0 || elapsed_ns(&sampler->off) > OFF_NS)
		avoid(sampler, subject);
}

/* What is wrong with a stack of which so many frames were walked. That it has more is nothing wrong. */
static enum reason reason_of(const struct stack *stack, size_t frames)
{
	if (stack->reason != REASON_TOO_DEEP || frames == FRAMES_MAX)
		return stack->reason;
	for (size_t i = 0; i < stack->nr_frames; i++)
		if (stack->frames[i].reason != REASON_NONE)
			return stack->frames[i].reason;
	return REASON_NONE;
}

/*
 * What the stack's own checks say of the innermost `frames` frames of a covered shot. What it leads to beyond that is
 * code, which does not change.
 */
static enum reason check_once(struct sampler *sampler, const struct subject *subject, const struct shot *shot,
			      size_t frames)
{
	enum reason reason = REASON_EC_UNREADABLE;
	struct stack stack;

	shot_lay(shot, sampler->memory);
	if (stack_walk(&sampler->ruby, subject->aim.ec, subject->aim.thread, frames, &stack))
		reason = reason_of(&stack, frames);
	/* Only the innermost frame can be one in the making. */
	if (reason == REASON_NONE && stack.nr_frames > 1 &&
	    call_site_judge(&sampler->ruby, &stack.frames[1], &stack.frames[0]) == CALL_SITE_CONTRADICTS)
		reason = REASON_CALL_SITE;
	stack_clear(&stack);
	memory_overlay(sampler->memory, NULL, 0, 0, 0);
	return reason;
}

/*
 * The same. No more is kept of the code than there is room for: without any, there is no call-site evidence. What
 * cannot be read may be there, in a page that was protected when it was read first, by a compaction; and what
 * contradicts may have been made since.
 */
static enum reason check(struct sampler *sampler, const struct subject *subject, const struct shot *shot, size_t frames)
{
	enum reason reason;
	bool unreadable;

	if (memory_pages(sampler->memory) >= CODE_PAGES / 2 || elapsed_ns(&sampler->read) > CODE_AGE_NS)
		renew_memory(sampler);
	reason = check_once(sampler, subject, shot, frames);
	unreadable = validate_verdict(reason) == VERDICT_TRUNCATED;
	if (reason != REASON_NONE && (unreadable || elapsed_ns(&sampler->read) > CODE_REJECTS_NS) &&
	    renew_memory(sampler))
		reason = check_once(sampler, subject, shot, frames);
	return reason;
}

/* Copies the stack, and again as long as the aim is off. */
static enum shot_result copy(struct subject *subject, struct sample *sample, enum shot_way way)
{
	enum shot_result result = SHOT_MISSED;
	struct timespec began = {0};

	sample->stack = KNOWN_NONE;
	sample->known_as = KNOWN_AS_NEW;
	for (int aims = 0; result == SHOT_MISSED && aims < AIMS; aims++) {
		clock_gettime(CLOCK_MONOTONIC, &began);
		result = shot_copy(sample->shot, &subject->aim, way, &sample->reason);
	}
	sample->began_ns = ns_of(&began);
	sample->copied = result == SHOT_COVERED || result == SHOT_CONTRADICTS;
	sample->no_stack = result == SHOT_NONE;
	sample->ec = subject->aim.ec;
	return result;
}

static void take_unpaused_naive(struct sampler *sampler, struct subject *subject, struct sample *sample,
				enum shot_way way)
{
	sample->tries = 1;
	avoid(sampler, subject);
	if (copy(subject, sample, way) == SHOT_COVERED)
		shot_copy_objects(sample->shot, FRAMES_MAX);
}

/* Looks a covered stack up, and enters it if it is to. */
static enum known_as recognize(struct sampler *sampler, struct sample *sample, bool enters)
{
	struct collections then;

	if (!sampler->known)
		return KNOWN_AS_NEW;
	then = shot_collections(sample->shot, &sampler->ruby);
	sample->collecting = then.collecting;
	if (fingerprint_take(&sampler->ruby, sample->shot, &sampler->fingerprint))
		sample->known_as = known_find(sampler->known, &then, &sampler->fingerprint, enters, &sample->stack);
	return sample->known_as;
}

/*
 * Copies what the frames of a stack lead to while the target goes on. If a collection has begun since the stack was
 * copied, it may be gone.
 */
static void copy_objects(struct sampler *sampler, struct sample *sample)
{
	struct collections then, now;

	shot_copy_objects(sample->shot, FRAMES_MAX);
	if (sample_mode_naive(sample->mode) || sample->reason != REASON_NONE)
		return;
	then = shot_collections(sample->shot, &sampler->ruby);
	now = shot_collections_now(sample->shot, &sampler->ruby);
	if (then.told ? !collections_unchanged(&then, &now) : collections_moved_between(&then, &now))
		sample->reason = REASON_COLLECTED;
}

/*
 * Reads a running thread from elsewhere. If what was read is, word by word, a stack that is right, it is taken for the
 * one that the thread is at. It is one that it has been at since the last collection; a mixture of two that it was at
 * during the read would have to be a third one in every word. One that is familiar is taken, too, if nothing is to be
 * said against it; but what its words lead to may have been exchanged since, so that such a mixture need not have been
 * a stack before: who names it is to see that it still is what it was (`glanced`).
 *
 * What is not recognized is read anew, when the thread has gone on to something else: so stacks that are not known are
 * seen less often than they are there. Hence it is only done where there are next to none (sample/glances.h), by the
 * samples that were to be taken without whatever came of them. Where a program has ever new stacks, there is no glance.
 */
static bool glance(struct sampler *sampler, struct subject *subject, struct sample *sample)
{
	stay_off(sampler, subject);
	/* One in ten is a mixture where nothing is done but to call methods. To go there costs the target much more. */
	while (sample->tries < GLANCES) {
		enum known_as known_as = KNOWN_AS_UNTOLD;

		sample->tries++;
		if (copy(subject, sample, SHOT_ONCE) == SHOT_COVERED)
			known_as = recognize(sampler, sample, false);
		if (known_as == KNOWN_AS_FAMILIAR) {
			copy_objects(sampler, sample);
			if (sample->reason == REASON_NONE)
				sample->reason = check(sampler, subject, sample->shot, FRAMES_MAX);
		}
		if (known_as >= KNOWN_AS_FAMILIAR && sample->reason == REASON_NONE) {
			sample->in_budget = sample->glanced = true;
			return true;
		}
	}
	return false;
}

/*
 * Notes whether a stack was known that was taken on the thread's CPU.
 *   in_vain  after a glance
 */
static void note_known(struct sampler *sampler, const struct sample *sample, bool in_vain)
{
	const uint64_t times_full = known_times_full(sampler->known);

	/* Neither what the collector does nor that all are forgotten says anything of the program. */
	if (sample->known_as == KNOWN_AS_UNTOLD)
		return;
	if (times_full != sampler->times_full)
		glances_forget(&sampler->glances);
	sampler->times_full = times_full;
	glances_taken(&sampler->glances, sample->reason == REASON_NONE && sample->known_as >= KNOWN_AS_FAMILIAR,
		      in_vain);
}

/*
 * Notes why a try was not good enough, and that there will be another. The thread has to get on until then, and may be
 * waiting for this CPU.
 */
static void try_again(struct sample *sample, long pause_ns)
{
	sample->retried[sample->reason]++;
	nanosleep(&(struct timespec){.tv_nsec = pause_ns}, NULL);
}

/* The same, without sleeping. */
static void try_again_awake(struct sample *sample)
{
	struct timespec began;

	sample->retried[sample->reason]++;
	clock_gettime(CLOCK_MONOTONIC, &began);
	while (elapsed_ns(&began) < BETWEEN_AWAKE_NS)
		;
}

/* Goes to where the mode reads from. */
static void take_place(struct sampler *sampler, struct subject *subject, struct sample *sample, bool on_its_cpu)
{
	if (on_its_cpu)
		sample->off_cpu = !follow(sampler, subject);
	else
		avoid(sampler, subject);
}

/* Checks a stack that was copied twice. */
static void check_in_time(struct sampler *sampler, const struct subject *subject, struct sample *sample,
			  const struct timespec *began)
{
	const bool is_right = recognize(sampler, sample, true) == KNOWN_AS_RIGHT;

	/* Nearly all that is found is found in the innermost frames, and much sooner. */
	if (!is_right) {
		shot_copy_objects(sample->shot, INNERMOST);
		sample->reason = check(sampler, subject, sample->shot, INNERMOST);
	}
	sample->in_budget = microseconds_since(began) <= (double)sampler->options.budget_us;
	if (!is_right && sample->reason == REASON_NONE)
		copy_objects(sampler, sample);
	if (!is_right && sample->reason == REASON_NONE)
		sample->reason = check(sampler, subject, sample->shot, FRAMES_MAX);
}

static void take_unpaused(struct sampler *sampler, struct subject *subject, struct sample *sample, bool on_its_cpu)
{
	struct timespec began;
	bool glances;

	clock_gettime(CLOCK_MONOTONIC, &began);
	glances = on_its_cpu && sampler->known && glances_next(&sampler->glances, ns_of(&began));
	if (glances && glance(sampler, subject, sample)) {
		glances_found(&sampler->glances);
		return;
	}
	/* To get there is no try. */
	take_place(sampler, subject, sample, on_its_cpu);
	clock_gettime(CLOCK_MONOTONIC, &began);
	for (;;) {
		sample->tries++;
		if (copy(subject, sample, SHOT_TWICE) == SHOT_COVERED)
			check_in_time(sampler, subject, sample, &began);
		if (sample->reason == REASON_NONE || sample->no_stack ||
		    microseconds_since(&began) >= (double)sampler->options.budget_us)
			break;
		if (on_its_cpu)
			try_again(sample, BETWEEN_NS);
		else
			sample->retried[sample->reason]++;
		take_place(sampler, subject, sample, on_its_cpu);
	}
	if (on_its_cpu && sampler->known)
		note_known(sampler, sample, glances);
	sample->gone = sample->reason != REASON_NONE && task_has_ended(&subject->task);
}

/* Steps a stopped thread out of the torn window that it is in. */
static bool step_out(struct sampler *sampler, struct tracee *tracee, struct sample *sample)
{
	struct timespec began;
	bool out = false;

	clock_gettime(CLOCK_MONOTONIC, &began);
	publication_begin(sampler->publication, sample->window, sample->ec);
	for (int steps = 0; steps < STEPS_MAX && !out && microseconds_since(&began) < STEP_US && tracee_step(tracee);
	     steps++) {
		sample->steps++;
		publication_step(sampler->publication);
		out = !session_window(sampler->session, tracee->registers.rip);
	}
	if (out)
		publication_end(sampler->publication);
	sample->step_us += microseconds_since(&began);
	return out;
}

/*
 * The torn window that a stopped thread is in. A signal handler may have interrupted it there (a profiler's, SIGPROF):
 * the kernel has then put the registers on the stack that the handler runs on. Which code runs there is not known, but
 * what the words beside a saved rip are.
 */
static const struct layout_window *find_window(const struct sampler *sampler, const struct tracee *tracee,
					       bool *interrupted)
{
	const struct session *session = sampler->session;
	const struct layout_window *window = session_window(session, tracee->registers.rip);
	uint64_t words[HANDLER_BYTES / 8];
	struct iovec local = {words, sizeof(words)}, remote[] = {{(void *)tracee->registers.rsp, sizeof(words)}};
	ssize_t length;

	*interrupted = false;
	if (window || !session_has_windows(session) ||
	    (tracee->registers.rip >= sampler->low && tracee->registers.rip < sampler->high))
		return window;
	length = process_vm_readv(tracee->tid, &local, 1, remote, 1, 0);
	for (ssize_t i = 1; i < length / 8 - SAVED_SELECTORS; i++) {
		if ((words[i + SAVED_SELECTORS] & 0xffff) != USER_CODE_SELECTOR ||
		    words[i + SAVED_RSP] <= tracee->registers.rsp)
			continue;
		window = session_window(session, words[i + SAVED_RIP]);
		if (window) {
			*interrupted = true;
			return window;
		}
	}
	return NULL;
}

/* There is no copy, or none that can be used. */
static void drop_copy(struct sample *sample, enum reason reason)
{
	sample->copied = sample->no_stack = false;
	sample->known_as = KNOWN_AS_NEW;
	sample->stack = KNOWN_NONE;
	sample->reason = reason;
}

/*
 * Copies the stack of a stopped thread, and then sees where it was stopped: the kernel tells that a little later than
 * it can be read. Returns whether there is a copy of a whole stack, torn ones included if they are asked for.
 */
static bool copy_stopped(struct sampler *sampler, struct tracee *tracee, struct subject *subject, struct sample *sample)
{
	const enum on_torn on_torn = sampler->options.on_torn;
	const bool naive = sample->mode == MODE_PAUSED_NAIVE;
	bool covered = copy(subject, sample, SHOT_ONCE) == SHOT_COVERED, interrupted = false;

	sample->gone = !tracee_read_registers(tracee);
	if (sample->gone) {
		drop_copy(sample, REASON_NOT_STOPPED);
		return false;
	}
	sample->has_registers = true;
	sample->registers = tracee->registers;
	/* What a naive profiler does not read must not add to its pause. */
	sample->window = naive ? session_window(sampler->session, tracee->registers.rip)
			       : find_window(sampler, tracee, &interrupted);
	if (naive || !sample->window ||
	    (sampler->publication && publication_may_copy(sampler->publication, sample->window)))
		return covered;
	if (on_torn == ON_TORN_STEP && !interrupted && step_out(sampler, tracee, sample))
		return copy(subject, sample, SHOT_ONCE) == SHOT_COVERED;
	if (on_torn == ON_TORN_REPORT)
		sample->reason = REASON_WINDOW;
	else
		drop_copy(sample, REASON_WINDOW);
	return covered && on_torn == ON_TORN_REPORT;
}

/*
 * Copies the stack of a thread that is about to be stopped, and drops the copy. After a sleep, a read takes two to four
 * times as long as one right after another: this one, and not the target, pays for that.
 */
static void warm_up(struct subject *subject, struct sample *sample)
{
	enum reason reason;

	shot_copy(sample->shot, &subject->aim, SHOT_ONCE, &reason);
}

/*
 * Stops the thread, copies its stack, and lets it go on.
 *   seen  it is known that its id is not that of another by now
 */
static void stop_and_copy(struct sampler *sampler, struct subject *subject, bool seen, struct sample *sample)
{
	const bool leads_to_native_stack = shot_leads_to_native_stack(sample->shot);
	enum tracee_result result;
	struct timespec began;
	struct tracee tracee;
	bool covered = false;
	double pause_us;

	drop_copy(sample, REASON_NOT_STOPPED);
	sample->gone = !seen && task_has_ended(&subject->task);
	if (sample->gone)
		return;
	if (sample->mode == MODE_PAUSED && sample->tries == 1)
		warm_up(subject, sample);
	shot_make_ready(sample->shot, &subject->aim, SHOT_ONCE);
	clock_gettime(CLOCK_MONOTONIC, &began);
	result = tracee_stop(sampler->session->target->pid, sample->tid,
			     sampler->off_tid == sample->tid ? STOP_AWAKE_US : 0, STOP_TIMEOUT_US, &tracee);
	if (result == TRACEE_STOPPED)
		covered = copy_stopped(sampler, &tracee, subject, sample);
	if (covered && leads_to_native_stack)
		shot_copy_objects(sample->shot, FRAMES_MAX);
	tracee_resume(&tracee);
	pause_us = microseconds_since(&began);
	if (pause_us > sample->pause_us)
		sample->pause_us = pause_us;
	sample->gone |= result == TRACEE_GONE;
	if (tracee.reaped) {
		sample->reaped = true;
		sample->status = tracee.status;
	}
	sample->stuck = result == TRACEE_TIMEOUT;
	if (result == TRACEE_REFUSED)
		sample->reason = REASON_REFUSED;
	if (covered && sample->mode == MODE_PAUSED && sample->reason == REASON_NONE)
		recognize(sampler, sample, true);
	/* What the frames lead to stays what it is until the next collection: it need not stand still for that. */
	if (covered && !leads_to_native_stack && sample->known_as != KNOWN_AS_RIGHT)
		copy_objects(sampler, sample);
}

/* Whether a sample that is not right is taken again. */
static bool takes_again(enum on_torn on_torn)
{
	return on_torn == ON_TORN_STEP || on_torn == ON_TORN_AGAIN;
}

static void take_paused(struct sampler *sampler, struct subject *subject, bool seen, struct sample *sample)
{
	struct timespec began;

	stay_off(sampler, subject);
	for (unsigned int tries = 1;; tries++) {
		sample->tries = tries;
		stop_and_copy(sampler, subject, seen && tries == 1, sample);
		/* How long the first stop took is a matter of what else runs: it says nothing of the second. */
		if (tries == 1)
			clock_gettime(CLOCK_MONOTONIC, &began);
		if (sample->copied && sample->reason == REASON_NONE && sample->mode == MODE_PAUSED &&
		    sample->known_as != KNOWN_AS_RIGHT)
			sample->reason = check(sampler, subject, sample->shot, FRAMES_MAX);
		if (sample->mode == MODE_PAUSED_NAIVE || sample->reason == REASON_NONE || sample->gone ||
		    sample->stuck || sample->no_stack || sample->reason == REASON_REFUSED ||
		    !takes_again(sampler->options.on_torn) || tries >= TRIES ||
		    (tries > 1 && microseconds_since(&began) > 10 * (double)sampler->options.budget_us))
			break;
		if (tries == 1 && sampler->off_tid == sample->tid)
			try_again_awake(sample);
		else
			/* On a busy machine it may take a while until it is given a CPU again. */
			try_again(sample, BETWEEN_NS << (tries - 1));
	}
}

static void begin(struct sample *sample, enum sample_mode mode, const struct subject *subject)
{
	*sample = (struct sample){
	    .mode = mode,
	    .tid = subject->tid,
	    .thread = subject->aim.thread,
	    .ec = subject->aim.ec,
	    .shot = sample->shot,
	    .stack = KNOWN_NONE,
	};
	clock_gettime(CLOCK_REALTIME, &sample->time);
}

void sampler_take_asleep(struct sampler *sampler, struct subject *subject, struct sample *sample)
{
	begin(sample, MODE_UNPAUSED, subject);
	sample->tries = 1;
	if (copy(subject, sample, SHOT_ONCE) == SHOT_COVERED && recognize(sampler, sample, true) != KNOWN_AS_RIGHT) {
		shot_copy_objects(sample->shot, FRAMES_MAX);
		sample->reason = check(sampler, subject, sample->shot, FRAMES_MAX);
	}
}

void sampler_take(struct sampler *sampler, enum sample_mode mode, struct subject *subject, bool seen,
		  struct sample *sample)
{
	struct timespec began;

	begin(sample, mode, subject);
	clock_gettime(CLOCK_MONOTONIC, &began);
	if (mode == MODE_UNPAUSED_NAIVE)
		take_unpaused_naive(sampler, subject, sample, SHOT_NAIVE);
	else if (mode == MODE_UNPAUSED_ONCE)
		take_unpaused_naive(sampler, subject, sample, SHOT_ONCE);
	else if (sample_mode_tries(mode))
		take_unpaused(sampler, subject, sample, mode == MODE_UNPAUSED);
	else if (sample_mode_pauses(mode))
		take_paused(sampler, subject, seen, sample);
	sample->took_us = microseconds_since(&began);
}
