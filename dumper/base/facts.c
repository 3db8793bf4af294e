#include "base/facts.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"

void facts_clear(struct facts *facts)
{
	for (size_t i = 0; i < facts->count; i++) {
		free(facts->list[i].text);
		for (size_t j = 0; j < facts->list[i].nr_items; j++)
			facts_clear(&facts->list[i].items[j]);
		free(facts->list[i].items);
	}
	free(facts->list);
	*facts = (struct facts){0};
}

size_t facts_bytes(const struct facts *facts)
{
	size_t bytes = array_implied_capacity(facts->count) * sizeof(*facts->list);

	for (size_t i = 0; i < facts->count; i++) {
		const struct fact *fact = &facts->list[i];

		/* A text has grown as an array does. */
		bytes += fact->text ? array_implied_capacity(strlen(fact->text) + 1) : 0;
		bytes += array_implied_capacity(fact->nr_items) * sizeof(*fact->items);
		for (size_t j = 0; j < fact->nr_items; j++)
			bytes += facts_bytes(&fact->items[j]);
	}
	return bytes;
}

/* Adds a fact without a value; NULL if there is not enough memory. */
static struct fact *add(struct facts *facts, const char *name, enum fact_kind kind)
{
	if (!array_make_room_for_one(facts->list, facts->count)) {
		facts->failed = true;
		return NULL;
	}
	facts->list[facts->count] = (struct fact){.name = name, .kind = kind};
	return &facts->list[facts->count++];
}

void facts_add_bytes(struct facts *facts, const char *name, const void *bytes, size_t length)
{
	struct text text = {0};
	struct fact *fact;

	text_add(&text, bytes, length);
	if (!text.data && !text.failed)
		text.data = strdup("");
	fact = text.failed || !text.data ? NULL : add(facts, name, FACT_TEXT);
	if (fact) {
		fact->text = text.data;
		return;
	}
	facts->failed = true;
	text_clear(&text);
}

void facts_add_text(struct facts *facts, const char *name, const char *text)
{
	facts_add_bytes(facts, name, text, strlen(text));
}

void facts_add_number(struct facts *facts, const char *name, int64_t number)
{
	struct fact *fact = add(facts, name, FACT_NUMBER);

	if (fact)
		fact->number = number;
}

void facts_add_flag(struct facts *facts, const char *name, bool flag)
{
	struct fact *fact = add(facts, name, FACT_FLAG);

	if (fact)
		fact->number = flag;
}

static struct fact *find(const struct facts *facts, const char *name)
{
	for (size_t i = 0; i < facts->count; i++)
		if (strcmp(facts->list[i].name, name) == 0)
			return &facts->list[i];
	return NULL;
}

void facts_add_list(struct facts *facts, const char *name)
{
	if (!find(facts, name))
		add(facts, name, FACT_LIST);
}

struct facts *facts_add_item(struct facts *facts, const char *name)
{
	struct fact *fact;

	facts_add_list(facts, name);
	fact = find(facts, name);
	if (!fact || !array_make_room_for_one(fact->items, fact->nr_items)) {
		facts->failed = true;
		return NULL;
	}
	fact->items[fact->nr_items] = (struct facts){0};
	return &fact->items[fact->nr_items++];
}

const struct fact *facts_find(const struct facts *facts, const char *name)
{
	return find(facts, name);
}

const char *facts_text(const struct facts *facts, const char *name)
{
	const struct fact *fact = find(facts, name);

	return fact ? fact->text : NULL;
}

int64_t facts_number(const struct facts *facts, const char *name, int64_t otherwise)
{
	const struct fact *fact = find(facts, name);

	return fact && fact->kind == FACT_NUMBER ? fact->number : otherwise;
}

bool facts_flag(const struct facts *facts, const char *name)
{
	const struct fact *fact = find(facts, name);

	return fact && fact->kind == FACT_FLAG && fact->number != 0;
}
