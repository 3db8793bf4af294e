#include "heap/flames_output.h"

#include <string.h>

#include "base/text.h"
#include "heap/heap_open.h"
#include "heap/heap_output.h"

/* What is written. */
struct writing {
	const struct heap_options *options;
	const struct flames *flames;
	struct flames_about about;
};

static bool write_frames(void *context, FILE *stream)
{
	const struct writing *writing = context;

	return writing->options->format == HEAP_COLLAPSED ? flames_write_collapsed(writing->flames, stream)
							  : flames_write_page(writing->flames, &writing->about, stream);
}

/* Joins the doubts, without the last full stop, which the page adds. */
static void add_doubts(const struct flames_look *look, struct text *text)
{
	const char *releases = session_nearest(look->session);

	if (releases)
		text_format(text, "The layout was not made for this release, but for %s: the output can be wrong",
			    releases);
	for (size_t i = 0; i < look->nr_doubts; i++) {
		const size_t length = strlen(look->doubts[i]);

		text_format(text, text->length > 0 ? ". " : "");
		text_add(text, look->doubts[i], length > 0 ? length - 1 : 0);
	}
}

struct error *flames_output(const struct heap_options *options, const struct flames *flames,
			    const struct flames_look *look)
{
	const struct session *session = look->session;
	struct text title = {0}, facts = {0}, remark = {0};
	struct writing writing = {options, flames};
	struct error *error;

	text_format(&title, "%s %d", session->target->operations->name, session->target->pid);
	text_format(&facts, "%s%s%s", session->description, session->description[0] ? " · " : "", look->how);
	add_doubts(look, &remark);
	writing.about = (struct flames_about){
	    .title = title.data,
	    .by = look->by,
	    .facts = facts.data,
	    .counts = look->counts,
	    .remark = remark.data,
	    .places = look->places,
	};
	error = title.failed || facts.failed || remark.failed ? error_no_memory()
							      : heap_output(options->output, write_frames, &writing);
	if (!error) {
		heap_open_print_nearest(session, "rbdump: ", stderr);
		for (size_t i = 0; i < look->nr_doubts; i++)
			fprintf(stderr, "rbdump: %s\n", look->doubts[i]);
	}
	text_clear(&title);
	text_clear(&facts);
	text_clear(&remark);
	return error;
}
