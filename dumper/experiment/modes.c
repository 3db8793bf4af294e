#include "experiment/modes.h"

#include "experiment/naive_sources.h"

const struct source *mode_source(enum mode mode)
{
	static const struct source *const sources[MODES] = {
	    [MODE_UNPAUSED_NAIVE] = &source_unpaused_naive,
	    [MODE_UNPAUSED_ONCE] = &source_unpaused_once,
	    [MODE_UNPAUSED_DOUBLE] = &source_double,
	    [MODE_UNPAUSED] = &source_unpaused,
	    [MODE_PAUSED_NAIVE] = &source_paused_naive,
	    [MODE_PAUSED] = &source_paused,
	    [MODE_KERNEL] = &source_kernel,
	};

	return sources[mode];
}

const char *mode_name(enum mode mode)
{
	const struct source *source = mode_source(mode);

	return source ? source->name : "undisturbed";
}

bool mode_pauses(enum mode mode)
{
	return mode_source(mode) && mode_source(mode)->pauses;
}

bool mode_retries(enum mode mode)
{
	return mode_source(mode) && mode_source(mode)->retries;
}

bool mode_is_unchecked(enum mode mode)
{
	return mode_source(mode) && mode_source(mode)->unchecked;
}

bool mode_is_in_kernel(enum mode mode)
{
	return mode_source(mode) && mode_source(mode)->in_kernel;
}
