#include <inttypes.h>
#include <stdio.h>

#include "heap/heap_open.h"
#include "heap/numbers.h"
#include "heap/why_answer.h"

/* What the rows are written to. */
struct text_rows {
	const struct why_answer *answer;
	FILE *stream;
};

static void write_head(const struct graph_look *look, FILE *stream)
{
	const char *doubts[GRAPH_LOOK_DOUBTS];
	const size_t nr_doubts = graph_look_doubts(look, doubts);
	char objects[NUMBER];

	number_text(look->graph.objects, objects);
	fprintf(stream, "%s %d: %s live objects\n", look->session->target->operations->name, look->session->target->pid,
		objects);
	heap_open_print_nearest(look->session, "", stream);
	for (size_t i = 0; i < nr_doubts; i++)
		fprintf(stream, "%s\n", doubts[i]);
}

/* Why a path can be missing although there is one. */
static void write_doubts(const struct graph_look *look, FILE *stream)
{
	const struct heap_graph *graph = &look->graph;
	char unknown[NUMBER];

	fputs("rbdump does not look for the blocks of at_exit and trace_var.\n", stream);
	number_text(graph->unknown, unknown);
	if (graph->unknown > 0)
		fprintf(stream,
			"%s objects may have more references than rbdump finds; most are T_DATA, whose references only "
			"C code knows.\n",
			unknown);
}

/* Appends one object, and how another one refers to it. */
static void add_step(struct graph_look *look, uint32_t parent, uint32_t node, struct text *text)
{
	if (parent != GRAPH_NONE) {
		const enum ref_certainty certainty = graph_look_add_label(look, parent, node, text);

		if (text->length > 0)
			text_format(text, "%s → ", ref_certainty_note(certainty));
	}
	heap_graph_add_text(&look->graph, &look->reading.walk, node, text);
}

static void write_line(struct text *text, FILE *stream)
{
	text_print(text->data ? text->data : "?", stream);
	fputc('\n', stream);
	text_clear(text);
}

static void write_row(void *context, const struct tree_row *row, unsigned int depth)
{
	const struct text_rows *rows = context;
	const struct why_answer *answer = rows->answer;
	struct graph_look *look = answer->look;
	const uint64_t total = answer->rows.total;
	char weight[NUMBER], objects[NUMBER];
	struct text text = {0};

	if (answer->name)
		number_text(row->weight, weight);
	else
		number_bytes(row->weight, weight);
	number_text(row->objects, objects);
	fprintf(rows->stream, "%12s %5.1f%% %12s  %*s", weight,
		total > 0 ? 100.0 * (double)row->weight / (double)total : 0, objects, (int)(2 * depth), "");
	if (row->node == GRAPH_NONE)
		kinds_add_name(&look->reading.walk.lasting, &census_group(look->graph.census, row->group)->kind,
			       row->group, &text);
	else
		add_step(look, row->parent, row->node, &text);
	write_line(&text, rows->stream);
}

static void write_list(void *context, uint64_t more, unsigned int depth)
{
	const struct text_rows *rows = context;
	char number[NUMBER];

	number_text(more, number);
	fprintf(rows->stream, "%12s %6s %12s  %*s… %s more, each kept by the one before\n", "", "", "",
		(int)(2 * depth), "", number);
}

static void write_left_out(void *context, unsigned int depth)
{
	const struct text_rows *rows = context;

	fprintf(rows->stream, "%12s %6s %12s  %*s…\n", "", "", "", (int)(2 * depth), "");
}

static void end_row(void *context)
{
	(void)context;
}

static struct error *write_tree_text(const struct why_answer *answer, FILE *stream)
{
	struct text_rows rows = {answer, stream};
	const struct tree_writer writer = {write_row, write_list, write_left_out, end_row, &rows};

	fprintf(stream, "%12s %6s %12s\n", answer->name ? "leads to" : "retained", "%", "objects");
	return tree_rows_each(&answer->rows, &writer) ? NULL : error_no_memory();
}

/* What an object may be to which no path leads. */
static const char *why_not(const struct graph_look *look)
{
	return look->reading.walk.incomplete ? "garbage, or kept alive by something that was not read" : "garbage";
}

static void write_path_text(const struct why_answer *answer, FILE *stream)
{
	struct graph_look *look = answer->look;

	fputc('\n', stream);
	if (answer->length == 0) {
		fprintf(stream, "No path from a known root leads to the object. It may be %s.\n", why_not(look));
		write_doubts(look, stream);
	}
	for (size_t i = 0; i < answer->length; i++) {
		struct text text = {0};
		size_t next;

		if (why_leaves_out(answer, i, &next)) {
			char left_out[NUMBER];

			number_text(next - i, left_out);
			fprintf(stream, "  … %s objects that are not printed …\n", left_out);
			i = next;
		}
		add_step(look, look->paths[answer->path[i]], answer->path[i], &text);
		fputs("  ", stream);
		write_line(&text, stream);
	}
}

static void write_found(const struct why_answer *answer, FILE *stream)
{
	char all[NUMBER], others[NUMBER];

	number_text(answer->found, all);
	number_text(answer->found - answer->reached, others);
	fprintf(stream, "%s %s of %s; paths lead from the known roots to ", all,
		answer->found == 1 ? "object" : "objects", answer->name);
	if (answer->reached == answer->found) {
		fputs(answer->found == 1 ? "it\n" : "all of them\n", stream);
	} else {
		fprintf(stream, "all except %s, which may be %s\n", others, why_not(answer->look));
		write_doubts(answer->look, stream);
	}
}

struct error *why_text(const struct why_answer *answer, FILE *stream)
{
	char total[NUMBER];

	write_head(answer->look, stream);
	if (answer->object != 0) {
		write_path_text(answer, stream);
		return NULL;
	}
	if (answer->name) {
		write_found(answer, stream);
		if (answer->reached == 0)
			return NULL;
		fputc('\n', stream);
	} else {
		number_bytes(answer->rows.total, total);
		fprintf(stream, "%s can be reached from the known roots\n\n", total);
	}
	return write_tree_text(answer, stream);
}
