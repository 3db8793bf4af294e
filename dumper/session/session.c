#include "session/session.h"

#include <stdlib.h>

#include "mixed/mixed.h"

static bool lacks_page(const void *context, uint64_t page)
{
	const struct target *target = context;

	return target->operations->lacks_page(target, page);
}

struct memory *session_memory(const struct session *session)
{
	struct memory *memory = memory_create(target_read_pages, session->target, SESSION_PAGES);

	if (memory && session->target->operations->lacks_page)
		memory_set_lacking(memory, lacks_page, session->target);
	if (memory && !session->target->operations->runs)
		memory_count_own_time(memory);
	return memory;
}

const char *session_nearest(const struct session *session)
{
	return session->layout.source == LAYOUT_NEAREST ? session->releases : NULL;
}

void session_close(struct session *session)
{
	if (!session)
		return;
	layout_found_clear(&session->layout);
	mixed_destroy(session->mixed);
	native_ids_destroy(session->natives);
	memory_destroy(session->memory);
	module_close(session->module);
	target_close(session->target);
	free(session);
}
