#include "experiment/tally.h"

#include <stdio.h>
#include <string.h>

/* The most different keys of one kind. */
#define KEYS_MAX 20000u

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
	return witness_init(&tally->witness) && tally->rejected && tally->retried && tally->soft && tally->depths &&
	       tally->leaves && tally->pause && tally->took;
}

void tally_clear(struct tally *tally)
{
	witness_clear(&tally->witness);
	json_decref(tally->rejected);
	json_decref(tally->retried);
	json_decref(tally->soft);
	json_decref(tally->depths);
	json_decref(tally->leaves);
	distribution_destroy(tally->pause);
	distribution_destroy(tally->took);
	*tally = (struct tally){0};
}

void tally_count(json_t *counts, const char *key)
{
	json_t *count = json_object_get(counts, key);

	if (!count && json_object_size(counts) >= KEYS_MAX) {
		key = "(others)";
		count = json_object_get(counts, key);
	}
	if (count)
		json_integer_set(count, json_integer_value(count) + 1);
	else
		json_object_set_new(counts, key, json_integer(1));
}

/* Whether a frame of Ruby code was at no place in it: YJIT leaves the pc of the innermost one unset. */
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
	tally->tries += sample->tries;
	tally->off_cpu += sample->off_cpu;
	for (size_t i = 0; i < REASONS; i++)
		for (unsigned int n = sample->retried[i]; n > 0; n--)
			tally_count(tally->retried, validate_reason_name((enum reason)i));
	if (sample->tries > tally->max_tries)
		tally->max_tries = sample->tries;
	if (sample->steps > 0) {
		tally->stepped++;
		tally->steps += sample->steps;
		tally->step_us += sample->step_us;
		if (sample->steps > tally->max_steps)
			tally->max_steps = sample->steps;
	}
	if (sample_mode_pauses(sample->mode))
		distribution_add(tally->pause, sample->pause_us);
	distribution_add(tally->took, sample->took_us);
	if (thread->verdict != VERDICT_COMPLETE) {
		tally_count(tally->rejected, validate_reason_name(thread->reason));
		return;
	}
	tally->accepted++;
	tally->in_budget += sample->in_budget;
	if (lacks_line(thread))
		tally_count(tally->soft, validate_reason_name(REASON_PC_OUTSIDE));
	if (judged) {
		tally->judged++;
		tally->impossible[oracle] += oracle != ORACLE_LEGAL;
	}
	snprintf(depth, sizeof(depth), "%zu", thread->nr_frames);
	tally_count(tally->depths, depth);
	if (thread->nr_frames > 0 && thread->frames[0].name)
		tally_count(tally->leaves, thread->frames[0].name);
}

uint64_t tally_impossible(const struct tally *tally)
{
	uint64_t count = 0;

	for (size_t i = 0; i < ORACLE_VERDICTS; i++)
		count += tally->impossible[i];
	return count;
}
