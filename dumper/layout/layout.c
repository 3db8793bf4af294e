#include "layout.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "build_id.h"
#include "layout/version.h"
#include "sentence.h"

#define MAGIC	   "rbdump-layout"
#define MAX_LINE   1023	     /* bytes, without the newline */
#define MAX_FILE   (1 << 20) /* bytes */
#define MAX_STRUCT (1 << 16) /* bytes; all of Ruby's structs are far below it */

struct layout *layout_create(void)
{
	return calloc(1, sizeof(struct layout));
}

void layout_destroy(struct layout *layout)
{
	if (!layout)
		return;
	free(layout->arch);
	free(layout->asked);
	free(layout->build_id);
	free(layout->description);
	free(layout->digest);
	free(layout->levels);
	free(layout->origin);
	free(layout->producer);
	free(layout->source);
	free(layout->version);
	free(layout->versions);
	for (size_t i = 0; i < layout->nr_windows; i++)
		free(layout->windows[i].function);
	free(layout->windows);
	free(layout);
}

/* Header lines in file order. */
enum header {
	HEADER_ARCH,
	HEADER_ASKED,
	HEADER_BUILD_ID,
	HEADER_DESCRIPTION,
	HEADER_DIGEST,
	HEADER_LEVELS,
	HEADER_ORIGIN,
	HEADER_PRODUCER,
	HEADER_SOURCE,
	HEADER_VERSION,
	HEADER_VERSIONS,
	HEADERS
};

static const struct {
	const char *word;
	size_t member;
	bool required;
} headers[HEADERS] = {
    [HEADER_ARCH] = {"arch", offsetof(struct layout, arch), true},
    [HEADER_ASKED] = {"asked", offsetof(struct layout, asked), false},
    [HEADER_BUILD_ID] = {"build-id", offsetof(struct layout, build_id), false},
    [HEADER_DESCRIPTION] = {"description", offsetof(struct layout, description), false},
    [HEADER_DIGEST] = {"digest", offsetof(struct layout, digest), false},
    [HEADER_LEVELS] = {"levels", offsetof(struct layout, levels), false},
    [HEADER_ORIGIN] = {"origin", offsetof(struct layout, origin), false},
    [HEADER_PRODUCER] = {"producer", offsetof(struct layout, producer), false},
    [HEADER_SOURCE] = {"source", offsetof(struct layout, source), true},
    [HEADER_VERSION] = {"version", offsetof(struct layout, version), true},
    [HEADER_VERSIONS] = {"versions", offsetof(struct layout, versions), false},
};

static char **header_value(const struct layout *layout, enum header header)
{
	return (char **)((char *)layout + headers[header].member);
}

/* ---- what it is for */

/* A range, and the version that a layout was made from in it. False if there is no range, or none that makes sense. */
static bool range_of(const struct layout *layout, struct version_range *ret)
{
	struct version version;

	return layout->versions && version_parse_range(layout->versions, ret) &&
	       version_parse(layout->version, &version) && version_in_range(&version, ret);
}

bool layout_is_for(const struct layout *layout, const char *version)
{
	struct version_range range;
	struct version wanted;

	return strcmp(layout->version, version) == 0 ||
	       (range_of(layout, &range) && version_parse(version, &wanted) && version_in_range(&wanted, &range));
}

bool layout_is_for_level(const struct layout *layout, const char *description)
{
	struct version_levels levels;
	unsigned int level;

	return !layout->levels || !version_parse_levels(layout->levels, &levels) || !description ||
	       !version_patch_level(description, &level) || (level >= levels.first && level <= levels.last);
}

/* ---- what is missing */

/* "a, b or c", malloc'ed. */
static char *names_listed(const struct layout_spec *spec)
{
	char *list = sentence("%s", spec->names[0]);

	for (size_t i = 1; spec->names[i]; i++) {
		char *longer = sentence("%s%s%s", list, spec->names[i + 1] ? ", " : " or ", spec->names[i]);

		free(list);
		list = longer;
	}
	return list;
}

static char *missing_sentence(const char *kind, const struct layout_spec *spec)
{
	char *names = names_listed(spec);
	char *text = spec->purpose[0] ? sentence("the %s %s is missing (%s)", kind, names, spec->purpose)
				      : sentence("the %s %s is missing", kind, names);

	free(names);
	return text;
}

static char *missing_number(const struct layout_number *numbers, const struct layout_spec *specs, size_t count,
			    const char *kind)
{
	for (size_t i = 0; i < count; i++) {
		if (specs[i].required && !numbers[i].present)
			return missing_sentence(kind, &specs[i]);
	}
	return NULL;
}

static char *missing_anyof(const struct layout *layout)
{
	for (const int *id = layout_anyof; *id != -1; id++) {
		const int *first = id;
		bool found = false;

		for (; *id != -1; id++)
			found |= layout->members[*id].present;
		if (found)
			continue;
		char *text = sentence("one of these members must be there, and none is: %s",
				      layout_member_specs[*first].names[0]);

		for (const int *other = first + 1; *other != -1; other++) {
			char *longer = sentence("%s, %s", text, layout_member_specs[*other].names[0]);

			free(text);
			text = longer;
		}
		return text;
	}
	return NULL;
}

char *layout_missing(const struct layout *layout)
{
	char *text = missing_number(layout->sizes, layout_struct_specs, LAYOUT_STRUCTS, "struct");

	for (size_t i = 0; !text && i < LAYOUT_MEMBERS; i++) {
		const struct layout_spec *spec = &layout_member_specs[i];

		/* What an optional struct must have, if it is there at all. */
		if (spec->required && !layout->members[i].present && layout->sizes[spec->parent].present)
			text = missing_sentence("member", spec);
	}
	if (!text)
		text = missing_number(layout->enumerators, layout_enumerator_specs, LAYOUT_ENUMERATORS, "enumerator");
	if (!text)
		text = missing_number(layout->constants, layout_constant_specs, LAYOUT_CONSTANTS, "constant");
	if (!text)
		text = missing_anyof(layout);
	return text;
}

/* ---- reading */

/* The file that is being read; `line` is the current one, without its newline. */
struct reader {
	FILE *file;
	char line[MAX_LINE + 1];
	unsigned int number; /* of the line, from 1 */
	size_t bytes;	     /* read so far */
	bool at_end;
};

/* Reads the next line; at the end of the file sets at_end. */
static char *next_line(struct reader *r)
{
	size_t length = 0;

	r->number++;
	for (;;) {
		int c = getc_unlocked(r->file);

		if (c == EOF) {
			if (ferror(r->file))
				return sentence("cannot be read: %s", strerror(errno));
			if (length)
				return sentence("line %u: the file ends in the middle of a line", r->number);
			r->at_end = true;
			return NULL;
		}
		if (++r->bytes > MAX_FILE)
			return sentence("the file is larger than %d bytes", MAX_FILE);
		if (c == '\n')
			break;
		if (c < 0x20 || c > 0x7e)
			return sentence("line %u: a byte that is not printable ASCII (0x%02x)", r->number,
					(unsigned int)c);
		if (length == MAX_LINE)
			return sentence("line %u: longer than %d bytes", r->number, MAX_LINE);
		r->line[length++] = (char)c;
	}
	r->line[length] = '\0';
	return NULL;
}

/* Splits the next word off *text; NULL if there is none, or if words are separated by more than one space. */
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

/* Finds which entry has that name, and which alternative it is. */
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

/* What a fact's line was found to be. */
enum outcome { FACT_KEPT, FACT_MALFORMED, FACT_TWICE, FACT_OUT_OF_RANGE, FACT_NEEDS_BUILD_ID };

static enum outcome number_fact(const struct layout_spec *specs, size_t count, struct layout_number *numbers,
				bool is_macro, char *rest)
{
	const char *name = word(&rest);
	uint8_t alternative;
	size_t id;

	if (!name)
		return FACT_MALFORMED;
	if (!lookup(specs, count, name, &id, &alternative))
		return FACT_KEPT;
	if (numbers[id].present)
		return FACT_TWICE;
	const char *value = word(&rest);

	if (rest)
		return FACT_MALFORMED;
	if (!signed_decimal(value, &numbers[id].value))
		return FACT_OUT_OF_RANGE;
	numbers[id].present = true;
	numbers[id].is_macro = is_macro;
	return FACT_KEPT;
}

static enum outcome size_fact(struct layout *layout, char *rest)
{
	const char *name = word(&rest);
	uint8_t alternative;
	uint64_t size;
	size_t id;

	if (!name)
		return FACT_MALFORMED;
	if (!lookup(layout_struct_specs, LAYOUT_STRUCTS, name, &id, &alternative))
		return FACT_KEPT;
	if (layout->sizes[id].present)
		return FACT_TWICE;
	const char *value = word(&rest);

	if (rest)
		return FACT_MALFORMED;
	if (!decimal(value, MAX_STRUCT - 1, &size) || size == 0)
		return FACT_OUT_OF_RANGE;
	layout->sizes[id] = (struct layout_number){.present = true, .value = (int64_t)size};
	layout->struct_alternative[id] = alternative;
	return FACT_KEPT;
}

static enum outcome member_fact(struct layout *layout, char *rest)
{
	const char *name = word(&rest);
	uint64_t offset, size, shift = 0, width = 0;
	uint8_t alternative;
	size_t id;

	if (!name)
		return FACT_MALFORMED;
	if (!lookup(layout_member_specs, LAYOUT_MEMBERS, name, &id, &alternative))
		return FACT_KEPT;
	if (layout->members[id].present)
		return FACT_TWICE;
	const char *offset_word = word(&rest), *size_word = word(&rest);

	if (!offset_word || !size_word)
		return FACT_MALFORMED;
	if (!decimal(offset_word, MAX_STRUCT - 1, &offset) || !decimal(size_word, MAX_STRUCT - 1, &size))
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

static enum outcome function_fact(struct layout *layout, char *rest)
{
	const char *name = word(&rest);
	uint8_t alternative;
	size_t id;

	if (!name)
		return FACT_MALFORMED;
	if (!lookup(layout_function_specs, LAYOUT_FUNCTIONS, name, &id, &alternative))
		return FACT_KEPT;
	if (rest)
		return FACT_MALFORMED;
	if (layout->functions[id])
		return FACT_TWICE;
	layout->functions[id] = true;
	return FACT_KEPT;
}

static enum outcome symbol_fact(struct layout *layout, char *rest)
{
	const char *name = word(&rest);
	uint8_t alternative;
	size_t id;

	if (!name)
		return FACT_MALFORMED;
	if (!layout->build_id)
		return FACT_NEEDS_BUILD_ID;
	if (!lookup(layout_symbol_specs, LAYOUT_SYMBOLS, name, &id, &alternative))
		return FACT_KEPT;
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

static enum outcome window_fact(struct layout *layout, char *rest)
{
	const char *name = word(&rest);
	uint64_t low, high;
	uint8_t alternative;
	size_t id;

	if (!name)
		return FACT_MALFORMED;
	if (!layout->build_id)
		return FACT_NEEDS_BUILD_ID;
	if (!lookup(layout_window_specs, LAYOUT_WINDOWS, name, &id, &alternative))
		return FACT_KEPT;
	const char *low_word = word(&rest), *high_word = word(&rest), *function = word(&rest);

	if (!low_word || !high_word || !function || rest)
		return FACT_MALFORMED;
	if (!address(low_word, &low) || !address(high_word, &high) || low >= high)
		return FACT_OUT_OF_RANGE;
	struct layout_window *windows = reallocarray(layout->windows, layout->nr_windows + 1, sizeof(*windows));
	char *copy = strdup(function);

	if (windows)
		layout->windows = windows;
	if (!windows || !copy)
		abort(); /* as sentence() does */
	windows[layout->nr_windows++] =
	    (struct layout_window){.id = (enum layout_window_id)id, .low = low, .high = high, .function = copy};
	return FACT_KEPT;
}

static enum outcome fact(struct layout *layout, char *text)
{
	const char *kind = word(&text);

	if (!kind)
		return FACT_MALFORMED;
	if (strcmp(kind, "member") == 0)
		return member_fact(layout, text);
	if (strcmp(kind, "size") == 0)
		return size_fact(layout, text);
	if (strcmp(kind, "enumerator") == 0 || strcmp(kind, "macro") == 0)
		return number_fact(layout_enumerator_specs, LAYOUT_ENUMERATORS, layout->enumerators,
				   strcmp(kind, "macro") == 0, text);
	if (strcmp(kind, "constant") == 0)
		return number_fact(layout_constant_specs, LAYOUT_CONSTANTS, layout->constants, false, text);
	if (strcmp(kind, "function") == 0)
		return function_fact(layout, text);
	if (strcmp(kind, "symbol") == 0)
		return symbol_fact(layout, text);
	if (strcmp(kind, "window") == 0)
		return window_fact(layout, text);
	return FACT_KEPT;
}

/* Which header line this is; HEADERS if it is none. */
static enum header header_of(const char *line)
{
	size_t length = strcspn(line, " ");

	for (enum header h = 0; h < HEADERS; h++) {
		if (strlen(headers[h].word) == length && strncmp(headers[h].word, line, length) == 0)
			return h;
	}
	return HEADERS;
}

static bool build_id_is_valid(const char *id)
{
	size_t length = strlen(id);

	return length >= 2 && length <= 2 * BUILD_ID_MAX && length % 2 == 0 && strspn(id, "0123456789abcdef") == length;
}

/* Reads the first line and the header; r->line is then the first line after it. */
static char *read_header(struct reader *r, struct layout *layout)
{
	uint64_t format;
	char *error = next_line(r);

	if (error)
		return error;
	if (r->at_end)
		return sentence("the file is empty");
	if (strncmp(r->line, MAGIC " ", strlen(MAGIC " ")) != 0)
		return sentence("not a layout file: its first line is not `" MAGIC " %d`", LAYOUT_FORMAT);
	if (!decimal(r->line + strlen(MAGIC " "), UINT64_MAX, &format) || format != LAYOUT_FORMAT)
		return sentence("layout format %.20s is not known to this rbdump, which reads format %d",
				r->line + strlen(MAGIC " "), LAYOUT_FORMAT);
	enum header next = 0;

	for (;;) {
		error = next_line(r);
		if (error)
			return error;
		enum header h = r->at_end ? HEADERS : header_of(r->line);

		/* After the last header line, too, what is required is found to be missing. */
		for (; next < h; next++) {
			if (headers[next].required && !*header_value(layout, next))
				return sentence("line %u: the `%s` line is missing", r->number, headers[next].word);
		}
		if (h == HEADERS && layout->versions && !range_of(layout, &(struct version_range){0}))
			return sentence("line %u: `versions` is not a range of releases with `version` in it",
					r->number - 1);
		if (h == HEADERS && layout->versions && layout->build_id)
			return sentence("line %u: `versions` in a layout that is for one build", r->number - 1);
		if (h == HEADERS)
			return NULL;
		if (h < next)
			return sentence("line %u: `%s` is there twice or out of order", r->number, headers[h].word);
		const char *value = r->line + strlen(headers[h].word);

		if (value[0] != ' ' || !value[1])
			return sentence("line %u: `%s` without a value", r->number, headers[h].word);
		value++;
		if (h == HEADER_BUILD_ID && !build_id_is_valid(value))
			return sentence("line %u: not a build-id", r->number);
		if (h == HEADER_LEVELS && !version_parse_levels(value, &(struct version_levels){0, 0}))
			return sentence("line %u: `levels` is not a range of patch levels", r->number);
		*header_value(layout, h) = sentence("%s", value);
		next = h + 1;
	}
}

/* FNV-1a, 64 bits: finds what was changed by accident or by hand, and is no protection against malice. */
#define DIGEST_BEGIN UINT64_C(0xcbf29ce484222325)

static uint64_t digest_line(uint64_t digest, const char *line)
{
	for (const char *at = line; *at; at++)
		digest = (digest ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
	return (digest ^ '\n') * UINT64_C(0x100000001b3);
}

/* Checks the digest of the facts, if the file has one: a layout that a person wrote has none. */
static char *check_digest(const struct layout *layout, uint64_t digest)
{
	char expected[17];

	snprintf(expected, sizeof(expected), "%016" PRIx64, digest);
	if (!layout->digest || strcmp(layout->digest, expected) == 0)
		return NULL;
	return sentence(
	    "its facts were changed after it was made (their digest is %s, not %.20s); make it again, or, if "
	    "the change is meant, take the `digest` line out",
	    expected, layout->digest);
}

/* Reads the facts, of which r->line is the first, and the end line; *digest receives the facts'. */
static char *read_facts(struct reader *r, struct layout *layout, uint64_t *digest)
{
	char previous[MAX_LINE + 1] = "";
	uint64_t facts = 0, announced;

	*digest = DIGEST_BEGIN;

	for (;; facts++) {
		if (r->at_end)
			return sentence("cut short: it ends at line %u, without an `end` line", r->number - 1);
		if (strncmp(r->line, "end ", 4) == 0)
			break;
		if (header_of(r->line) != HEADERS)
			return sentence("line %u: a header line after the facts", r->number);
		if (strcmp(previous, r->line) >= 0)
			return sentence("line %u: there twice or out of order", r->number);
		memcpy(previous, r->line, sizeof(previous));
		*digest = digest_line(*digest, previous);
		switch (fact(layout, r->line)) {
		case FACT_KEPT:
			break;
		case FACT_MALFORMED:
			return sentence("line %u: not understood: %.80s", r->number, previous);
		case FACT_TWICE:
			return sentence("line %u: there twice: %.80s", r->number, previous);
		case FACT_OUT_OF_RANGE:
			return sentence("line %u: a number that is out of range: %.80s", r->number, previous);
		case FACT_NEEDS_BUILD_ID:
			return sentence("line %u: an address in a layout that has no build-id", r->number);
		}
		char *error = next_line(r);

		if (error)
			return error;
	}
	if (!decimal(r->line + strlen("end "), UINT64_MAX, &announced) || announced != facts)
		return sentence("line %u: the end line does not match the number of facts, %" PRIu64, r->number, facts);
	char *error = next_line(r);

	if (!error && !r->at_end)
		error = sentence("line %u: something follows the end line", r->number);
	return error;
}

/* How many alternative paths a member has under one name of its struct. */
static unsigned int paths_per_struct_name(const struct layout_spec *member)
{
	unsigned int names = 0, structs = 0;

	while (member->names[names])
		names++;
	do /* fields.py gives each struct at least one name */
		structs++;
	while (layout_struct_specs[member->parent].names[structs]);
	return names / structs;
}

/* Checks that what is shifted by can be. */
static char *check_shifts(const struct layout *layout)
{
	static const enum layout_enumerator_id shifts[] = {
	    E_RUBY_FL_USHIFT,	      E_RUBY_ID_SCOPE_SHIFT,  E_RSTRING_EMBED_LEN_SHIFT,
	    E_RARRAY_EMBED_LEN_SHIFT, E_VM_CALL_TAILCALL_bit, E_RUBY_SPECIAL_SHIFT,
	};

	for (size_t i = 0; i < sizeof(shifts) / sizeof(shifts[0]); i++) {
		const struct layout_number *shift = &layout->enumerators[shifts[i]];

		if (shift->present && (shift->value < 0 || shift->value > 63))
			return sentence("enumerator %s: a shift of %" PRId64 " bits is out of range",
					layout_enumerator_specs[shifts[i]].names[0], shift->value);
	}
	return NULL;
}

/* Checks that each member lies within its struct. */
static char *check_members(const struct layout *layout)
{
	for (size_t i = 0; i < LAYOUT_MEMBERS; i++) {
		const struct layout_member *m = &layout->members[i];
		const struct layout_spec *spec = &layout_member_specs[i];

		if (!m->present)
			continue;
		const char *name = spec->names[m->alternative];

		if (!layout->sizes[spec->parent].present ||
		    m->alternative / paths_per_struct_name(spec) != layout->struct_alternative[spec->parent])
			return sentence("member %s: the size of its struct is missing", name);
		if ((int64_t)m->offset + m->size > layout->sizes[spec->parent].value)
			return sentence("member %s: %" PRIu32 " bytes at %" PRIu32 " are beyond its struct's %" PRId64,
					name, m->size, m->offset, layout->sizes[spec->parent].value);
	}
	return NULL;
}

static int by_id_and_low(const void *a, const void *b)
{
	const struct layout_window *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	return x->high < y->high ? -1 : x->high > y->high;
}

void layout_sort_windows(struct layout *layout)
{
	if (layout->nr_windows)
		qsort(layout->windows, layout->nr_windows, sizeof(*layout->windows), by_id_and_low);
}

char *layout_read_header(FILE *file, struct layout **ret)
{
	struct reader r = {.file = file};
	struct layout *layout = layout_create();

	if (!layout)
		return sentence("out of memory");
	char *error = read_header(&r, layout);

	if (error)
		layout_destroy(layout);
	else
		*ret = layout;
	return error;
}

char *layout_read(FILE *file, struct layout **ret)
{
	struct reader r = {.file = file};
	struct layout *layout = layout_create();

	if (!layout)
		return sentence("out of memory");
	char *error = read_header(&r, layout);
	uint64_t digest;

	if (!error)
		error = read_facts(&r, layout, &digest);
	if (!error)
		error = check_members(layout);
	if (!error)
		error = check_shifts(layout);
	if (!error)
		error = layout_missing(layout);
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

/* ---- writing */

/* Lines of facts, to be sorted. */
struct lines {
	char **lines;
	size_t count;
};

/* Takes a line from sentence(). */
static void add_line(struct lines *lines, char *line)
{
	char **grown = reallocarray(lines->lines, lines->count + 1, sizeof(*grown));

	if (!grown)
		abort(); /* as sentence() does */
	lines->lines = grown;
	lines->lines[lines->count++] = line;
}

static void add_numbers(struct lines *lines, const struct layout_number *numbers, const struct layout_spec *specs,
			size_t count, const char *kind)
{
	for (size_t i = 0; i < count; i++) {
		if (numbers[i].present)
			add_line(lines, sentence("%s %s %" PRId64, numbers[i].is_macro ? "macro" : kind,
						 specs[i].names[0], numbers[i].value));
	}
}

static void add_members(struct lines *lines, const struct layout *layout)
{
	for (size_t i = 0; i < LAYOUT_MEMBERS; i++) {
		const struct layout_member *m = &layout->members[i];

		if (!m->present)
			continue;
		const char *name = layout_member_specs[i].names[m->alternative];

		if (m->width)
			add_line(lines, sentence("member %s %" PRIu32 " %" PRIu32 " bits %u %u", name, m->offset,
						 m->size, m->shift, m->width));
		else
			add_line(lines, sentence("member %s %" PRIu32 " %" PRIu32, name, m->offset, m->size));
	}
}

/* What holds for any build of this version. */
static void add_facts(struct lines *lines, const struct layout *layout)
{
	for (size_t i = 0; i < LAYOUT_STRUCTS; i++) {
		if (layout->sizes[i].present)
			add_line(lines, sentence("size %s %" PRId64,
						 layout_struct_specs[i].names[layout->struct_alternative[i]],
						 layout->sizes[i].value));
	}
	add_members(lines, layout);
	add_numbers(lines, layout->enumerators, layout_enumerator_specs, LAYOUT_ENUMERATORS, "enumerator");
	add_numbers(lines, layout->constants, layout_constant_specs, LAYOUT_CONSTANTS, "constant");
	for (size_t i = 0; i < LAYOUT_FUNCTIONS; i++) {
		if (layout->functions[i])
			add_line(lines, sentence("function %s", layout_function_specs[i].names[0]));
	}
}

/* What holds for this build only. */
static void add_addresses(struct lines *lines, const struct layout *layout)
{
	for (size_t i = 0; i < LAYOUT_SYMBOLS; i++) {
		if (layout->symbols[i].present)
			add_line(lines, sentence("symbol %s 0x%" PRIx64,
						 layout_symbol_specs[i].names[layout->symbols[i].alternative],
						 layout->symbols[i].address));
	}
	for (size_t i = 0; i < layout->nr_windows; i++) {
		const struct layout_window *w = &layout->windows[i];

		add_line(lines, sentence("window %s 0x%" PRIx64 " 0x%" PRIx64 " %s",
					 layout_window_specs[w->id].names[0], w->low, w->high, w->function));
	}
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

bool layout_write(const struct layout *layout, FILE *file)
{
	struct lines lines = {NULL, 0};
	uint64_t digest = DIGEST_BEGIN;

	add_facts(&lines, layout);
	if (layout->build_id)
		add_addresses(&lines, layout);
	if (lines.count)
		qsort(lines.lines, lines.count, sizeof(*lines.lines), by_bytes);
	for (size_t i = 0; i < lines.count; i++)
		digest = digest_line(digest, lines.lines[i]);

	fprintf(file, MAGIC " %d\n", LAYOUT_FORMAT);
	for (enum header h = 0; h < HEADERS; h++) {
		const char *value = *header_value(layout, h);

		if (h == HEADER_DIGEST)
			fprintf(file, "%s %016" PRIx64 "\n", headers[h].word, digest);
		else if (value)
			fprintf(file, "%s %s\n", headers[h].word, value);
	}
	for (size_t i = 0; i < lines.count; i++) {
		fprintf(file, "%s\n", lines.lines[i]);
		free(lines.lines[i]);
	}
	free(lines.lines);
	fprintf(file, "end %zu\n", lines.count);
	return fflush(file) == 0 && !ferror(file);
}
