#include "experiment/experiment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/open_files.h"
#include "base/random.h"
#include "base/tell.h"
#include "experiment/block_sampler.h"
#include "experiment/kernel_blocks.h"
#include "experiment/oracle.h"
#include "experiment/progress.h"
#include "experiment/report.h"
#include "experiment/tally.h"
#include "experiment/torn_log.h"
#include "guard/watch.h"
#include "guard/worker.h"
#include "sampling/decoder.h"
#include "sampling/subjects.h"
#include "session/launch.h"
#include "session/open.h"
#include "target/live.h"

/*
 * A block lasts BLOCK_S, but has at least BLOCK_SAMPLES_MIN samples and at most BLOCK_SAMPLES_MAX. At low rates it
 * has fewer, so that it does not last longer than BLOCK_MAX_S.
 */
#define BLOCK_S		  0.25
#define BLOCK_SAMPLES_MIN 10u
#define BLOCK_SAMPLES_MAX 1000u
#define BLOCK_MAX_S	  5.0

/* The longest sleep, so that the end is noticed in time. */
#define SLICE_S 0.05

/* How long to wait for a target that is ending, and how often to check it meanwhile. */
#define END_NS	1000000000L
#define LOOK_NS 1000000L

/* How often the progress is shown. */
#define PROGRESS_NS 200000000LL

struct experiment {
	struct experiment_options *options;
	struct session *session;
	struct progress *progress;
	struct sampler *sampler;
	struct block_sampler *block_sampler;
	struct kernel_blocks *kernel_blocks; /* NULL: that mode is left out */
	struct oracle *oracle;
	struct torn_log *torn_log;
	struct tally tallies[MODES];
	struct report_facts facts;

	struct subjects subjects;
	size_t next_subject;	 /* the index of the next one */
	struct decoder *decoder; /* reads the target again in each block */

	struct timespec began;
	uint64_t random; /* the order of the blocks depends on the seed only */
	struct watch watch;
	pid_t launched; /* the target, if rbdump has started it; else 0 */
};

static double seconds_since(const struct timespec *from)
{
	return (double)elapsed_ns(from) / 1e9;
}

static double own_us(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)ns_of(&time) / 1e3;
}

/* Applies the checks to a stack that was accepted unchecked. Their CPU time is not counted for the mode. */
static void evaluate(struct experiment *experiment, enum mode mode, const struct sample *sample,
		     enum oracle_verdict verdict)
{
	struct tally *tally = &experiment->tallies[mode];
	enum truth truth = !experiment->oracle	     ? TRUTH_UNKNOWN
			   : verdict != ORACLE_LEGAL ? TRUTH_IMPOSSIBLE
			   : sample->stop.window     ? TRUTH_IN_WINDOW
						     : TRUTH_LEGAL;
	double before = own_us();
	struct judgement judgement = evaluation_judge(decoder_ruby(experiment->decoder), sample);

	evaluation_count(&tally->evaluation, &judgement, truth);
	tally->cpu_us -= own_us() - before;
}

static void count_sample(struct experiment *experiment, enum mode mode, const struct sample *sample)
{
	enum oracle_verdict verdict = ORACLE_LEGAL;
	struct trace_thread thread;
	bool holds;

	/* The main thread is reaped last: the process has ended. */
	if (sample->stop.reaped && sample->tid == experiment->watch.pid)
		watch_note_end(&experiment->watch, sample->stop.status);
	if (sample->gone || sample->no_stack) {
		experiment->tallies[mode].dropped++;
		return;
	}
	thread = decoder_decode(experiment->decoder, sample, &holds);
	if (!mode_is_in_kernel(mode) && (thread.reason == REASON_COMPACTED || thread.reason == REASON_COLLECTED))
		block_sampler_keep_pace(experiment->block_sampler);
	if (experiment->oracle && thread.verdict == VERDICT_COMPLETE)
		verdict = oracle_judge(experiment->oracle, thread.frames, thread.nr_frames);
	if (sample->source->unchecked && thread.verdict == VERDICT_COMPLETE)
		evaluate(experiment, mode, sample, verdict);
	tally_sample(&experiment->tallies[mode], sample, &thread, experiment->oracle, verdict);
	if (thread.verdict != VERDICT_COMPLETE || verdict != ORACLE_LEGAL || sample->stop.steps > 0)
		torn_log_add(experiment->torn_log, mode, sample, &thread, verdict);
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
	if (!last && ns_between(&shown, &now) < PROGRESS_NS)
		return;
	shown = now;
	for (int mode = 0; mode < MODES; mode++) {
		samples += experiment->tallies[mode].samples;
		rejected += experiment->tallies[mode].samples - experiment->tallies[mode].accepted;
	}
	fprintf(stderr, "\r\033[K");
	if (!last)
		fprintf(stderr, "rbdump: %.0f s, %llu samples, %llu rejected", seconds_since(&experiment->began),
			(unsigned long long)samples, (unsigned long long)rejected);
}

/* Sleeps; not beyond the end of the experiment. */
static void leave_undisturbed(const struct experiment *experiment, double seconds)
{
	double left = experiment->options->duration_s - seconds_since(&experiment->began);

	if (experiment->options->duration_s > 0 && left < seconds)
		seconds = left;
	while (seconds > 0 && !worker_stop) {
		double slice = seconds < SLICE_S ? seconds : SLICE_S;

		nanosleep(&(struct timespec){.tv_nsec = (long)(slice * 1e9)}, NULL);
		seconds -= slice;
	}
}

static void count_in_kernel(void *context, struct sample *sample)
{
	count_sample(context, MODE_KERNEL, sample);
	show_progress(context, false);
}

static struct error *take_block(struct experiment *experiment, enum mode mode, const struct block *block,
				struct block_result *ret)
{
	struct sample *sample;
	struct error *error;

	if (mode_is_in_kernel(mode))
		return kernel_blocks_run(experiment->kernel_blocks, block, &worker_stop, count_in_kernel, experiment,
					 ret);
	error = block_sampler_begin(experiment->block_sampler, block, &worker_stop);
	if (error)
		return error;
	while ((sample = block_sampler_next(experiment->block_sampler))) {
		count_sample(experiment, mode, sample);
		block_sampler_done(experiment->block_sampler);
		show_progress(experiment, false);
	}
	block_sampler_end(experiment->block_sampler, ret);
	return NULL;
}

static struct error *run_block(struct experiment *experiment, enum mode mode, uint64_t samples)
{
	struct tally *tally = &experiment->tallies[mode];
	const struct block block = {
	    .source = mode_source(mode),
	    .subjects = experiment->subjects.subjects,
	    .nr_subjects = experiment->subjects.count,
	    .first = experiment->subjects.count > 0 ? experiment->next_subject++ % experiment->subjects.count : 0,
	    .samples = samples,
	    .rate = experiment->options->rate,
	    .deadline = experiment->options->duration_s > 0
			    ? plus_ns(experiment->began, (long long)(experiment->options->duration_s * 1e9))
			    : (struct timespec){0},
	};
	struct block_result result = {0};
	struct timespec began;
	double progress_before = progress_now(experiment->progress), own_before = own_us();
	struct error *error = NULL;

	clock_gettime(CLOCK_MONOTONIC, &began);
	/* A process without threads is about to end, or to start some. */
	if (mode == MODE_UNDISTURBED || experiment->subjects.count == 0) {
		leave_undisturbed(experiment, (double)samples / experiment->options->rate);
		if (mode != MODE_UNDISTURBED)
			return NULL;
	} else {
		error = take_block(experiment, mode, &block, &result);
		if (error)
			return error;
	}
	tally->target_wall_us += seconds_since(&began) * 1e6;
	tally->progress += progress_now(experiment->progress) - progress_before;
	tally->late += result.late;
	experiment->facts.realtime |= result.realtime;
	tally->wall_us += result.wall_us;
	tally->cpu_us += result.cpu_us + own_us() - own_before;
	return NULL;
}

/* The chosen modes and the undisturbed one, in random order. Returns how many there are. */
static size_t shuffle(struct experiment *experiment, enum mode order[MODES])
{
	size_t count = 0;

	for (int mode = 0; mode < MODES; mode++)
		if (experiment->options->modes[mode] || mode == MODE_UNDISTURBED)
			order[count++] = (enum mode)mode;
	for (size_t i = count; i > 1; i--) {
		size_t j = (size_t)(random_next(&experiment->random) % i);
		enum mode mode = order[i - 1];

		order[i - 1] = order[j];
		order[j] = mode;
	}
	return count;
}

/* Tells why the memory of a target is gone. If it is ending, waits for its end, to get its status. */
static const char *look_where_it_went(struct experiment *experiment)
{
	struct timespec began;

	clock_gettime(CLOCK_MONOTONIC, &began);
	while (!watch_has_ended(&experiment->watch) && elapsed_ns(&began) < END_NS && !worker_stop) {
		if (!target_is_ending(experiment->session->target))
			return "target-execed";
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
	}
	return "target-exited";
}

/* Why the experiment is over, as in report_facts; NULL if it is not. */
static const char *is_over(struct experiment *experiment, uint64_t samples)
{
	const struct experiment_options *options = experiment->options;

	if (worker_stop)
		return "interrupted";
	if (watch_has_ended(&experiment->watch))
		return "target-exited";
	if (live_is_gone(experiment->session->target))
		return look_where_it_went(experiment);
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
		enum mode order[MODES];
		size_t count = shuffle(experiment, order);

		if (options->samples > 0 && options->samples - done < length)
			length = options->samples - done;
		for (size_t i = 0; i < count; i++) {
			struct error *error;

			if (!decoder_look_again(experiment->decoder))
				return error_no_memory();
			subjects_choose(&experiment->subjects, experiment->session, decoder_ruby(experiment->decoder));
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

/*
 * Prepares to sample in the kernel. If the kernel does not allow it, and the user has not asked for this mode by its name,
 * it is left out, and the report says why.
 */
static struct error *prepare_kernel(struct experiment *experiment)
{
	struct error *error = kernel_blocks_create(experiment->session, &experiment->options->sampler,
						   experiment->options->rate, &experiment->kernel_blocks);

	if (!error || !experiment->options->kernel_is_optional)
		return error;
	experiment->options->modes[MODE_KERNEL] = false;
	experiment->facts.no_kernel = strdup(error->message);
	error_destroy(error);
	return experiment->facts.no_kernel ? NULL : error_no_memory();
}

static struct error *prepare(struct experiment *experiment)
{
	const struct experiment_options *options = experiment->options;
	const struct session_options how = {.sampling = true, .offsets = options->offsets, .nearest = options->nearest};
	struct error *error = NULL;
	struct trace *trace = NULL;
	pid_t pid = options->pid;

	if (options->oracle)
		error = oracle_read(options->oracle, &experiment->oracle);
	if (!error)
		error = report_begin(options);
	if (!error && pid == 0)
		error = launch(options->command, getpgid(getppid()), &pid);
	if (error)
		return error;
	experiment->launched = pid == options->pid ? 0 : pid;
	error = pid == options->pid ? session_open(pid, &how, &experiment->session, &trace)
				    : launch_session(pid, &how, &worker_stop, &experiment->session);
	trace_destroy(trace);
	if (error)
		return error;
	open_files_allow();
	experiment->sampler = sampler_create(experiment->session, &options->sampler);
	if (experiment->sampler) {
		sampler_set_processing_thread(experiment->sampler, gettid());
		experiment->block_sampler = block_sampler_create(experiment->session, experiment->sampler);
	}
	experiment->decoder = decoder_create(experiment->session);
	if (!experiment->block_sampler || !experiment->decoder)
		return error_no_memory();
	for (int mode = 0; mode < MODES; mode++)
		if (!tally_init(&experiment->tallies[mode]))
			return error_no_memory();
	error = options->modes[MODE_KERNEL] ? prepare_kernel(experiment) : NULL;
	if (!error)
		error = progress_open(pid, options->progress, &experiment->progress);
	if (error)
		return error;
	experiment->facts.progress_unit = progress_unit(experiment->progress);
	watch_begin(&experiment->watch, pid, experiment->launched != 0);
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
	if (error || worker_stop == WORKER_ABANDON)
		return error;
	error = torn_log_close(experiment->torn_log, &experiment->facts.where);
	experiment->torn_log = NULL;
	experiment->facts.target_status = experiment->watch.has_status ? &experiment->watch.status : NULL;
	written = report_write(experiment->options, experiment->session, experiment->tallies, &experiment->facts);
	/* Writes what can be written, also after an error. The first error is returned. */
	if (error)
		error_destroy(written);
	return error ? error : written;
}

/* Waits until a target that rbdump has started ends, as a shell does. */
static void wait_for_own_target(struct experiment *experiment)
{
	unsigned int before = worker_signals;

	if (experiment->launched == 0 || experiment->watch.reaped || worker_stop == WORKER_ABANDON)
		return;
	/* One more signal ends the wait. */
	while (waitpid(experiment->launched, &experiment->watch.status, 0) < 0 && errno == EINTR &&
	       worker_signals == before)
		;
}

static int work(void *context)
{
	struct experiment experiment = {.options = context};
	int status = EXIT_COMPLETE;
	struct error *error;

	experiment.random = experiment.options->seed * 0x9e3779b97f4a7c15ULL + 1;
	error = run(&experiment);
	if (error)
		status = tell_error(error);
	fflush(NULL);
	subjects_clear(&experiment.subjects);
	wait_for_own_target(&experiment);
	torn_log_close(experiment.torn_log, NULL);
	for (int mode = 0; mode < MODES; mode++)
		tally_clear(&experiment.tallies[mode]);
	progress_close(experiment.progress);
	json_decref(experiment.facts.where);
	free(experiment.facts.no_kernel);
	decoder_destroy(experiment.decoder);
	block_sampler_destroy(experiment.block_sampler);
	kernel_blocks_destroy(experiment.kernel_blocks);
	sampler_destroy(experiment.sampler);
	session_close(experiment.session);
	oracle_destroy(experiment.oracle);
	return status;
}

int experiment_main(const struct experiment_options *options)
{
	struct experiment_options mine = *options;

	return worker_run(work, &mine);
}
