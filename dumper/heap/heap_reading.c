#include "heap/heap_reading.h"

#include "heap/heap_open.h"

bool heap_reading_begin(const struct session *session, struct heap_reading *ret)
{
	*ret = (struct heap_reading){.session = session, .ruby = session->ruby};
	ret->ruby.memory = NULL;
	return data_files_read(session->target, &ret->files);
}

void heap_reading_forget(struct heap_reading *reading)
{
	heap_roots_clear(&reading->roots);
	heap_walk_clear(&reading->walk);
	memory_destroy(reading->ruby.memory);
	reading->ruby.memory = NULL;
}

void heap_reading_clear(struct heap_reading *reading)
{
	heap_reading_forget(reading);
	data_files_clear(&reading->files);
}

bool heap_reading_prepare(struct heap_reading *reading, bool runs, uint64_t deadline_ns)
{
	struct target *target = reading->session->target;

	heap_reading_forget(reading);
	reading->ruby.memory = session_memory(reading->session);
	if (!reading->ruby.memory || !collections_now(&reading->ruby, target_read_pages, target, &reading->before) ||
	    !heap_walk_begin(&reading->ruby, target_read_pages, target, runs, target->operations->runs, &reading->walk))
		return false;
	if (deadline_ns != 0)
		reading->walk.deadline_ns = deadline_ns;
	heap_open_limit(target, &reading->walk);
	return true;
}

bool heap_reading_roots(struct heap_reading *reading)
{
	return heap_roots_read(&reading->walk.lasting, reading->session->module, &reading->files, target_read_pages,
			       reading->session->target, reading->walk.deadline_ns, &reading->roots);
}

bool heap_reading_collected(const struct heap_reading *reading, bool *ret)
{
	struct collections after;

	if (!collections_now(&reading->ruby, target_read_pages, reading->session->target, &after))
		return false;
	*ret = !collections_same_objects(&reading->before, &after);
	return true;
}
