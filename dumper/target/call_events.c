#include "target/call_events.h"

#include <poll.h>

#include "base/signal_name.h"

const char *call_events(uint32_t events)
{
	static const char *const words[] = {"errors",	"read",		  "write",	     "read, write",
					    "priority", "read, priority", "write, priority", "read, write, priority"};
	const unsigned int reads = events & (POLLIN | POLLRDNORM | POLLRDHUP) ? 1 : 0;
	const unsigned int writes = events & (POLLOUT | POLLWRNORM) ? 2 : 0;

	return words[reads + writes + (events & POLLPRI ? 4 : 0)];
}

void call_add_signals(struct text *text, uint64_t set)
{
	for (int signal = 1; signal <= 64; signal++) {
		const char *name = signal_name(signal);

		if (!(set >> (signal - 1) & 1))
			continue;
		if (text->length > 0)
			text_format(text, ", ");
		if (name)
			text_format(text, "%s", name);
		else
			text_format(text, "%d", signal);
	}
}
