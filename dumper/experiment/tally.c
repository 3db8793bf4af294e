#include "experiment/tally.h"

#include <stdio.h>
#include <string.h>

#include "experiment/counts.h"

bool tally_init(struct tally *tally)
{
	*tally = (struct tally){
	    .rejected = json_object(),
	    .retried = json_object(),
	    .soft = json_object(),
	    .depths = json_object(),
	    .leaves = json_object(),
	    .pause = distribution_create(),
	    .took = distribution_create(),
	};
	return evaluation_init(&tally->evaluation) && tally->rejected && tally->retried && tally->soft &&
	       tally->depths && tally->leaves && tally->pause && tally->took;
}

void tally_clear(struct tally *tally)
{
	evaluation_clear(&tally->evaluation);
	json_decref(tally->rejected);
	json_decref(tally->retried);
	json_decref(tally->soft);
	json_decref(tally->depths);
	json_decref(tally->leaves);
	distribution_destroy(tally->pause);
	distribution_destroy(tally->took);
	*tally = (struct tally){0};
}

/* Whether a frame of Ruby code has no line: YJIT leaves the pc of the innermost frame unset. */
static bool lacks_line(const struct trace_thread *thread)
{
	for (size_t i = 0; i < thread->nr_frames; i++)
		if (thread->frames[i].kind == TRACE_RUBY && !thread->frames[i].has_line)
			return true;
	return false;
}

void tally_sample(struct tally *tally, const struct sample *sample, const struct trace_thread *thread, bool judged,
		  enum oracle_verdict oracle)
{
	char depth[32];

	tally->samples++;
	tally->tries += sample->effort.tries;
	tally->off_cpu += sample->effort.off_cpu;
	for (size_t i = 0; i < REASONS; i++)
		for (unsigned int n = sample->effort.retried[i]; n > 0; n--)
			counts_add(tally->retried, validate_reason_name((enum reason)i));
	if (sample->effort.tries > tally->max_tries)
		tally->max_tries = sample->effort.tries;
	if (sample->stop.steps > 0) {
		tally->stepped++;
		tally->steps += sample->stop.steps;
		tally->step_us += sample->stop.step_us;
		if (sample->stop.steps > tally->max_steps)
			tally->max_steps = sample->stop.steps;
	}
	if (sample->source->pauses)
		distribution_add(tally->pause, sample->stop.pause_us);
	distribution_add(tally->took, sample->effort.took_us);
	if (thread->verdict != VERDICT_COMPLETE) {
		counts_add(tally->rejected, validate_reason_name(thread->reason));
		return;
	}
	tally->accepted++;
	tally->in_budget += sample->effort.in_budget;
	if (lacks_line(thread))
		counts_add(tally->soft, validate_reason_name(REASON_PC_OUTSIDE));
	if (judged) {
		tally->judged++;
		tally->impossible[oracle] += oracle != ORACLE_LEGAL;
	}
	snprintf(depth, sizeof(depth), "%zu", thread->nr_frames);
	counts_add(tally->depths, depth);
	if (thread->nr_frames > 0 && thread->frames[0].name)
		counts_add(tally->leaves, thread->frames[0].name);
}

uint64_t tally_impossible(const struct tally *tally)
{
	uint64_t count = 0;

	for (size_t i = 0; i < ORACLE_VERDICTS; i++)
		count += tally->impossible[i];
	return count;
}
