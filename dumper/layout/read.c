#include "layout/read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "layout/build_id.h"
#include "layout/check.h"
#include "layout/words.h"

#define MAX_LINE 1023	   /* bytes, without the newline */
#define MAX_FILE (1 << 20) /* bytes */

/* The longest name of a configuration, in bytes. */
#define CONFIGURATION_MAX 32u

/* The file that is being read; `line` is the current one, without its newline. */
struct reader {
	FILE *file;
	char line[MAX_LINE + 1];
	unsigned int number; /* of the line, from 1 */
	size_t bytes;	     /* read so far */
	bool at_end;
};

/* Reads the next line. Sets at_end at the end of the file. */
static struct error *next_line(struct reader *r)
{
	size_t length = 0;

	r->number++;
	for (;;) {
		int c = getc_unlocked(r->file);

		if (c == EOF) {
			if (ferror(r->file))
				return error_create(EXIT_FAILED, "cannot be read: %s", strerror(errno));
			if (length)
				return error_create(EXIT_FAILED, "line %u: the file ends in the middle of a line",
						    r->number);
			r->at_end = true;
			return NULL;
		}
		if (++r->bytes > MAX_FILE)
			return error_create(EXIT_FAILED, "the file is larger than %d bytes", MAX_FILE);
		if (c == '\n')
			break;
		if (!layout_takes_byte(c))
			return error_create(EXIT_FAILED, "line %u: a byte that is not printable ASCII (0x%02x)",
					    r->number, (unsigned int)c);
		if (length == MAX_LINE)
			return error_create(EXIT_FAILED, "line %u: longer than %d bytes", r->number, MAX_LINE);
		r->line[length++] = (char)c;
	}
	r->line[length] = '\0';
	return NULL;
}

/* Cuts the next word off *text. NULL if there is none, or if words are separated by more than one space. */
static char *word(char **text)
{
	char *start = *text;

	if (!start || !*start || *start == ' ')
		return NULL;
	char *space = strchr(start, ' ');

	if (space)
		*space = '\0';
	*text = space ? space + 1 : NULL;
	return start;
}

/* A decimal number of at most `max`: digits only. */
static bool decimal(const char *text, uint64_t max, uint64_t *ret)
{
	uint64_t value = 0;

	if (!text || !*text)
		return false;
	for (; *text; text++) {
		unsigned int digit = (unsigned int)(*text - '0');

		if (digit > 9 || value > (UINT64_MAX - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	*ret = value;
	return value <= max;
}

static bool signed_decimal(const char *text, int64_t *ret)
{
	bool negative = text && text[0] == '-';
	uint64_t value;

	if (!decimal(negative ? text + 1 : text, negative ? (uint64_t)INT64_MAX + 1 : INT64_MAX, &value))
		return false;
	*ret = negative ? (int64_t)(0 - value) : (int64_t)value;
	return true;
}

static bool address(const char *text, uint64_t *ret)
{
	if (!text || strncmp(text, "0x", 2) != 0)
		return false;
	text += 2;
	size_t digits = strlen(text);

	if (digits < 1 || digits > 16 || strspn(text, "0123456789abcdef") != digits)
		return false;
	*ret = strtoull(text, NULL, 16);
	return true;
}

/* Finds the entry of a name, and which of its alternatives the name is. */
static bool lookup(const struct layout_spec *specs, size_t count, const char *name, size_t *ret_id,
		   uint8_t *ret_alternative)
{
	for (size_t i = 0; i < count; i++) {
		for (uint8_t n = 0; specs[i].names[n]; n++) {
			if (strcmp(specs[i].names[n], name) == 0) {
				*ret_id = i;
				*ret_alternative = n;
				return true;
			}
		}
	}
	return false;
}

/* The result for the line of a fact. */
enum outcome { FACT_KEPT, FACT_MALFORMED, FACT_TWICE, FACT_OUT_OF_RANGE, FACT_NEEDS_BUILD_ID, FACT_NO_MEMORY };

/* Reads what follows the name of a known fact, `rest`: NULL if nothing does. */
typedef enum outcome read_fact(struct layout *layout, size_t id, uint8_t alternative, char *rest);

static enum outcome read_number(struct layout_number *number, bool is_macro, char *rest)
{
	if (number->present)
		return FACT_TWICE;
	const char *value = word(&rest);

	if (rest)
		return FACT_MALFORMED;
	if (!signed_decimal(value, &number->value))
		return FACT_OUT_OF_RANGE;
	number->present = true;
	number->is_macro = is_macro;
	return FACT_KEPT;
}

static enum outcome read_enumerator(struct layout *layout, size_t id, uint8_t alternative, char *rest)
{
	(void)alternative;
	return read_number(&layout->enumerators[id], false, rest);
}

static enum outcome read_macro(struct layout *layout, size_t id, uint8_t alternative, char *rest)
{
	(void)alternative;
	return read_number(&layout->enumerators[id], true, rest);
}

static enum outcome read_constant(struct layout *layout, size_t id, uint8_t alternative, char *rest)
{
	(void)alternative;
	return read_number(&layout->constants[id], false, rest);
}

static enum outcome read_size(struct layout *layout, size_t id, uint8_t alternative, char *rest)
{
	uint64_t size;

	if (layout->sizes[id].present)
		return FACT_TWICE;
	const char *value = word(&rest);

	if (rest)
		return FACT_MALFORMED;
	if (!decimal(value, LAYOUT_STRUCT_MAX - 1, &size) || size == 0)
		return FACT_OUT_OF_RANGE;
	layout->sizes[id] = (struct layout_number){.present = true, .value = (int64_t)size};
	layout->struct_alternative[id] = alternative;
	return FACT_KEPT;
}

static enum outcome read_member(struct layout *layout, size_t id, uint8_t alternative, char *rest)
{
	uint64_t offset, size, shift = 0, width = 0;

	if (layout->members[id].present)
		return FACT_TWICE;
	const char *offset_word = word(&rest), *size_word = word(&rest);

	if (!offset_word || !size_word)
		return FACT_MALFORMED;
	if (!decimal(offset_word, LAYOUT_STRUCT_MAX - 1, &offset) || !decimal(size_word, LAYOUT_STRUCT_MAX - 1, &size))
		return FACT_OUT_OF_RANGE;
	if (rest) {
		const char *bits = word(&rest);
		const char *shift_word = word(&rest), *width_word = word(&rest);

		if (!bits || strcmp(bits, "bits") != 0 || !shift_word || !width_word || rest)
			return FACT_MALFORMED;
		if (!decimal(shift_word, 7, &shift) || !decimal(width_word, 64, &width) || width == 0 || size > 8 ||
		    size != (shift + width + 7) / 8)
			return FACT_OUT_OF_RANGE;
	}
	layout->members[id] = (struct layout_member){
	    .present = true,
	    .shift = (uint8_t)shift,
	    .width = (uint8_t)width,
	    .offset = (uint32_t)offset,
	    .size = (uint32_t)size,
	    .alternative = alternative,
	};
	return FACT_KEPT;
}

static enum outcome read_function(struct layout *layout, size_t id, uint8_t alternative, char *rest)
{
	(void)alternative;
	if (rest)
		return FACT_MALFORMED;
	if (layout->functions[id])
		return FACT_TWICE;
	layout->functions[id] = true;
	return FACT_KEPT;
}

static enum outcome read_symbol(struct layout *layout, size_t id, uint8_t alternative, char *rest)
{
	if (layout->symbols[id].present)
		return FACT_TWICE;
	const char *value = word(&rest);

	if (rest)
		return FACT_MALFORMED;
	if (!address(value, &layout->symbols[id].address))
		return FACT_OUT_OF_RANGE;
	layout->symbols[id].present = true;
	layout->symbols[id].alternative = alternative;
	return FACT_KEPT;
}

static enum outcome read_window(struct layout *layout, size_t id, uint8_t alternative, char *rest)
{
	uint64_t low, high;

	(void)alternative;
	const char *low_word = word(&rest), *high_word = word(&rest), *function = word(&rest);

	if (!low_word || !high_word || !function || rest)
		return FACT_MALFORMED;
	if (!address(low_word, &low) || !address(high_word, &high) || low >= high)
		return FACT_OUT_OF_RANGE;
	char *copy = array_make_room_for_one(layout->windows, layout->nr_windows) ? strdup(function) : NULL;

	if (!copy)
		return FACT_NO_MEMORY;
	layout->windows[layout->nr_windows++] =
	    (struct layout_window){.id = (enum layout_window_id)id, .low = low, .high = high, .function = copy};
	return FACT_KEPT;
}

/* The kinds of facts, each with the names that are known of it. */
static const struct fact_kind {
	const char *word;
	const struct layout_spec *specs;
	size_t count;
	bool is_address; /* which only a layout that is for one build may have */
	read_fact *read;
} fact_kinds[] = {
    {"member", layout_member_specs, LAYOUT_MEMBERS, false, read_member},
    {"size", layout_struct_specs, LAYOUT_STRUCTS, false, read_size},
    {"enumerator", layout_enumerator_specs, LAYOUT_ENUMERATORS, false, read_enumerator},
    {"macro", layout_enumerator_specs, LAYOUT_ENUMERATORS, false, read_macro},
    {"constant", layout_constant_specs, LAYOUT_CONSTANTS, false, read_constant},
    {"function", layout_function_specs, LAYOUT_FUNCTIONS, false, read_function},
    {"symbol", layout_symbol_specs, LAYOUT_SYMBOLS, true, read_symbol},
    {"window", layout_window_specs, LAYOUT_WINDOWS, true, read_window},
};

/* Reads the line of a fact. Kinds and names that are not known are passed over: a later rbdump may have written them. */
static enum outcome read_line(struct layout *layout, char *text)
{
	const char *kind = word(&text), *name;
	const struct fact_kind *known = NULL;
	uint8_t alternative;
	size_t id;

	if (!kind)
		return FACT_MALFORMED;
	for (size_t i = 0; i < sizeof(fact_kinds) / sizeof(*fact_kinds) && !known; i++) {
		if (strcmp(fact_kinds[i].word, kind) == 0)
			known = &fact_kinds[i];
	}
	if (!known)
		return FACT_KEPT;
	name = word(&text);
	if (!name)
		return FACT_MALFORMED;
	if (known->is_address && !layout->build_id)
		return FACT_NEEDS_BUILD_ID;
	if (!lookup(known->specs, known->count, name, &id, &alternative))
		return FACT_KEPT;
	return known->read(layout, id, alternative, text);
}

/* Which header line it is; LAYOUT_HEADERS if it is none. */
static enum layout_header header_of(const char *line)
{
	size_t length = strcspn(line, " ");

	for (enum layout_header h = 0; h < LAYOUT_HEADERS; h++) {
		if (strlen(layout_headers[h].word) == length && strncmp(layout_headers[h].word, line, length) == 0)
			return h;
	}
	return LAYOUT_HEADERS;
}

static bool build_id_is_valid(const char *id)
{
	size_t length = strlen(id);

	return length >= 2 && length <= 2 * BUILD_ID_MAX && length % 2 == 0 && strspn(id, "0123456789abcdef") == length;
}

/* Strict, because the name is a part of a file's name. */
static bool configuration_is_valid(const char *name)
{
	size_t length = strlen(name);

	return length <= CONFIGURATION_MAX && strspn(name, "abcdefghijklmnopqrstuvwxyz") == length;
}

/* Reads the first line and the header. Afterwards, r->line is the first line after the header. */
static struct error *read_header(struct reader *r, struct layout *layout)
{
	uint64_t format;
	struct error *error = next_line(r);

	if (error)
		return error;
	if (r->at_end)
		return error_create(EXIT_FAILED, "the file is empty");
	if (strncmp(r->line, LAYOUT_MAGIC " ", strlen(LAYOUT_MAGIC " ")) != 0)
		return error_create(EXIT_FAILED, "not a layout file: its first line is not `" LAYOUT_MAGIC " %d`",
				    LAYOUT_FORMAT);
	if (!decimal(r->line + strlen(LAYOUT_MAGIC " "), UINT64_MAX, &format) || format != LAYOUT_FORMAT)
		return error_create(EXIT_FAILED, "layout format %.20s is not known: this rbdump reads only format %d",
				    r->line + strlen(LAYOUT_MAGIC " "), LAYOUT_FORMAT);
	enum layout_header next = 0;

	for (;;) {
		error = next_line(r);
		if (error)
			return error;
		enum layout_header h = r->at_end ? LAYOUT_HEADERS : header_of(r->line);

		/* Required lines before this one must be there; before the line after the header, all of them. */
		for (; next < h; next++) {
			if (layout_headers[next].required && !*layout_header_value(layout, next))
				return error_create(EXIT_FAILED, "line %u: the `%s` line is missing", r->number,
						    layout_headers[next].word);
		}
		if (h == LAYOUT_HEADERS && layout->versions && !layout_range(layout, &(struct version_range){0}))
			return error_create(EXIT_FAILED,
					    "line %u: `versions` is not a range of releases that includes `version`",
					    r->number - 1);
		if (h == LAYOUT_HEADERS && layout->versions && layout->build_id)
			return error_create(EXIT_FAILED,
					    "line %u: `versions` is not allowed in a layout that is for one build",
					    r->number - 1);
		if (h == LAYOUT_HEADERS)
			return NULL;
		if (h < next)
			return error_create(EXIT_FAILED, "line %u: `%s` appears twice or is out of order", r->number,
					    layout_headers[h].word);
		const char *value = r->line + strlen(layout_headers[h].word);

		if (value[0] != ' ' || !value[1])
			return error_create(EXIT_FAILED, "line %u: `%s` without a value", r->number,
					    layout_headers[h].word);
		value++;
		if (h == LAYOUT_HEADER_BUILD_ID && !build_id_is_valid(value))
			return error_create(EXIT_FAILED, "line %u: not a build-id", r->number);
		if (h == LAYOUT_HEADER_CONFIGURATION && !configuration_is_valid(value))
			return error_create(EXIT_FAILED, "line %u: `configuration` is not a word of lower-case letters",
					    r->number);
		if (h == LAYOUT_HEADER_LEVELS && !version_parse_levels(value, &(struct version_levels){0, 0}))
			return error_create(EXIT_FAILED, "line %u: `levels` is not a range of patch levels", r->number);
		*layout_header_value(layout, h) = strdup(value);
		if (!*layout_header_value(layout, h))
			return error_no_memory();
		next = h + 1;
	}
}

/* Checks the digest of the facts, if the file has one: a layout written by hand has none. */
static struct error *check_digest(const struct layout *layout, uint64_t digest)
{
	char expected[17];

	snprintf(expected, sizeof(expected), "%016" PRIx64, digest);
	if (!layout->digest || strcmp(layout->digest, expected) == 0)
		return NULL;
	return error_create(
	    EXIT_FAILED,
	    "the facts were changed after the layout was made (their digest is %s, not %.20s); make the layout "
	    "again, or, if the change is intended, remove the `digest` line",
	    expected, layout->digest);
}

/* Reads the facts, from r->line on, and the end line. *digest receives the digest of the facts. */
static struct error *read_facts(struct reader *r, struct layout *layout, uint64_t *digest)
{
	char previous[MAX_LINE + 1] = "";
	uint64_t facts = 0, announced;

	*digest = LAYOUT_DIGEST_BEGIN;

	for (;; facts++) {
		if (r->at_end)
			return error_create(EXIT_FAILED,
					    "the file is cut short: it ends at line %u, without an `end` line",
					    r->number - 1);
		if (strncmp(r->line, "end ", 4) == 0)
			break;
		if (header_of(r->line) != LAYOUT_HEADERS)
			return error_create(EXIT_FAILED, "line %u: a header line after the facts", r->number);
		if (strcmp(previous, r->line) >= 0)
			return error_create(EXIT_FAILED, "line %u: the line appears twice or is out of order",
					    r->number);
		memcpy(previous, r->line, sizeof(previous));
		*digest = layout_digest_line(*digest, previous);
		switch (read_line(layout, r->line)) {
		case FACT_KEPT:
			break;
		case FACT_MALFORMED:
			return error_create(EXIT_FAILED, "line %u: not understood: %.80s", r->number, previous);
		case FACT_TWICE:
			return error_create(EXIT_FAILED, "line %u: the fact appears twice: %.80s", r->number, previous);
		case FACT_OUT_OF_RANGE:
			return error_create(EXIT_FAILED, "line %u: a number is out of range: %.80s", r->number,
					    previous);
		case FACT_NEEDS_BUILD_ID:
			return error_create(EXIT_FAILED,
					    "line %u: an address is not allowed in a layout that has no build-id",
					    r->number);
		case FACT_NO_MEMORY:
			return error_no_memory();
		}
		struct error *error = next_line(r);

		if (error)
			return error;
	}
	if (!decimal(r->line + strlen("end "), UINT64_MAX, &announced) || announced != facts)
		return error_create(EXIT_FAILED,
				    "line %u: the `end` line does not match the number of facts (%" PRIu64 ")",
				    r->number, facts);
	struct error *error = next_line(r);

	if (!error && !r->at_end)
		error = error_create(EXIT_FAILED, "line %u: something follows the `end` line", r->number);
	return error;
}

struct error *layout_read_header(FILE *file, struct layout **ret)
{
	struct reader r = {.file = file};
	struct layout *layout = layout_create();

	if (!layout)
		return error_no_memory();
	struct error *error = read_header(&r, layout);

	if (error)
		layout_destroy(layout);
	else
		*ret = layout;
	return error;
}

struct error *layout_read(FILE *file, struct layout **ret)
{
	struct reader r = {.file = file};
	struct layout *layout = layout_create();

	if (!layout)
		return error_no_memory();
	struct error *error = read_header(&r, layout);
	uint64_t digest;

	if (!error)
		error = read_facts(&r, layout, &digest);
	if (!error)
		error = layout_check(layout);
	if (!error)
		error = check_digest(layout, digest);
	if (error) {
		layout_destroy(layout);
		return error;
	}
	layout_sort_windows(layout);
	*ret = layout;
	return NULL;
}
