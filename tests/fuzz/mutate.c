#include "mutate.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "image.h"

uint64_t mutate_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

static uint64_t below(uint64_t *state, uint64_t limit)
{
	return (mutate_random(state) >> 16) % limit;
}

/* A length of the header, as far as the image goes. */
static size_t length_at(const uint8_t *image, size_t length, size_t at)
{
	size_t said = (size_t)(image[at] | image[at + 1] << 8), left = length - IMAGE_HEADER;

	return said < left ? said : left;
}

static uint64_t near_address(const uint64_t *objects, size_t nr_objects, uint64_t *state)
{
	static const uint64_t regions[] = {IMAGE_CONTEXT, IMAGE_STACK, IMAGE_HEAP};
	/* A word; sizes of control frames; a page. */
	static const int64_t away[] = {0, 0, 0, 0, 8, -8, 16, -16, 56, -56, 64, -64, 1, -1, 4, 4096, -4096};
	uint64_t address = regions[below(state, 3)] + below(state, 1024) * 8;

	if (nr_objects > 0)
		address = objects[below(state, nr_objects)];
	return address + (uint64_t)away[below(state, sizeof(away) / sizeof(away[0]))];
}

static uint64_t interesting(const uint8_t *image, size_t length, uint64_t old, const uint64_t *objects,
			    size_t nr_objects, uint64_t *state)
{
	static const uint64_t numbers[] = {0,
					   1,
					   2,
					   4,
					   8,
					   0xff,
					   0xffff,
					   INT32_MAX,
					   UINT32_MAX,
					   INT64_MAX,
					   UINT64_MAX,
					   UINT64_MAX - 7,
					   UINT64_C(1) << 27,
					   (UINT64_C(1) << 27) + 1};
	static const uint64_t steps[] = {8, 56, 64};
	uint64_t word;

	switch (below(state, 8)) {
	case 0:
		return numbers[below(state, sizeof(numbers) / sizeof(numbers[0]))];
	case 1:
		return old ^ UINT64_C(1) << below(state, 64);
	case 2:
		/* By words, or by control frames of either size. */
		return old + steps[below(state, sizeof(steps) / sizeof(steps[0]))] * (below(state, 32) - 16);
	case 3:
		return mutate_random(state);
	case 4:
	case 5:
		/* Flags, numbers and pointers that are elsewhere in it. */
		memcpy(&word, image + IMAGE_HEADER + below(state, (length - IMAGE_HEADER) / 8) * 8, sizeof(word));
		return word;
	default:
		return near_address(objects, nr_objects, state);
	}
}

static void change(uint8_t *image, size_t length, const uint64_t *objects, size_t nr_objects, uint64_t *state)
{
	size_t context = length_at(image, length, 2), stack = length_at(image, length, 4);
	size_t from = IMAGE_HEADER, to = length, at = 0, words;
	uint64_t word;

	/* Half of it where the walk begins, which is a fifth of the bytes. */
	switch (below(state, 6)) {
	case 0:
		to = from + context;
		break;
	case 1:
	case 2:
		from += context;
		to = from + stack;
		break;
	default:
		break;
	}
	if (to > length)
		to = length;
	words = to > from ? (to - from) / 8 : 0;
	if (words == 0) {
		image[below(state, length)] = (uint8_t)mutate_random(state);
		return;
	}
	/* Most words are 0 and read by nobody: look further for one that is not. */
	for (int tries = 0; tries < 24; tries++) {
		at = from + below(state, words) * 8;
		memcpy(&word, image + at, sizeof(word));
		if (word != 0)
			break;
	}
	from = at;
	switch (below(state, 8)) {
	case 0:
		image[from + below(state, 8)] ^= (uint8_t)(1 << below(state, 8));
		return;
	case 1:
		image[from + below(state, 8)] = (uint8_t)mutate_random(state);
		return;
	case 2:
		image[below(state, IMAGE_HEADER - 1) + 1] = (uint8_t)mutate_random(state);
		return;
	default:
		word = interesting(image, length, word, objects, nr_objects, state);
		memcpy(image + from, &word, sizeof(word));
		return;
	}
}

void mutate(uint8_t *image, size_t length, const uint64_t *objects, size_t nr_objects, uint64_t *state)
{
	uint64_t changes = 1 + below(state, 4);

	if (length < IMAGE_HEADER + 8)
		return;
	for (uint64_t i = 0; i < changes; i++)
		change(image, length, objects, nr_objects, state);
}

void mutate_tear(const uint8_t *a, const uint8_t *b, size_t length, uint64_t *state, uint8_t *ret)
{
	size_t context = length_at(a, length, 2), stack = length_at(a, length, 4), at;
	bool values_first = below(state, 2) == 0;

	memcpy(ret, a, length);
	at = IMAGE_HEADER + context + below(state, stack / 8 + 1) * 8;
	if (at > length)
		at = length;
	if (values_first)
		memcpy(ret + at, b + at, length - at);
	else
		memcpy(ret + IMAGE_HEADER + context, b + IMAGE_HEADER + context, at - IMAGE_HEADER - context);
}

/* Where some line begins that is a fact; NULL if there is none. */
static char *some_fact(char *text, uint64_t *state)
{
	static const char *const kinds[] = {"\nmember ", "\nenumerator ", "\nsize ", "\nconstant ", "\nfunction "};
	/* There are as many members as there is all else. */
	const char *kind = kinds[below(state, 2) ? 0 : below(state, sizeof(kinds) / sizeof(kinds[0]))];
	uint64_t skip = below(state, 150);
	char *at = strstr(text, kind), *next;

	for (; at && skip > 0; skip--) {
		next = strstr(at + 1, kind);
		at = next ? next : strstr(text, kind);
	}
	return at ? at + 1 : NULL;
}

/* The number of the last line, which says how many facts there are, becomes one less. */
static void count_down(char *text)
{
	char *end = strstr(text, "\nend ");
	unsigned int count;

	if (end && sscanf(end, "\nend %u\n", &count) == 1)
		snprintf(end, strlen(end) + 1, "\nend %u\n", count - 1);
}

static void change_fact(char *text, uint64_t *state)
{
	static const int64_t numbers[] = {0,   1,    2,	    3,	   4,	      7,	 8,	    9,	16,
					  31,  32,   40,    48,	   56,	      63,	 64,	    65, 127,
					  255, 4096, 65535, 65536, INT32_MAX, INT64_MAX, INT64_MIN, -1, -8};
	char *line = some_fact(text, state), *end = line ? strchr(line, '\n') : NULL, *at, number[24];
	uint64_t words;
	size_t length, digits;

	if (!end)
		return;
	if (below(state, 8) == 0) {
		memmove(line, end + 1, strlen(end + 1) + 1);
		count_down(text);
		return;
	}
	/* A number: the first ones are behind the second word. */
	at = strchr(line, ' ');
	for (words = 1 + below(state, 4); at && at < end && words > 0; words--) {
		char *next = strchr(at + 1, ' ');

		if (!next || next > end)
			break;
		at = next;
	}
	if (!at || at >= end)
		return;
	at++;
	length = strcspn(at, " \n");
	digits = (size_t)snprintf(number, sizeof(number), "%" PRId64,
				  numbers[below(state, sizeof(numbers) / sizeof(numbers[0]))]);
	if (strspn(at, "-0123456789") != length) {
		at[below(state, length)] = (char)(' ' + below(state, 95));
		return;
	}
	memmove(at + digits, at + length, strlen(at + length) + 1);
	memcpy(at, number, digits);
}

void mutate_layout(char *text, uint64_t *state)
{
	for (uint64_t changes = 1 + below(state, 3); changes > 0; changes--)
		change_fact(text, state);
}
