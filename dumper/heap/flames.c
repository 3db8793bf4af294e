#include "heap/flames.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "render/collapsed_frame.h"
#include "render/flame_page.h"

/* More frames are not made: a browser could not show them. */
#define FLAMES_MAX (1u << 22)

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static uint64_t hash_name(uint64_t hash, const struct flame *flame)
{
	return hash_mix(hash_mix(hash, hash_text(flame->name ? flame->name : "")),
			hash_text(flame->type ? flame->type : ""));
}

static bool same_name(const struct flame *a, const struct flame *b)
{
	return same_text(a->name, b->name) && same_text(a->type, b->type);
}

static uint64_t frame_hash(const void *item)
{
	const struct flame *flame = item;

	return hash_name(hash_begin(flame->parent), flame);
}

static bool frame_same(const void *a, const void *b)
{
	const struct flame *one = a, *other = b;

	return one->parent == other->parent && same_name(one, other);
}

static const struct index_items frames = {sizeof(struct flame), frame_hash, frame_same};

bool flames_begin(struct flames *flames)
{
	*flames = (struct flames){0};
	if (!array_make_room(flames->of, flames->capacity, 1))
		return false;
	flames->of[flames->count++] = (struct flame){0};
	return true;
}

void flames_clear(struct flames *flames)
{
	for (size_t i = 0; i < flames->count; i++)
		free(flames->of[i].name);
	free(flames->of);
	index_table_clear(&flames->table);
	*flames = (struct flames){0};
}

uint32_t flames_add(struct flames *flames, uint32_t parent, const char *name, const char *type)
{
	const struct flame wanted = {.parent = parent, .name = (char *)name, .type = type};
	uint32_t *slot, index = (uint32_t)flames->count;

	if (flames->count >= FLAMES_MAX || !index_table_make_room(&flames->table, &frames, flames->of))
		return FLAMES_NONE;
	slot = index_table_slot(&flames->table, &frames, flames->of, &wanted);
	if (*slot != 0)
		return *slot - 1;
	if (!array_make_room(flames->of, flames->capacity, flames->count + 1))
		return FLAMES_NONE;
	flames->of[index] = wanted;
	flames->of[index].name = strdup(name);
	if (!flames->of[index].name)
		return FLAMES_NONE;
	flames->count++;
	index_table_enter(&flames->table, slot, index);
	return index;
}

/* The page: frames with the same name and type have the same function. */
struct page_of {
	const struct flames *flames;
	const struct flames_about *about;
	struct flame *functions; /* copies: the texts are those of the frames */
	uint32_t *function_of;	 /* for each frame */
	size_t nr_functions;
};

static uint64_t function_hash(const void *item)
{
	return hash_name(hash_begin(0), item);
}

static bool function_same(const void *a, const void *b)
{
	return same_name(a, b);
}

static bool find_functions(struct page_of *page)
{
	static const struct index_items functions = {sizeof(struct flame), function_hash, function_same};
	const struct flames *flames = page->flames;
	struct index_table table = {0};
	bool enough;

	page->functions = calloc(flames->count, sizeof(page->functions[0]));
	page->function_of = calloc(flames->count, sizeof(page->function_of[0]));
	enough = page->functions && page->function_of;
	for (size_t i = 0; enough && i < flames->count; i++) {
		uint32_t *slot;

		page->function_of[i] = FLAME_GROUP;
		if (i == 0 || flames->of[i].is_age)
			continue;
		enough = index_table_make_room(&table, &functions, page->functions);
		if (!enough)
			break;
		slot = index_table_slot(&table, &functions, page->functions, &flames->of[i]);
		if (*slot == 0) {
			page->functions[page->nr_functions] = flames->of[i];
			index_table_enter(&table, slot, (uint32_t)page->nr_functions++);
		}
		page->function_of[i] = *slot - 1;
	}
	index_table_clear(&table);
	return enough;
}

static const char *place_name(const void *context, size_t place)
{
	const struct page_of *page = context;

	return !page->about->places ? "bytes" : place == 0 ? "slots" : "outside";
}

static struct flame_function function_at(const void *context, size_t i)
{
	const struct page_of *page = context;
	const char *type = page->functions[i].type;

	return (struct flame_function){.name = page->functions[i].name, .path = type ? type : "several types"};
}

static struct flame_node node_at(const void *context, size_t i)
{
	const struct page_of *page = context;
	const struct flame *flame = &page->flames->of[i];

	return (struct flame_node){.parent = flame->parent,
				   .function = page->function_of[i],
				   .group = page->function_of[i] == FLAME_GROUP ? flame->name : NULL};
}

static uint64_t bytes_at(const void *context, size_t side, size_t node, size_t place)
{
	const struct page_of *page = context;
	const struct flame *flame = &page->flames->of[node];

	(void)side;
	if (!page->about->places)
		return flame->slot_bytes + flame->outside_bytes;
	return place == 0 ? flame->slot_bytes : flame->outside_bytes;
}

static uint64_t objects_at(const void *context, size_t side, size_t node)
{
	const struct page_of *page = context;

	(void)side;
	return page->flames->of[node].objects;
}

static void write_about(const void *context, size_t side, FILE *stream)
{
	const struct page_of *page = context;

	(void)side;
	fputc('{', stream);
	flame_page_write_text("facts", page->about->facts, stream);
	flame_page_write_text("counts", page->about->counts, stream);
	fputs("\"cut\":false}", stream);
}

bool flames_write_page(const struct flames *flames, const struct flames_about *about, FILE *stream)
{
	struct page_of of = {.flames = flames, .about = about};
	bool written = find_functions(&of);
	const struct flame_page page = {
	    .title = about->title,
	    .remark = about->remark,
	    .by = about->by,
	    .bytes = true,
	    .nr_sides = 1,
	    .nr_states = about->places ? 2 : 1,
	    .nr_functions = of.nr_functions,
	    .nr_nodes = flames->count,
	    .context = &of,
	    .state = place_name,
	    .function = function_at,
	    .node = node_at,
	    .weight = bytes_at,
	    .samples = objects_at,
	    .write_side = write_about,
	};

	written = written && flame_page_write(&page, stream);
	free(of.functions);
	free(of.function_of);
	return written;
}

/* Appends the names from the outermost frame to one frame. */
static bool add_stack(const struct flames *flames, uint32_t frame, struct text *text)
{
	size_t depth = 0;
	uint32_t *path;

	for (uint32_t at = frame; at != 0; at = flames->of[at].parent)
		depth++;
	path = calloc(depth + 1, sizeof(path[0]));
	if (!path)
		return false;
	for (size_t i = depth; i-- > 0; frame = flames->of[frame].parent)
		path[i] = frame;
	for (size_t i = 0; i < depth; i++) {
		const char *name = flames->of[path[i]].name;

		if (i > 0)
			text_format(text, ";");
		collapsed_add_frame(text, name, strlen(name));
	}
	free(path);
	return !text->failed;
}

bool flames_write_collapsed(const struct flames *flames, FILE *stream)
{
	bool enough = true;

	for (size_t i = 1; enough && i < flames->count; i++) {
		const uint64_t bytes = flames->of[i].slot_bytes + flames->of[i].outside_bytes;
		struct text text = {0};

		if (bytes == 0)
			continue;
		enough = add_stack(flames, (uint32_t)i, &text);
		if (enough)
			fprintf(stream, "%s %" PRIu64 "\n", text.data, bytes);
		text_clear(&text);
	}
	return enough;
}
