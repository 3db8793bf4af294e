#include "locks.h"

static uint64_t rounded(const struct layout *layout, enum layout_struct_id id)
{
	return ((uint64_t)layout->sizes[id].value + 7) / 8 * 8;
}

uint64_t locks_frame(const struct layout *layout, enum lock_frame frame)
{
	return IMAGE_HEAP + (uint64_t)frame * rounded(layout, S_cfp);
}

uint64_t locks_thread(const struct layout *layout)
{
	return locks_frame(layout, LOCK_FRAMES);
}

uint64_t locks_context(const struct layout *layout)
{
	return locks_thread(layout) + rounded(layout, S_thread);
}

bool locks_are_complete(const struct layout *layout)
{
	const bool has_list = layout_has(layout, F_mutex_nr_waiting) ||
			      (layout_has(layout, F_mutex_waitq) && layout_has(layout, F_waiter_node) &&
			       layout_has(layout, F_waiter_th) && layout_has(layout, F_list_node_next));
	const bool has_owner = layout_has(layout, F_mutex_ec_serial) || layout_has(layout, F_mutex_fiber) ||
			       layout_has(layout, F_mutex_th);

	return has_list && has_owner && layout_has(layout, F_cfp_self) && layout_has(layout, F_data_type_name) &&
	       layout_has(layout, F_thread_keeping_mutexes) && layout_has(layout, F_mutex_next);
}
