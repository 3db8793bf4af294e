#include "layouts.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout/read.h"

/* Not *.layout: that would take in what this machine has generated for a build of its own. */
#define PATTERN "offsets.d/*-x86_64.layout"

enum { LAYOUTS_MAX = 64 };

static struct layout *layouts[LAYOUTS_MAX];
static char *texts[LAYOUTS_MAX];
static size_t nr_layouts;

static void clear(void)
{
	for (size_t i = 0; i < nr_layouts; i++) {
		layout_destroy(layouts[i]);
		free(texts[i]);
	}
}

static char *read_text(FILE *file)
{
	char *text = NULL, line[1100];
	size_t length;
	FILE *stream = open_memstream(&text, &length);

	rewind(file);
	if (!stream)
		abort();
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, "digest ", strlen("digest ")) != 0)
			fputs(line, stream);
	fclose(stream);
	return text;
}

/* Programs are made for the Rubies since 2.7 (program.c): execution contexts, lines by rank, call data. */
static bool has_program(const struct layout *layout)
{
	return layout_has(layout, F_thread_ec) && layout_has(layout, F_body_succ_index_table) &&
	       layout_has(layout, F_call_data_ci);
}

/* Whether two layouts have the same facts, wherever they say that things are: patch releases of one series do. */
static bool same_kind(const struct layout *a, const struct layout *b)
{
	for (size_t i = 0; i < LAYOUT_STRUCTS; i++)
		if (a->sizes[i].present != b->sizes[i].present || a->struct_alternative[i] != b->struct_alternative[i])
			return false;
	for (size_t i = 0; i < LAYOUT_MEMBERS; i++)
		if (layout_has(a, i) != layout_has(b, i) || a->members[i].alternative != b->members[i].alternative)
			return false;
	for (size_t i = 0; i < LAYOUT_ENUMERATORS; i++)
		if (a->enumerators[i].present != b->enumerators[i].present)
			return false;
	return memcmp(a->functions, b->functions, sizeof(a->functions)) == 0;
}

static bool has_kind(const struct layout *layout)
{
	for (size_t i = 0; i < nr_layouts; i++)
		if (same_kind(layout, layouts[i]))
			return true;
	return false;
}

static void read_layouts(void)
{
	glob_t found;

	if (glob(PATTERN, 0, NULL, &found) != 0 || found.gl_pathc > LAYOUTS_MAX) {
		fputs("fuzz: no " PATTERN " here, or too many: run it at the top of the sources\n", stderr);
		exit(EXIT_FAILURE);
	}
	atexit(clear);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		FILE *file = fopen(found.gl_pathv[i], "re");
		struct error *wrong = NULL;

		if (file)
			wrong = layout_read(file, &layouts[nr_layouts]);
		if (!file || wrong) {
			fprintf(stderr, "fuzz: %s: %s\n", found.gl_pathv[i], wrong ? wrong->message : "cannot be read");
			exit(EXIT_FAILURE);
		}
		if (!has_program(layouts[nr_layouts]) || has_kind(layouts[nr_layouts])) {
			layout_destroy(layouts[nr_layouts]);
		} else {
			texts[nr_layouts] = read_text(file);
			nr_layouts++;
		}
		fclose(file);
	}
	globfree(&found);
}

size_t layouts_count(void)
{
	if (nr_layouts == 0)
		read_layouts();
	if (nr_layouts == 0)
		abort();
	return nr_layouts;
}

const struct layout *layouts_get(size_t index)
{
	return layouts[index % layouts_count()];
}

const char *layouts_text(size_t index)
{
	return texts[index % layouts_count()];
}
