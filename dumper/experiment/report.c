#include "experiment/report.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/releases.h"
#include "base/text.h"
#include "render/render.h"
#include "session/windows.h"

/* The most places that the table shows. */
#define PLACES_SHOWN 10u

/* ---- JSON */

static json_t *string_or_null(const char *text)
{
	return text && text[0] ? json_string(text) : json_null();
}

/* A share and its 95 % interval. */
static json_t *share(uint64_t count, uint64_t of)
{
	struct interval interval = interval_of_share(count, of);

	return json_pack("{s:f, s:f, s:f}", "value", of > 0 ? (double)count / (double)of : 0, "low", interval.low,
			 "high", interval.high);
}

static json_t *quantiles(const struct distribution *distribution)
{
	if (distribution_count(distribution) == 0)
		return json_null();
	return json_pack("{s:f, s:f, s:f, s:f}", "p50", distribution_quantile(distribution, 0.5), "p90",
			 distribution_quantile(distribution, 0.9), "p99", distribution_quantile(distribution, 0.99),
			 "max", distribution_max(distribution));
}

static json_t *impossible_of(const struct tally *tally, const char *const oracle)
{
	uint64_t count = tally_impossible(tally);
	struct interval interval = interval_of_share(count, tally->judged);

	if (!oracle)
		return json_null();
	return json_pack("{s:I, s:I, s:f, s:f, s:f}", "count", (json_int_t)count, "of", (json_int_t)tally->judged,
			 "value", tally->judged > 0 ? (double)count / (double)tally->judged : 0, "low", interval.low,
			 "high", interval.high);
}

static json_t *kinds_of(const struct tally *tally)
{
	json_t *kinds = json_object();

	for (int i = 0; i < ORACLE_VERDICTS; i++)
		if (i != ORACLE_LEGAL)
			json_object_set_new(kinds, oracle_verdict_name((enum oracle_verdict)i),
					    json_integer((json_int_t)tally->impossible[i]));
	return kinds;
}

/* The progress of the target per second, as a share of that in undisturbed blocks; negative if not known. */
static double progress_share(const struct tally *tally, const struct tally *undisturbed)
{
	if (tally->target_wall_us <= 0 || undisturbed->target_wall_us <= 0 || undisturbed->progress <= 0)
		return -1;
	return tally->progress / tally->target_wall_us / (undisturbed->progress / undisturbed->target_wall_us);
}

static double per_sample(double value, const struct tally *tally)
{
	return tally->samples > 0 ? value / (double)tally->samples : 0;
}

static double achieved_rate(const struct tally *tally)
{
	return tally->wall_us > 0 ? (double)tally->samples / tally->wall_us * 1e6 : 0;
}

/* The share of each reason. */
static json_t *shares_of(const json_t *counts, uint64_t of)
{
	json_t *shares = json_object();

	for (void *at = json_object_iter((json_t *)counts); at; at = json_object_iter_next((json_t *)counts, at))
		json_object_set_new(shares, json_object_iter_key(at),
				    share((uint64_t)json_integer_value(json_object_iter_value(at)), of));
	return shares;
}

static json_t *mode_object(enum mode mode, const struct tally *tally, const struct tally *undisturbed,
			   const char *oracle)
{
	double progress = progress_share(tally, undisturbed);
	uint64_t rejected = tally->samples - tally->accepted;
	json_t *object = json_pack(
	    "{s:s, s:I, s:I, s:o, s:o, s:O, s:o, s:I, s:I, s:O, s:O, s:o, s:o, s:o, s:{s:I, s:i}, s:{s:I, s:I, s:i, "
	    "s:f}, "
	    "s:o, "
	    "s:o, s:f, s:I, s:f, "
	    "s:o, s:o, s:O, s:O}",
	    "mode", mode_name(mode), "samples", (json_int_t)tally->samples, "accepted", (json_int_t)tally->accepted,
	    "accepted_share", share(tally->accepted, tally->samples), "accepted_in_budget",
	    mode_retries(mode) ? share(tally->in_budget, tally->samples) : json_null(), "rejected", tally->rejected,
	    "rejected_shares", shares_of(tally->rejected, tally->samples), "dropped", (json_int_t)tally->dropped,
	    "off_cpu", (json_int_t)tally->off_cpu, "retried", tally->retried, "soft", tally->soft, "rejected_share",
	    share(rejected, tally->samples), "impossible", impossible_of(tally, oracle), "impossible_kinds",
	    oracle ? kinds_of(tally) : json_null(), "tries", "total", (json_int_t)tally->tries, "max",
	    (int)tally->max_tries, "steps", "samples", (json_int_t)tally->stepped, "total", (json_int_t)tally->steps,
	    "max", (int)tally->max_steps, "us", tally->step_us, "pause_us", quantiles(tally->pause), "sample_us",
	    quantiles(tally->took), "cpu_us_per_sample", per_sample(tally->cpu_us, tally), "late",
	    (json_int_t)tally->late, "achieved_rate", achieved_rate(tally), "progress_share",
	    progress < 0 ? json_null() : json_real(progress), "checks",
	    mode_is_unchecked(mode) ? evaluation_object(&tally->evaluation) : json_null(), "depths", tally->depths,
	    "leaves", tally->leaves);

	return object;
}

/* How the target ended; null if rbdump did not start it, or it has not ended. */
static json_t *status_object(const int *status)
{
	if (!status)
		return json_null();
	if (WIFSIGNALED(*status))
		return json_pack("{s:n, s:i}", "exit_status", "signal", WTERMSIG(*status));
	return json_pack("{s:i, s:n}", "exit_status", WEXITSTATUS(*status), "signal");
}

static json_t *report_object(const struct experiment_options *options, const struct session *session,
			     const struct tally *tallies, const struct report_facts *facts)
{
	json_t *modes = json_array();

	for (int mode = 0; mode < MODES; mode++)
		if (options->modes[mode])
			json_array_append_new(modes, mode_object((enum mode)mode, &tallies[mode],
								 &tallies[MODE_UNDISTURBED], options->oracle));
	return json_pack(
	    "{s:i, s:s, s:i, s:o, s:o, s:s, s:o, s:{s:s, s:o}, s:b, s:f, s:I, s:i, s:b, s:s, s:f, s:s, s:o, s:I, s:s, "
	    "s:o, "
	    "s:O, s:o}",
	    "schema_version", 1, "tool", "rbdump " RBDUMP_VERSION, "pid", (int)session->target->pid, "ruby_version",
	    string_or_null(session->version), "ruby_description", string_or_null(session->description), "arch",
	    SESSION_ARCH, "build_id", string_or_null(session->module->build_id), "layout", "source",
	    trace_layout_source_name(session->layout.source), "releases", string_or_null(session_nearest(session)),
	    "windows_known", session_has_windows(session), "rate", options->rate, "seed", (json_int_t)options->seed,
	    "budget_us", (int)options->sampler.budget_us, "realtime", facts->realtime, "on_torn",
	    on_torn_name(options->sampler.on_torn), "duration_s", facts->duration_s, "ended", facts->ended,
	    "target_status", status_object(facts->target_status), "blocks", (json_int_t)facts->blocks, "progress_unit",
	    facts->progress_unit, "modes", modes, "where", facts->where, "no_kernel", string_or_null(facts->no_kernel));
}

static struct error *write_json(const char *path, const json_t *report)
{
	bool standard = strcmp(path, "-") == 0;
	FILE *file = standard ? stdout : fopen(path, "we");
	bool written = file && render_json_write(report, JSON_INDENT(1) | JSON_REAL_PRECISION(7), file) &&
		       fputc('\n', file) != EOF && fflush(file) == 0 && !ferror(file);
	struct error *error = NULL;

	if (!written)
		error = error_create(EXIT_FAILED, "the report %s cannot be written: %s",
				     standard ? "on standard output" : path, strerror(errno));
	if (file && !standard)
		fclose(file);
	return error;
}

/* ---- the table */

/*
 * Prints a share in percent, with three digits. A share of at least one half is printed with two digits of its
 * difference to 1: 99.982, not 100. The same as near() of bench/experiment_words.py.
 */
static void print_percent(double share)
{
	double lacks = 100 * (1 - share);
	int digits = lacks > 0 ? 1 - (int)floor(log10(lacks) + 1e-9) : 0;

	if (share < 0.5)
		printf("%.3g", 100 * share);
	else if (lacks < 1e-9)
		printf("100");
	else
		printf("%.*f", digits > 1 ? digits : 1, 100 * share);
}

static void print_interval(uint64_t count, uint64_t of)
{
	struct interval interval = interval_of_share(count, of);

	print_percent(interval.low);
	printf("–");
	print_percent(interval.high);
}

/* Prints a share in percent, with its interval. */
static void print_share(uint64_t count, uint64_t of)
{
	if (of == 0) {
		printf("  -");
		return;
	}
	printf("  ");
	print_percent((double)count / (double)of);
	printf("%% (");
	print_interval(count, of);
	printf(")");
}

static void print_reason(const char *name, uint64_t count, uint64_t of)
{
	printf("  %s %llu (", name, (unsigned long long)count);
	print_interval(count, of);
	printf("%%)");
}

static uint64_t rejected_by_checks(const struct evaluation *evaluation, enum truth truth)
{
	const json_t *rejected = evaluation->rejected[truth];
	uint64_t count = 0;

	for (void *at = json_object_iter((json_t *)rejected); at; at = json_object_iter_next((json_t *)rejected, at))
		count += (uint64_t)json_integer_value(json_object_iter_value(at));
	return count;
}

/* Prints what the checks say of stacks that a naive mode has accepted. */
static void print_checks(const struct evaluation *evaluation)
{
	static const struct {
		enum truth truth;
		const char *name;
	} lines[] = {{TRUTH_UNKNOWN, "stacks that were not compared with an oracle"},
		     {TRUTH_LEGAL, "legal stacks"},
		     {TRUTH_IMPOSSIBLE, "impossible stacks"},
		     {TRUTH_IN_WINDOW, "legal stacks of threads that were stopped in a torn window"}};
	const char *lead = "\n  checks      ";

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		enum truth truth = lines[i].truth;
		uint64_t rejected = rejected_by_checks(evaluation, truth), all = rejected + evaluation->accepted[truth];

		if (all == 0)
			continue;
		printf("%s%llu %s: %llu fail a check; in %llu others, the innermost frame does not match the call that "
		       "its caller was making",
		       lead, (unsigned long long)all, lines[i].name, (unsigned long long)rejected,
		       (unsigned long long)evaluation->innermost[truth][CALL_SITE_CONTRADICTS]);
		lead = "\n              ";
	}
}

static void print_mode(enum mode mode, const struct tally *tally, const struct tally *undisturbed, const char *oracle)
{
	double progress = progress_share(tally, undisturbed);

	printf("%s\n  samples     %llu, %.5g per second", mode_name(mode), (unsigned long long)tally->samples,
	       achieved_rate(tally));
	if (tally->late > 0)
		printf(", %llu late", (unsigned long long)tally->late);
	printf("\n  accepted  ");
	print_share(tally->accepted, tally->samples);
	printf("\n  rejected  ");
	print_share(tally->samples - tally->accepted, tally->samples);
	for (void *at = json_object_iter(tally->rejected); at; at = json_object_iter_next(tally->rejected, at))
		print_reason(json_object_iter_key(at), (uint64_t)json_integer_value(json_object_iter_value(at)),
			     tally->samples);
	if (oracle) {
		printf("\n  impossible");
		print_share(tally_impossible(tally), tally->judged);
		for (int i = 0; i < ORACLE_VERDICTS; i++)
			if (i != ORACLE_LEGAL && tally->impossible[i] > 0)
				printf("  %s %llu", oracle_verdict_name((enum oracle_verdict)i),
				       (unsigned long long)tally->impossible[i]);
	}
	if (mode_is_unchecked(mode))
		print_checks(&tally->evaluation);
	if (tally->dropped > 0)
		printf("\n  dropped     %llu, because the thread had no stack or had ended",
		       (unsigned long long)tally->dropped);
	if (tally->off_cpu > 0)
		printf("\n  other CPU   for %llu of the samples, rbdump could not move to the CPU of the thread",
		       (unsigned long long)tally->off_cpu);
	printf("\n  tries       %.3g per sample, %u at most", per_sample((double)tally->tries, tally),
	       tally->max_tries);
	if (tally->stepped > 0)
		printf("; %llu samples with single steps, %.3g steps per sample, %.4g µs per step",
		       (unsigned long long)tally->stepped, (double)tally->steps / (double)tally->stepped,
		       tally->step_us / (double)tally->steps);
	printf("\n  time        sample p50 %.3g p99 %.3g max %.4g µs", distribution_quantile(tally->took, 0.5),
	       distribution_quantile(tally->took, 0.99), distribution_max(tally->took));
	if (mode_pauses(mode))
		printf("; pause p50 %.3g p90 %.3g p99 %.3g max %.4g µs", distribution_quantile(tally->pause, 0.5),
		       distribution_quantile(tally->pause, 0.9), distribution_quantile(tally->pause, 0.99),
		       distribution_max(tally->pause));
	printf("\n  cost        %.3g µs of CPU time per sample", per_sample(tally->cpu_us, tally));
	if (progress >= 0)
		printf("; the target's progress was %.4g times its progress in undisturbed blocks", progress);
	printf("\n\n");
}

static void print_name(const char *name)
{
	text_print(name ? name : "?", stdout);
}

static void print_place(const json_t *place)
{
	const char *window = json_string_value(json_object_get(place, "window"));
	const char *file = json_string_value(json_object_get(place, "file"));
	const json_t *inlined = json_object_get(place, "inlined");

	printf("  %5.1f %%  %s  %s  ", 100 * json_real_value(json_object_get(place, "share")),
	       json_string_value(json_object_get(place, "mode")), json_string_value(json_object_get(place, "reason")));
	if (json_is_string(json_object_get(place, "function"))) {
		print_name(json_string_value(json_object_get(place, "function")));
		printf("+%lld  ", (long long)json_integer_value(json_object_get(place, "offset")));
	} else {
		printf("machine code without a symbol  ");
	}
	for (size_t i = 0; i < json_array_size(inlined); i++) {
		printf("%s", i > 0 ? " < " : "");
		print_name(json_string_value(json_array_get(inlined, i)));
	}
	if (file) {
		const char *slash = strrchr(file, '/');

		printf("  ");
		print_name(slash ? slash + 1 : file);
		printf(":%lld", (long long)json_integer_value(json_object_get(place, "line")));
	}
	printf("%s%s\n", window ? "  window " : "  not in a known torn window", window ? window : "");
}

static void print_where(const json_t *where)
{
	size_t count = json_array_size(where);

	if (count > 0)
		printf("where the threads of rejected and impossible samples were stopped\n");
	for (size_t i = 0; i < count && i < PLACES_SHOWN; i++)
		print_place(json_array_get(where, i));
	if (count > PLACES_SHOWN)
		printf("  … %zu more\n", count - PLACES_SHOWN);
}

/* Says that the layout is not for this release. */
static void print_nearest(const struct session *session)
{
	char releases[RELEASES_WORDS];

	printf("layout of %s, which is nearest to %s, but was not made for this release\n",
	       releases_words(session_nearest(session), releases), session->version);
}

/* Whether rbdump itself took samples, in any mode. */
static bool has_own_sampling(const struct experiment_options *options)
{
	for (int mode = 0; mode < MODES; mode++)
		if (options->modes[mode] && !mode_is_in_kernel((enum mode)mode))
			return true;
	return false;
}

static void print_table(const struct experiment_options *options, const struct session *session,
			const struct tally *tallies, const struct report_facts *facts)
{
	printf("process %d: ", session->target->pid);
	text_print(session->description, stdout);
	printf("\n%.1f s, %llu blocks at %g samples per second, ended by: %s; each share is followed by its 95 %% "
	       "interval\n",
	       facts->duration_s, (unsigned long long)facts->blocks, options->rate, facts->ended);
	if (session_nearest(session))
		print_nearest(session);
	if (!session_has_windows(session))
		printf("the torn windows of this build are not known: make a layout of this build from debug info "
		       "(rbdump layout)\n");
	if (facts->no_kernel)
		printf("the mode `kernel` is left out: %s\n", facts->no_kernel);
	if (!facts->realtime && has_own_sampling(options))
		printf("rbdump did not run at a real-time priority; for such a priority, rbdump needs CAP_SYS_NICE\n");
	printf("\n");
	for (int mode = 0; mode < MODES; mode++)
		if (options->modes[mode])
			print_mode((enum mode)mode, &tallies[mode], &tallies[MODE_UNDISTURBED], options->oracle);
	print_where(facts->where);
}

/* Checks whether a file can be written. Does not change its content; removes it if it was not there before. */
static struct error *try_to_write(const char *what, const char *path)
{
	struct stat found;
	bool made;
	int fd;

	/* If a FIFO were opened and closed, its reader would get an end of file. */
	if (stat(path, &found) == 0 && S_ISFIFO(found.st_mode))
		return NULL;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	made = fd >= 0;
	if (!made && errno == EEXIST)
		/* O_CREAT: for O_EXCL, a symbolic link exists even if its target does not. */
		fd = open(path, O_WRONLY | O_CREAT | O_NOCTTY | O_CLOEXEC, 0666);
	if (fd < 0)
		return error_create(EXIT_FAILED, "the %s %s cannot be written: %s", what, path, strerror(errno));
	close(fd);
	if (made)
		unlink(path);
	return NULL;
}

struct error *report_begin(const struct experiment_options *options)
{
	struct error *error = NULL;

	if (options->json && strcmp(options->json, "-") != 0)
		error = try_to_write("report", options->json);
	if (!error && options->torn_log)
		error = try_to_write("torn log", options->torn_log);
	return error;
}

struct error *report_write(const struct experiment_options *options, const struct session *session,
			   const struct tally *tallies, const struct report_facts *facts)
{
	struct error *error = NULL;

	if (!options->json || strcmp(options->json, "-") != 0) {
		print_table(options, session, tallies, facts);
		if (fflush(stdout) != 0 || ferror(stdout))
			error = error_create(EXIT_FAILED, "the output cannot be written: %s", strerror(errno));
	}
	if (options->json) {
		json_t *report = report_object(options, session, tallies, facts);
		struct error *second = report ? write_json(options->json, report) : error_no_memory();

		json_decref(report);
		/* Both are written if possible. The first error is returned. */
		if (error)
			error_destroy(second);
		else
			error = second;
	}
	return error;
}
