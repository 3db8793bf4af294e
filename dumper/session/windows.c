#include "session/windows.h"

#include <string.h>

/*
 * Between two ranges of one window the compiler has put instructions of the code around it: a thread that is stopped
 * there is still in the middle. So many bytes at most are taken for such.
 */
#define WINDOW_GAP 64u

bool session_has_windows(const struct session *session)
{
	const struct layout *layout = session->layout.layout;

	return layout->nr_windows > 0 && layout->build_id && session->module->build_id &&
	       strcmp(layout->build_id, session->module->build_id) == 0;
}

const struct layout_window *session_window(const struct session *session, uint64_t ip)
{
	const struct layout *layout = session->layout.layout;
	const struct layout_window *innermost = NULL;
	uint64_t address = ip - session->module->bias, length = UINT64_MAX;

	if (!session_has_windows(session))
		return NULL;
	for (size_t i = 0; i < layout->nr_windows; i++) {
		const struct layout_window *window = &layout->windows[i];
		uint64_t high = window->high;

		if (address < window->low || (address >= high && address - high >= WINDOW_GAP))
			continue;
		if (i + 1 < layout->nr_windows && window[1].id == window->id && window[1].low > high &&
		    window[1].low - high <= WINDOW_GAP && strcmp(window[1].function, window->function) == 0)
			high = window[1].low;
		/* One that was inlined into another lies within it. */
		if (address < high && high - window->low < length) {
			innermost = window;
			length = high - window->low;
		}
	}
	return innermost;
}
