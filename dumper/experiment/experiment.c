#include "experiment/experiment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "decode/resolve.h"
#include "decode/text.h"
#include "experiment/guard.h"
#include "experiment/launch.h"
#include "experiment/oracle.h"
#include "experiment/progress.h"
#include "experiment/report.h"
#include "experiment/taker.h"
#include "experiment/tally.h"
#include "experiment/torn_log.h"
#include "vm/frame.h"
#include "vm/threads.h"

/* A block is this long, and has so many samples at least and at most, unless that takes too long. */
#define BLOCK_S		  0.25
#define BLOCK_SAMPLES_MIN 10u
#define BLOCK_MAX_S	  5.0

/* How long to sleep at a time, so that an end is not slept through. */
#define SLICE_S		  0.05
#define BLOCK_SAMPLES_MAX 1000u

/* How much of the target is kept of what names, code and method entries say, while one block lasts: 64 MiB. */
#define NAME_PAGES 16384u

/* How often names that cannot be read are read again, and how long the target has until then. */
#define NAME_TRIES    3
#define NAME_RETRY_NS 1000000L

/* The most threads that are sampled in turn, and the most frames of one. */
#define SUBJECTS_MAX 256u
#define FRAMES_MAX   65536u

/* How often the line that tells of the progress is written. */
#define PROGRESS_NS 200000000LL

struct experiment {
	const struct experiment_options *options;
	struct session *session;
	struct progress *progress;
	struct sampler *sampler;
	struct taker *taker;
	struct oracle *oracle;
	struct torn_log *torn_log;
	struct tally tallies[SAMPLE_MODES];
	struct report_facts facts;

	struct subject subjects[SUBJECTS_MAX];
	size_t nr_subjects, turn;

	/* What names are read through, anew for each block. */
	struct memory *memory;
	struct ruby ruby;
	struct trace *trace;
	struct resolver *resolver;

	struct timespec began;
	struct stat executable;
	uint64_t random;
	pid_t launched;	   /* the target that we started; 0 if there is none */
	int target_status; /* as waitpid() gives it */
	bool target_reaped, has_status;
};

static double seconds_since(const struct timespec *from)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - from->tv_sec) + (double)(now.tv_nsec - from->tv_nsec) / 1e9;
}

/* xorshift64*: which order the blocks have is a matter of the seed alone. */
static uint64_t next_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dULL;
}

/* ---- the target */

static bool started_by_us(const struct experiment *experiment)
{
	return experiment->options->pid == 0;
}

/* Whether the target has ended; notes how if it is our own. */
static bool has_ended(struct experiment *experiment)
{
	pid_t pid = experiment->session->target->pid;
	siginfo_t ended = {0};

	if (experiment->target_reaped)
		return true;
	if (!started_by_us(experiment)) {
		char path[64], content[512] = "";
		const char *state;
		FILE *file;

		snprintf(path, sizeof(path), "/proc/%d/stat", pid);
		file = fopen(path, "re");
		if (!file)
			return true;
		state = fgets(content, sizeof(content), file) ? strrchr(content, ')') : NULL;
		fclose(file);
		/* proc(5): the name is in parentheses, and may have some itself. */
		return !state || strncmp(state, ") Z", 3) == 0 || strncmp(state, ") X", 3) == 0;
	}
	if (waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT) != 0) {
		/* It ended while it was traced, and the tracer was told. */
		experiment->target_reaped = true;
		return true;
	}
	if (ended.si_pid != pid)
		return false;
	experiment->target_reaped = experiment->has_status = waitpid(pid, &experiment->target_status, 0) == pid;
	return true;
}

static bool executable_of(const struct experiment *experiment, struct stat *ret)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", experiment->session->target->pid);
	return stat(path, ret) == 0;
}

/* Whether the process has become another program: another file, or the VM is no longer where it was. */
static bool has_execed(const struct experiment *experiment)
{
	struct access access = ruby_access(&experiment->ruby);
	struct stat now;

	if (executable_of(experiment, &now) &&
	    (now.st_dev != experiment->executable.st_dev || now.st_ino != experiment->executable.st_ino))
		return true;
	access_word(&access, experiment->session->ruby.vm);
	return access.failed;
}

/* ---- what is sampled */

static void clear_subjects(struct experiment *experiment)
{
	for (size_t i = 0; i < experiment->nr_subjects; i++)
		subject_close(&experiment->subjects[i]);
	experiment->nr_subjects = 0;
}

static bool is_task(pid_t pid, pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", pid, tid);
	return access(path, F_OK) == 0;
}

static pid_t tid_of(const struct experiment *experiment, const struct ruby_thread *thread)
{
	const struct target *target = experiment->session->target;

	if (!experiment->session->foreign_pids && thread->tid > 0 && thread->tid < INT32_MAX &&
	    is_task(target->pid, (pid_t)thread->tid))
		return (pid_t)thread->tid;
	/* As the native threads were when the session began: a new one may have the address of one that has ended. */
	for (size_t i = 0; thread->pthread != 0 && i < target->nr_threads; i++)
		if (target->threads[i].fs_base == thread->pthread && is_task(target->pid, target->threads[i].tid))
			return target->threads[i].tid;
	return thread->main ? target->pid : 0;
}

/* Those threads whose stacks can move: that run, or could if they had the GVL. If there is none, the main one. */
static void choose_subjects(struct experiment *experiment)
{
	struct ruby_threads threads;
	struct subject before[SUBJECTS_MAX];
	size_t nr_before = experiment->nr_subjects;

	if (!threads_list(&experiment->ruby, &threads))
		return;
	if (threads.broken || threads.count == 0) {
		threads_clear(&threads);
		return; /* it was changing: those of the last block are good enough */
	}
	memcpy(before, experiment->subjects, nr_before * sizeof(before[0]));
	experiment->nr_subjects = 0;
	for (int pass = 0; pass < 2 && experiment->nr_subjects == 0; pass++) {
		for (size_t i = 0; i < threads.count && experiment->nr_subjects < SUBJECTS_MAX; i++) {
			const struct ruby_thread *thread = &threads.threads[i];
			struct subject *subject = &experiment->subjects[experiment->nr_subjects];
			bool moves = thread->state == STATE_RUNNING || thread->state == STATE_WAITING_GVL ||
				     thread->state == STATE_UNKNOWN;
			pid_t tid = tid_of(experiment, thread);

			if (tid == 0 || !(pass == 0 ? moves : thread->main))
				continue;
			subject_open(subject, experiment->session->target->pid, tid, thread->address, thread->ec);
			/* The aim of the last block is better than none. */
			for (size_t j = 0; j < nr_before; j++)
				if (before[j].tid == tid && before[j].aim.thread == thread->address)
					subject->aim = before[j].aim;
			experiment->nr_subjects++;
		}
	}
	for (size_t i = 0; i < nr_before; i++)
		subject_close(&before[i]);
	threads_clear(&threads);
}

/* ---- decoding */

static void end_decoding(struct experiment *experiment)
{
	resolver_destroy(experiment->resolver);
	trace_destroy(experiment->trace);
	memory_destroy(experiment->memory);
	experiment->resolver = NULL;
	experiment->trace = NULL;
	experiment->memory = NULL;
}

static bool begin_decoding(struct experiment *experiment)
{
	end_decoding(experiment);
	experiment->memory = memory_create(target_read_pages, experiment->session->target, NAME_PAGES);
	experiment->ruby = experiment->session->ruby;
	experiment->ruby.memory = experiment->memory;
	experiment->trace = trace_create();
	if (!experiment->memory || !experiment->trace)
		return false;
	experiment->resolver = resolver_create(&experiment->ruby, experiment->trace);
	return experiment->resolver;
}

/* From the bytes of a sample to frames and a verdict. */
static struct trace_thread decode_once(struct experiment *experiment, const struct sample *sample)
{
	struct trace_thread thread = {.tid = sample->tid, .reason = sample->reason};
	struct stack stack = {0};

	/* A profiler that knows no better does not look whether what it has read fits together. */
	experiment->ruby.unchecked = sample_mode_naive(sample->mode);
	if (sample->copied) {
		shot_lay(sample->shot, experiment->memory);
		if (!stack_walk(&experiment->ruby, sample->ec, sample->thread, FRAMES_MAX, &stack) ||
		    !resolver_stack(experiment->resolver, &stack, &thread))
			thread.reason = REASON_OUT_OF_TIME;
		stack_clear(&stack);
		memory_overlay(experiment->memory, NULL, 0, 0, 0);
		if (sample->reason != REASON_NONE)
			thread.reason = sample->reason;
	}
	thread.verdict = validate_verdict(thread.reason);
	return thread;
}

/*
 * Names are read while the target goes on, page by page. What a collection has moved meanwhile may not fit what was
 * read before: it is read anew.
 */
static struct trace_thread decode(struct experiment *experiment, const struct sample *sample)
{
	struct trace_thread thread = decode_once(experiment, sample);

	for (int i = 0; i < NAME_TRIES && sample->reason == REASON_NONE && thread.verdict == VERDICT_TRUNCATED; i++) {
		nanosleep(&(struct timespec){.tv_nsec = NAME_RETRY_NS}, NULL);
		if (!begin_decoding(experiment))
			break;
		free(thread.frames);
		thread = decode_once(experiment, sample);
	}
	return thread;
}

static double own_us(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

/* What the checks would have said of a stack that was accepted without them. It is no cost of that mode. */
static void hear_witness(struct experiment *experiment, const struct sample *sample, enum oracle_verdict verdict)
{
	struct tally *tally = &experiment->tallies[sample->mode];
	enum truth truth = !experiment->oracle	     ? TRUTH_UNKNOWN
			   : verdict != ORACLE_LEGAL ? TRUTH_IMPOSSIBLE
			   : sample->window	     ? TRUTH_IN_WINDOW
						     : TRUTH_LEGAL;
	double before = own_us();
	struct testimony testimony = witness_hear(&experiment->ruby, sample);

	witness_count(&tally->witness, &testimony, truth);
	tally->cpu_us -= own_us() - before;
}

static void count_sample(struct experiment *experiment, const struct sample *sample)
{
	enum oracle_verdict verdict = ORACLE_LEGAL;
	struct trace_thread thread;

	if (sample->gone || sample->no_stack) {
		experiment->tallies[sample->mode].dropped++;
		return;
	}
	thread = decode(experiment, sample);
	if (experiment->oracle && thread.verdict == VERDICT_COMPLETE)
		verdict = oracle_judge(experiment->oracle, thread.frames, thread.nr_frames);
	if (sample_mode_naive(sample->mode) && thread.verdict == VERDICT_COMPLETE)
		hear_witness(experiment, sample, verdict);
	tally_sample(&experiment->tallies[sample->mode], sample, &thread, experiment->oracle, verdict);
	if (thread.verdict != VERDICT_COMPLETE || verdict != ORACLE_LEGAL || sample->steps > 0)
		torn_log_add(experiment->torn_log, sample, &thread, verdict);
	free(thread.frames);
}

/* ---- blocks */

static void show_progress(struct experiment *experiment, bool last)
{
	static struct timespec shown;
	struct timespec now;
	uint64_t samples = 0, rejected = 0;

	if (!isatty(STDERR_FILENO))
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (!last && (now.tv_sec - shown.tv_sec) * 1000000000LL + (now.tv_nsec - shown.tv_nsec) < PROGRESS_NS)
		return;
	shown = now;
	for (int mode = 0; mode < SAMPLE_MODES; mode++) {
		samples += experiment->tallies[mode].samples;
		rejected += experiment->tallies[mode].samples - experiment->tallies[mode].accepted;
	}
	fprintf(stderr, "\r\033[K");
	if (!last)
		fprintf(stderr, "rbdump: %.0f s, %llu samples, %llu rejected", seconds_since(&experiment->began),
			(unsigned long long)samples, (unsigned long long)rejected);
}

static struct timespec plus_seconds(struct timespec time, double seconds)
{
	time.tv_sec += (time_t)seconds;
	time.tv_nsec += (long)((seconds - (double)(time_t)seconds) * 1e9);
	if (time.tv_nsec >= 1000000000) {
		time.tv_sec++;
		time.tv_nsec -= 1000000000;
	}
	return time;
}

/* Sleeps for so long; not beyond the end of the experiment. */
static void leave_undisturbed(const struct experiment *experiment, double seconds)
{
	double left = experiment->options->duration_s - seconds_since(&experiment->began);

	if (experiment->options->duration_s > 0 && left < seconds)
		seconds = left;
	while (seconds > 0 && !guard_stop) {
		double slice = seconds < SLICE_S ? seconds : SLICE_S;

		nanosleep(&(struct timespec){.tv_nsec = (long)(slice * 1e9)}, NULL);
		seconds -= slice;
	}
}

static struct error *run_block(struct experiment *experiment, enum sample_mode mode, uint64_t samples)
{
	struct tally *tally = &experiment->tallies[mode];
	const struct block block = {
	    .mode = mode,
	    .subjects = experiment->subjects,
	    .nr_subjects = experiment->nr_subjects,
	    .first = experiment->nr_subjects > 0 ? experiment->turn++ % experiment->nr_subjects : 0,
	    .samples = samples,
	    .rate = experiment->options->rate,
	    .deadline = experiment->options->duration_s > 0
			    ? plus_seconds(experiment->began, experiment->options->duration_s)
			    : (struct timespec){0},
	};
	struct block_result result = {0};
	struct timespec began;
	double progress_before = progress_now(experiment->progress), own_before = own_us();
	struct sample *sample;
	struct error *error = NULL;

	clock_gettime(CLOCK_MONOTONIC, &began);
	/* A process whose threads have all ended is about to end itself, or to start some. */
	if (mode == MODE_UNDISTURBED || experiment->nr_subjects == 0) {
		leave_undisturbed(experiment, (double)samples / experiment->options->rate);
		if (mode != MODE_UNDISTURBED)
			return NULL;
	} else {
		error = taker_begin(experiment->taker, &block, &guard_stop);
		if (error)
			return error;
		while ((sample = taker_next(experiment->taker))) {
			count_sample(experiment, sample);
			taker_done(experiment->taker);
			show_progress(experiment, false);
		}
		taker_end(experiment->taker, &result);
	}
	tally->target_wall_us += seconds_since(&began) * 1e6;
	tally->progress += progress_now(experiment->progress) - progress_before;
	tally->late += result.late;
	tally->wall_us += result.wall_us;
	tally->cpu_us += result.cpu_us + own_us() - own_before;
	return NULL;
}

/* The modes asked for, and undisturbed blocks, in the order of this round. */
static size_t shuffle(struct experiment *experiment, enum sample_mode order[SAMPLE_MODES])
{
	size_t count = 0;

	for (int mode = 0; mode < SAMPLE_MODES; mode++)
		if (experiment->options->modes[mode] || mode == MODE_UNDISTURBED)
			order[count++] = (enum sample_mode)mode;
	for (size_t i = count; i > 1; i--) {
		size_t j = (size_t)(next_random(&experiment->random) % i);
		enum sample_mode mode = order[i - 1];

		order[i - 1] = order[j];
		order[j] = mode;
	}
	return count;
}

/* Why the experiment is over, as report_facts has it; NULL if it is not. */
static const char *is_over(struct experiment *experiment, uint64_t samples)
{
	const struct experiment_options *options = experiment->options;

	if (guard_stop)
		return "interrupted";
	if (has_ended(experiment))
		return "target-exited";
	if (has_execed(experiment))
		return "target-execed";
	if (options->samples > 0 && samples >= options->samples)
		return "samples";
	if (options->duration_s > 0 && seconds_since(&experiment->began) >= options->duration_s)
		return "duration";
	return NULL;
}

static struct error *run_blocks(struct experiment *experiment)
{
	const struct experiment_options *options = experiment->options;
	uint64_t done = 0, length = (uint64_t)(options->rate * BLOCK_S);

	if (length < BLOCK_SAMPLES_MIN)
		length = BLOCK_SAMPLES_MIN;
	if ((double)length > options->rate * BLOCK_MAX_S)
		length = options->rate * BLOCK_MAX_S < 1 ? 1 : (uint64_t)(options->rate * BLOCK_MAX_S);
	if (length > BLOCK_SAMPLES_MAX)
		length = BLOCK_SAMPLES_MAX;
	for (;;) {
		enum sample_mode order[SAMPLE_MODES];
		size_t count = shuffle(experiment, order);

		if (options->samples > 0 && options->samples - done < length)
			length = options->samples - done;
		for (size_t i = 0; i < count; i++) {
			struct error *error;

			if (!begin_decoding(experiment))
				return error_no_memory();
			choose_subjects(experiment);
			error = run_block(experiment, order[i], length);
			if (error)
				return error;
			experiment->facts.blocks++;
			experiment->facts.ended = is_over(experiment, i + 1 < count ? 0 : done + length);
			if (experiment->facts.ended)
				return NULL;
		}
		done += length;
	}
}

/* ---- all of it */

static struct error *prepare(struct experiment *experiment)
{
	const struct experiment_options *options = experiment->options;
	const struct session_options how = {.offsets = options->offsets};
	struct error *error = NULL;
	struct trace *trace = NULL;
	pid_t pid = options->pid;

	if (options->oracle)
		error = oracle_read(options->oracle, &experiment->oracle);
	if (!error)
		error = report_begin(options);
	if (!error && pid == 0)
		error = launch(options->command, &pid);
	if (error)
		return error;
	experiment->launched = pid == options->pid ? 0 : pid;
	error = pid == options->pid ? session_open(pid, &how, &experiment->session, &trace)
				    : launch_session(pid, &how, &guard_stop, &experiment->session);
	trace_destroy(trace);
	if (error)
		return error;
	experiment->sampler = sampler_create(experiment->session, &options->sampler);
	if (experiment->sampler)
		experiment->taker = taker_create(experiment->session, experiment->sampler);
	if (!experiment->taker)
		return error_no_memory();
	for (int mode = 0; mode < SAMPLE_MODES; mode++)
		if (!tally_init(&experiment->tallies[mode]))
			return error_no_memory();
	error = progress_open(pid, options->progress, &experiment->progress);
	if (error)
		return error;
	experiment->facts.progress_unit = progress_unit(experiment->progress);
	executable_of(experiment, &experiment->executable);
	return torn_log_open(options->torn_log, experiment->session, &experiment->torn_log);
}

static struct error *run(struct experiment *experiment)
{
	struct error *error = prepare(experiment), *written;

	if (error)
		return error;
	clock_gettime(CLOCK_MONOTONIC, &experiment->began);
	error = run_blocks(experiment);
	show_progress(experiment, true);
	experiment->facts.duration_s = seconds_since(&experiment->began);
	end_decoding(experiment);
	if (error || guard_stop == GUARD_ABANDON)
		return error;
	error = torn_log_close(experiment->torn_log, &experiment->facts.where);
	experiment->torn_log = NULL;
	experiment->facts.target_status = experiment->has_status ? &experiment->target_status : NULL;
	written = report_write(experiment->options, experiment->session, experiment->tallies, &experiment->facts);
	/* What can be written is; of what went wrong, the first is told. */
	if (error)
		error_destroy(written);
	return error ? error : written;
}

/* The target that we started goes on to its end, as if it had been started from the shell. */
static void wait_for_own_target(struct experiment *experiment)
{
	unsigned int before = guard_signals;

	if (experiment->launched == 0 || experiment->target_reaped || guard_stop == GUARD_ABANDON)
		return;
	/* One more signal ends the wait. */
	while (waitpid(experiment->launched, &experiment->target_status, 0) < 0 && errno == EINTR &&
	       guard_signals == before)
		;
}

static int work(void *context)
{
	struct experiment experiment = {.options = context};
	int status = EXIT_COMPLETE;
	struct error *error;

	experiment.random = experiment.options->seed * 0x9e3779b97f4a7c15ULL + 1;
	error = run(&experiment);
	if (error) {
		fputs("rbdump: ", stderr);
		text_print(error->message, stderr);
		fputc('\n', stderr);
		status = (int)error->status;
		error_destroy(error);
	}
	fflush(NULL);
	clear_subjects(&experiment);
	wait_for_own_target(&experiment);
	torn_log_close(experiment.torn_log, NULL);
	for (int mode = 0; mode < SAMPLE_MODES; mode++)
		tally_clear(&experiment.tallies[mode]);
	progress_close(experiment.progress);
	json_decref(experiment.facts.where);
	taker_destroy(experiment.taker);
	sampler_destroy(experiment.sampler);
	session_close(experiment.session);
	oracle_destroy(experiment.oracle);
	return status;
}

int experiment_main(const struct experiment_options *options)
{
	struct experiment_options mine = *options;

	return guard_run(work, &mine);
}
