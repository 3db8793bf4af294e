#include "experiment/witness.h"

#include "experiment/tally.h"
#include "vm/frame.h"

/* The deepest stack that is looked at. */
#define FRAMES_MAX 65536u

static void hear_call_sites(const struct ruby *ruby, const struct stack *stack, struct testimony *testimony)
{
	for (size_t i = 0; i + 1 < stack->nr_frames; i++) {
		enum call_site_verdict verdict = call_site_judge(ruby, &stack->frames[i + 1], &stack->frames[i]);

		if (i == 0)
			testimony->innermost = verdict;
		if (verdict == CALL_SITE_CONTRADICTS || testimony->any == CALL_SITE_UNDECIDED)
			testimony->any = verdict;
	}
}

struct testimony witness_hear(const struct ruby *ruby, const struct sample *sample)
{
	struct testimony testimony = {.reason = REASON_EC_UNREADABLE};
	struct ruby checked = *ruby;
	struct stack stack;

	checked.unchecked = false;
	shot_lay(sample->shot, checked.memory);
	if (stack_walk(&checked, sample->ec, sample->thread, FRAMES_MAX, &stack)) {
		testimony.reason = stack.reason;
		hear_call_sites(&checked, &stack, &testimony);
	}
	stack_clear(&stack);
	memory_overlay(checked.memory, NULL, 0, 0, 0);
	return testimony;
}

bool witness_init(struct witness *witness)
{
	bool made = true;

	*witness = (struct witness){0};
	for (int truth = 0; truth < TRUTHS; truth++) {
		witness->rejected[truth] = json_object();
		made = made && witness->rejected[truth];
	}
	return made;
}

void witness_clear(struct witness *witness)
{
	for (int truth = 0; truth < TRUTHS; truth++)
		json_decref(witness->rejected[truth]);
	*witness = (struct witness){0};
}

void witness_count(struct witness *witness, const struct testimony *testimony, enum truth truth)
{
	if (testimony->reason != REASON_NONE) {
		tally_count(witness->rejected[truth], validate_reason_name(testimony->reason));
		return;
	}
	witness->accepted[truth]++;
	witness->innermost[truth][testimony->innermost]++;
	witness->any[truth][testimony->any]++;
}

static json_t *verdicts_object(const uint64_t counts[CALL_SITE_VERDICTS])
{
	return json_pack("{s:I, s:I, s:I}", "undecided", (json_int_t)counts[CALL_SITE_UNDECIDED], "agrees",
			 (json_int_t)counts[CALL_SITE_AGREES], "contradicts",
			 (json_int_t)counts[CALL_SITE_CONTRADICTS]);
}

static json_t *truth_object(const struct witness *witness, enum truth truth)
{
	return json_pack("{s:I, s:O, s:{s:o, s:o}}", "accepted", (json_int_t)witness->accepted[truth], "rejected",
			 witness->rejected[truth], "call_site", "innermost", verdicts_object(witness->innermost[truth]),
			 "any", verdicts_object(witness->any[truth]));
}

json_t *witness_object(const struct witness *witness)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "unknown", truth_object(witness, TRUTH_UNKNOWN), "legal",
			 truth_object(witness, TRUTH_LEGAL), "impossible", truth_object(witness, TRUTH_IMPOSSIBLE),
			 "in_window", truth_object(witness, TRUTH_IN_WINDOW));
}
