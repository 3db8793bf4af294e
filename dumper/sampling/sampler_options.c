#include "sampling/sampler_options.h"

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
