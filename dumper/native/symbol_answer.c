#include "native/symbol_answer.h"

#include <stdlib.h>
#include <string.h>

/* A string's length if there is none. */
#define NO_TEXT UINT32_MAX

/* What is known of a function. Its texts follow behind all others of an answer: the name, and the file. */
struct function_part {
	uint32_t name, file; /* lengths, with the null byte at the end */
	int32_t line;
};

struct whole {
	struct symbol_answer_head head;
	uint32_t nr_inlined;
	struct function_part function;
	uint64_t module_address, offset;
	struct function_part inlined[SYMBOLIZED_INLINED_MAX];
};

static uint32_t length_of(const char *text)
{
	return text ? (uint32_t)strnlen(text, SYMBOL_ANSWER_MAX) + 1 : NO_TEXT;
}

static struct function_part part_of(const char *name, const char *file, int line)
{
	return (struct function_part){.name = length_of(name), .file = length_of(file), .line = line};
}

static size_t texts_of(const struct function_part *part)
{
	return (part->name == NO_TEXT ? 0 : (size_t)part->name) + (part->file == NO_TEXT ? 0 : (size_t)part->file);
}

static char *put_text(char *at, const char *text, uint32_t length)
{
	if (length == NO_TEXT)
		return at;
	memcpy(at, text, length);
	return at + length;
}

static struct symbol_answer_head *make(const struct symbolized *symbolized, bool silent, size_t nr_inlined)
{
	struct whole whole = {
	    .head.silent = silent,
	    .nr_inlined = (uint32_t)nr_inlined,
	    .function = part_of(symbolized->function, symbolized->file, symbolized->line),
	    .module_address = symbolized->module_address,
	    .offset = symbolized->offset,
	};
	size_t length = sizeof(whole) + texts_of(&whole.function);
	char *bytes, *at;

	for (size_t i = 0; i < nr_inlined; i++) {
		const struct symbolized_function *one = &symbolized->inlined[i];

		whole.inlined[i] = part_of(one->function, one->file, one->line);
		length += texts_of(&whole.inlined[i]);
	}
	bytes = length <= SYMBOL_ANSWER_MAX ? malloc(length) : NULL;
	if (!bytes)
		return NULL;
	whole.head.length = (uint32_t)length;
	memcpy(bytes, &whole, sizeof(whole));
	at = put_text(bytes + sizeof(whole), symbolized->function, whole.function.name);
	at = put_text(at, symbolized->file, whole.function.file);
	for (size_t i = 0; i < nr_inlined; i++) {
		at = put_text(at, symbolized->inlined[i].function, whole.inlined[i].name);
		at = put_text(at, symbolized->inlined[i].file, whole.inlined[i].file);
	}
	return (struct symbol_answer_head *)(void *)bytes;
}

struct symbol_answer_head *symbol_answer_make(const struct symbolized *symbolized, bool silent)
{
	struct symbol_answer_head *all = make(symbolized, silent, symbolized->nr_inlined);

	return all || symbolized->nr_inlined == 0 ? all : make(symbolized, silent, 0);
}

/* The texts of an answer that were not taken yet. */
struct texts {
	const char *at;
	size_t left;
	bool broken;
};

static const char *take_text(struct texts *texts, uint32_t length)
{
	const char *text = texts->at;

	if (length == NO_TEXT)
		return NULL;
	if (length == 0 || length > texts->left || text[length - 1] != '\0') {
		texts->broken = true;
		return NULL;
	}
	texts->at += length;
	texts->left -= length;
	return text;
}

bool symbol_answer_read(const void *bytes, size_t length, struct symbolized *ret)
{
	struct texts texts;
	struct whole whole;

	*ret = (struct symbolized){0};
	if (length < sizeof(whole))
		return false;
	memcpy(&whole, bytes, sizeof(whole));
	texts = (struct texts){.at = (const char *)bytes + sizeof(whole), .left = length - sizeof(whole)};
	if (whole.nr_inlined > SYMBOLIZED_INLINED_MAX)
		return false;
	ret->module_address = whole.module_address;
	ret->offset = whole.offset;
	ret->function = take_text(&texts, whole.function.name);
	ret->file = take_text(&texts, whole.function.file);
	ret->line = whole.function.line;
	ret->nr_inlined = whole.nr_inlined;
	for (size_t i = 0; i < whole.nr_inlined; i++) {
		ret->inlined[i].function = take_text(&texts, whole.inlined[i].name);
		ret->inlined[i].file = take_text(&texts, whole.inlined[i].file);
		ret->inlined[i].line = whole.inlined[i].line;
	}
	return !texts.broken && texts.left == 0;
}
