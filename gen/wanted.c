#include "gen/wanted.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "layout/layout.h"

/* Open addressing; at most half full. The size is a power of two. */
struct wanted_table {
	size_t size;
	struct wanted *slots; /* a free one has no name */
};

static const struct {
	const struct layout_spec *specs;
	size_t count;
} kinds[] = {
    [WANTED_STRUCT] = {layout_struct_specs, LAYOUT_STRUCTS},
    [WANTED_ENUMERATOR] = {layout_enumerator_specs, LAYOUT_ENUMERATORS},
    [WANTED_CONSTANT] = {layout_constant_specs, LAYOUT_CONSTANTS},
    [WANTED_SYMBOL] = {layout_symbol_specs, LAYOUT_SYMBOLS},
    [WANTED_FUNCTION] = {layout_function_specs, LAYOUT_FUNCTIONS},
    [WANTED_WINDOW] = {layout_window_specs, LAYOUT_WINDOWS},
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* FNV-1a */
static uint32_t hash(enum wanted_kind kind, const char *name)
{
	uint32_t value = 2166136261u ^ (uint32_t)kind;

	for (; *name; name++)
		value = (value ^ (unsigned char)*name) * 16777619u;
	return value;
}

/* The slot of a name, or the free slot for it. */
static struct wanted *slot(const struct wanted_table *table, enum wanted_kind kind, const char *name)
{
	size_t i = hash(kind, name) & (table->size - 1);

	while (table->slots[i].name && (table->slots[i].kind != kind || strcmp(table->slots[i].name, name) != 0))
		i = (i + 1) & (table->size - 1);
	return &table->slots[i];
}

struct wanted_table *wanted_create(void)
{
	struct wanted_table *table = malloc(sizeof(*table));
	size_t names = 0;

	if (!table)
		return NULL;
	for (size_t k = 0; k < KINDS; k++) {
		for (size_t i = 0; i < kinds[k].count; i++) {
			for (size_t n = 0; kinds[k].specs[i].names[n]; n++)
				names++;
		}
	}
	for (table->size = 64; table->size < 2 * names;)
		table->size *= 2;
	table->slots = calloc(table->size, sizeof(*table->slots));
	if (!table->slots) {
		free(table);
		return NULL;
	}
	for (size_t k = 0; k < KINDS; k++) {
		for (size_t i = 0; i < kinds[k].count; i++) {
			for (size_t n = 0; kinds[k].specs[i].names[n]; n++) {
				const char *name = kinds[k].specs[i].names[n];

				*slot(table, (enum wanted_kind)k, name) = (struct wanted){
				    .kind = (enum wanted_kind)k,
				    .id = (int)i,
				    .alternative = (int)n,
				    .name = name,
				};
			}
		}
	}
	return table;
}

void wanted_destroy(struct wanted_table *table)
{
	if (!table)
		return;
	free(table->slots);
	free(table);
}

const struct wanted *wanted_find(const struct wanted_table *table, enum wanted_kind kind, const char *name)
{
	const struct wanted *found = slot(table, kind, name);

	return found->name ? found : NULL;
}
