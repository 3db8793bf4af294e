#include "session/rivals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "render/render.h"
#include "trace/wait_graph.h"

bool rivals_begin(struct rivals *rivals, const struct session *session)
{
	rivals->differs = NULL;
	for (size_t i = 0; i < rivals->count; i++) {
		struct rival *rival = &rivals->of[i];

		if (!rival->view)
			rival->view = malloc(sizeof(*rival->view));
		if (!rival->view)
			return false;
		*rival->view = *session;
		rival->view->layout = rival->layout;
		rival->view->rivals = NULL;
		look_clear(&rival->look);
		rival->look.ruby = rival->ruby;
		rival->look.ruby.layout = rival->layout.layout;
		rival->look.ruby.memory = session->memory;
	}
	return true;
}

void rivals_look(struct rivals *rivals, long limit_ns)
{
	for (size_t i = 0; i < rivals->count; i++)
		look_once(rivals->of[i].view, &rivals->of[i].look, limit_ns);
}

/* All that would be printed of a trace that has no header yet, malloc'ed; NULL if there is not enough memory. */
static char *show(struct trace *trace)
{
	char *text = NULL;
	size_t length;
	FILE *stream = wait_graph_find(trace) ? open_memstream(&text, &length) : NULL;
	bool written = stream && render_json(trace, stream);

	if (!stream || fclose(stream) != 0 || !written) {
		free(text);
		return NULL;
	}
	return text;
}

const struct rival *rivals_compare(struct rivals *rivals, struct look *look)
{
	char *shown = look->trace ? show(look->trace) : NULL;
	const struct rival *differs = NULL;

	look->no_memory |= !shown;
	for (size_t i = 0; shown && !differs && i < rivals->count; i++) {
		struct rival *rival = &rivals->of[i];
		char *other = rival->look.trace && !rival->look.no_memory ? show(rival->look.trace) : NULL;

		look->no_memory |= !other;
		if (other && !(rival->look.refused && !rival->view->no_stop) && strcmp(shown, other) != 0)
			differs = rival;
		free(other);
	}
	free(shown);
	return differs;
}

void rivals_clear(struct rivals *rivals)
{
	for (size_t i = 0; i < rivals->count; i++) {
		layout_found_clear(&rivals->of[i].layout);
		look_clear(&rivals->of[i].look);
		free(rivals->of[i].view);
	}
	*rivals = (struct rivals){0};
}
