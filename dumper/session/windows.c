#include "session/windows.h"

#include <string.h>

/*
 * Between two ranges of one window, the compiler may have put instructions of the code around the window. A thread that is
 * stopped in such a gap is still in the middle of the window. This is the most bytes of such a gap.
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
		/* A window that was inlined into another window lies within it. */
		if (address < high && high - window->low < length) {
			innermost = window;
			length = high - window->low;
		}
	}
	return innermost;
}
