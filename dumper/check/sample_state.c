#include "check/sample_state.h"

#include <string.h>

static const char *const state_names[SAMPLE_STATES] = {
    [SAMPLE_CPU] = "cpu",	    [SAMPLE_GC] = "gc",
    [SAMPLE_GVL] = "gvl",	    [SAMPLE_BLOCKED] = "blocked",
    [SAMPLE_SLEEPING] = "sleeping", [SAMPLE_STARTING] = "starting",
    [SAMPLE_STOPPED] = "stopped",   [SAMPLE_PAGING] = "paging",
    [SAMPLE_RUNNABLE] = "runnable",
};

const char *sample_state_name(enum sample_state state)
{
	return state_names[state];
}

bool sample_state_parse(const char *name, enum sample_state *ret)
{
	for (int state = 0; state < SAMPLE_STATES; state++) {
		if (strcmp(name, state_names[state]) == 0) {
			*ret = (enum sample_state)state;
			return true;
		}
	}
	return false;
}
