#include "record/thread_name.h"

#include "base/text.h"
#include "ruby/value.h"

/* The most pages that are read for the name of a thread. */
#define NAME_PAGES 8u

char *thread_name_read(const struct session *session, uint64_t value)
{
	struct memory *memory = memory_create(target_read_pages, session->target, NAME_PAGES);
	struct ruby ruby = session->ruby;
	struct text text = {0};

	ruby.memory = memory;
	if (memory && value_is_object(value)) {
		struct access access = ruby_access(&ruby);

		if (!value_append_shortened(&text, &access, value, VALUE_NAME_MAX) || text.failed)
			text_clear(&text);
	}
	memory_destroy(memory);
	return text.data;
}
