#include "sampling/watched.h"

#include <string.h>

#include "base/array.h"

struct watched *watched_find(struct watched_list *list, uint64_t thread, uint64_t ec, bool *added)
{
	const size_t at = array_first(list->of, list->count, one, one->subject.extent.thread >= thread);

	*added = at == list->count || list->of[at].subject.extent.thread != thread;
	if (!*added)
		return &list->of[at];
	if (!array_make_room(list->of, list->capacity, list->count + 1))
		return NULL;
	memmove(&list->of[at + 1], &list->of[at], (list->count - at) * sizeof(*list->of));
	list->count++;
	list->of[at] = (struct watched){
	    .subject = {.task = TASK_CLOSED, .extent = {.thread = thread, .ec = ec}},
	    .event = {.ring = {.fd = -1}},
	};
	return &list->of[at];
}
