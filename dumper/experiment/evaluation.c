#include "experiment/evaluation.h"

#include "experiment/counts.h"
#include "ruby/frame.h"

/* The most frames of a stack. */
#define FRAMES_MAX 65536u

static void hear_call_sites(const struct ruby *ruby, const struct stack *stack, struct judgement *judgement)
{
	for (size_t i = 0; i + 1 < stack->nr_frames; i++) {
		enum call_site_verdict verdict = call_site_judge(ruby, &stack->frames[i + 1], &stack->frames[i]);

		if (i == 0)
			judgement->innermost = verdict;
		if (verdict == CALL_SITE_CONTRADICTS || judgement->any == CALL_SITE_UNDECIDED)
			judgement->any = verdict;
	}
}

struct judgement evaluation_judge(const struct ruby *ruby, const struct sample *sample)
{
	struct judgement judgement = {.reason = REASON_EC_UNREADABLE};
	struct ruby checked = *ruby;
	struct stack stack;

	checked.unchecked = false;
	stack_copy_lay(sample->copy, checked.memory);
	if (stack_walk(&checked, sample->ec, sample->thread, FRAMES_MAX, &stack)) {
		judgement.reason = stack.reason;
		hear_call_sites(&checked, &stack, &judgement);
	}
	stack_clear(&stack);
	memory_overlay(checked.memory, NULL, 0, 0, 0);
	return judgement;
}

bool evaluation_init(struct evaluation *evaluation)
{
	bool made = true;

	*evaluation = (struct evaluation){0};
	for (int truth = 0; truth < TRUTHS; truth++) {
		evaluation->rejected[truth] = json_object();
		made = made && evaluation->rejected[truth];
	}
	return made;
}

void evaluation_clear(struct evaluation *evaluation)
{
	for (int truth = 0; truth < TRUTHS; truth++)
		json_decref(evaluation->rejected[truth]);
	*evaluation = (struct evaluation){0};
}

void evaluation_count(struct evaluation *evaluation, const struct judgement *judgement, enum truth truth)
{
	if (judgement->reason != REASON_NONE) {
		counts_add(evaluation->rejected[truth], validate_reason_name(judgement->reason));
		return;
	}
	evaluation->accepted[truth]++;
	evaluation->innermost[truth][judgement->innermost]++;
	evaluation->any[truth][judgement->any]++;
}

static json_t *verdicts_object(const uint64_t counts[CALL_SITE_VERDICTS])
{
	return json_pack("{s:I, s:I, s:I}", "undecided", (json_int_t)counts[CALL_SITE_UNDECIDED], "agrees",
			 (json_int_t)counts[CALL_SITE_AGREES], "contradicts",
			 (json_int_t)counts[CALL_SITE_CONTRADICTS]);
}

static json_t *truth_object(const struct evaluation *evaluation, enum truth truth)
{
	return json_pack("{s:I, s:O, s:{s:o, s:o}}", "accepted", (json_int_t)evaluation->accepted[truth], "rejected",
			 evaluation->rejected[truth], "call_site", "innermost",
			 verdicts_object(evaluation->innermost[truth]), "any", verdicts_object(evaluation->any[truth]));
}

json_t *evaluation_object(const struct evaluation *evaluation)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "unknown", truth_object(evaluation, TRUTH_UNKNOWN), "legal",
			 truth_object(evaluation, TRUTH_LEGAL), "impossible",
			 truth_object(evaluation, TRUTH_IMPOSSIBLE), "in_window",
			 truth_object(evaluation, TRUTH_IN_WINDOW));
}
