#include "heaps.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/text.h"
#include "heap/baseline.h"
#include "heap/heap_dump.h"
#include "heap/heap_graph.h"
#include "heap/heap_open.h"
#include "heap/histogram.h"
#include "heap/object.h"
#include "heap/sums.h"
#include "heap/why.h"
#include "heap_seed.h"
#include "layouts.h"
#include "ruby/ivars_search.h"

/*
 * How many reads a command may take, and how many steps (ruby/steps.h) each of them. A step takes some five
 * reads.
 */
#define READS_MAX UINT64_C(10000000)
#define STEPS_MAX UINT64_C(20000)

/* More than an object of an image can own. */
#define OWNED_MAX (UINT64_C(1) << 30)

/* ---- what is asserted */

/* What was `stdout` and `stderr` before something is printed. */
static FILE *before, *errors_before;

static void violated(const char *what, int line)
{
	stderr = errors_before ? errors_before : stderr;
	fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, line, what);
	abort();
}

#define REQUIRE(condition) ((condition) ? (void)0 : violated(#condition, __LINE__))

/* ---- limits, and what no image has: the linker puts these in the place of the functions (--wrap) */

bool __real_memory_read(struct memory *memory, uint64_t address, void *buffer, size_t length);
bool __wrap_memory_read(struct memory *memory, uint64_t address, void *buffer, size_t length);
void __wrap_heap_open_limit(const struct target *target, struct heap_walk *walk);
void __real_heap_graph_read_refs(struct heap_walk *walk, uint32_t node, object_ref_visit *visit, void *context);
void __wrap_heap_graph_read_refs(struct heap_walk *walk, uint32_t node, object_ref_visit *visit, void *context);
bool __wrap_data_files_read(const struct target *target, struct data_files *ret);

static uint64_t reads;

bool __wrap_memory_read(struct memory *memory, uint64_t address, void *buffer, size_t length)
{
	reads++;
	REQUIRE(reads <= READS_MAX);
	return __real_memory_read(memory, address, buffer, length);
}

void __wrap_heap_open_limit(const struct target *target, struct heap_walk *walk)
{
	(void)target;
	walk->sizes.owned_max = OWNED_MAX;
	walk->refs.steps = steps_begin(STEPS_MAX / 3, OBJECT_REFS_FEW);
}

void __wrap_heap_graph_read_refs(struct heap_walk *walk, uint32_t node, object_ref_visit *visit, void *context)
{
	if (walk->refs.steps.left > STEPS_MAX)
		walk->refs.steps = steps_begin(STEPS_MAX / 3, OBJECT_REFS_FEW);
	__real_heap_graph_read_refs(walk, node, visit, context);
}

/* The variables of the image are the only ones. */
bool __wrap_data_files_read(const struct target *target, struct data_files *ret)
{
	(void)target;
	*ret = (struct data_files){
	    .files = calloc(1, sizeof(*ret->files)),
	    .nr_files = 1,
	    .ranges = calloc(1, sizeof(*ret->ranges)),
	    .nr_ranges = 1,
	};
	REQUIRE(ret->files && ret->ranges);
	ret->files[0] = (struct data_file){.path = strdup("/usr/lib/libruby.so"), .bias = HEAP_VARIABLES};
	ret->ranges[0] = (struct data_range){HEAP_VARIABLES, HEAP_VARIABLES + HEAP_NR_VARIABLES * 8, 0};
	return true;
}

/* ---- the target */

/* The image that is the memory of the target. */
static struct memory_piece pieces[3];

static void read_pages(const struct target *target, const uint64_t *pages, size_t count, uint8_t *buffer, bool *ok)
{
	(void)target;
	for (size_t i = 0; i < count; i++, buffer += MEMORY_PAGE) {
		ok[i] = false;
		for (size_t j = 0; j < 3; j++) {
			const uint64_t at = pages[i] - pieces[j].address;
			const size_t left = at < pieces[j].length ? pieces[j].length - at : 0;

			if (left == 0)
				continue;
			memset(buffer, 0, MEMORY_PAGE);
			memcpy(buffer, pieces[j].data + at, left < MEMORY_PAGE ? left : MEMORY_PAGE);
			ok[i] = true;
		}
	}
}

static bool may_have(const struct target *target, uint64_t address)
{
	(void)target;
	(void)address;
	return true;
}

static uint64_t mapped_bytes(const struct target *target)
{
	(void)target;
	return pieces[0].length + pieces[1].length + pieces[2].length;
}

static size_t take_length(const uint8_t *at, size_t *left)
{
	size_t length = (size_t)(at[0] | at[1] << 8);

	length = length < *left ? length : *left;
	*left -= length;
	return length;
}

static void take_image(const uint8_t *data, size_t size)
{
	size_t left = size - IMAGE_HEADER;
	const size_t context = take_length(data + 2, &left), slots = take_length(data + 4, &left);

	data += IMAGE_HEADER;
	pieces[0] = (struct memory_piece){.address = IMAGE_CONTEXT, .length = context, .data = data};
	pieces[1] = (struct memory_piece){.address = IMAGE_STACK, .length = slots, .data = data + context};
	pieces[2] = (struct memory_piece){.address = IMAGE_HEAP, .length = left, .data = data + context + slots};
}

/* ---- what is printed */

static bool is_printable(const char *text, size_t length)
{
	while (length > 0) {
		const size_t size = text_character((const uint8_t *)text, length);
		uint32_t point;

		if (size == 0 || (*text != '\n' && ((uint8_t)*text < 0x20 || *text == 0x7f)) ||
		    ((uint8_t)*text >= 0x80 && text_control(text, length, &point) > 0))
			return false;
		text += size;
		length -= size;
	}
	return true;
}

static char *printed, *told;
static size_t printed_length, told_length;

/* From this call on, what is printed is kept. */
static void begin_output(void)
{
	before = stdout;
	errors_before = stderr;
	stdout = open_memstream(&printed, &printed_length);
	stderr = open_memstream(&told, &told_length);
	REQUIRE(stdout && stderr);
}

/* Ends it. Returns what was printed. The caller frees it. */
static char *end_output(struct error *error)
{
	fclose(stdout);
	fclose(stderr);
	stdout = before;
	stderr = errors_before;
	REQUIRE(is_printable(printed, printed_length) && is_printable(told, told_length));
	free(told);
	/* No image can make rbdump run out of memory. */
	REQUIRE(error != error_no_memory());
	error_destroy(error);
	return printed;
}

static json_t *parse(const char *text, size_t length)
{
	json_error_t problem;
	json_t *ret = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &problem);

	if (!ret)
		fprintf(stderr, "%s: %.*s\n", problem.text, (int)length, text);
	REQUIRE(ret);
	return ret;
}

/* ---- the commands */

/* Everything of one run. */
struct run {
	struct session session;
	struct heap_options options;
	struct heaps_outcome *outcome;
};

static void check_count(const struct heap_count *count)
{
	const struct heap_totals *totals = &count->totals;
	uint64_t objects = 0, dead = 0, free_slots = 0, slots = 0;

	for (size_t i = CENSUS_OTHERS; i < census_end(count->census); i++) {
		const struct census_group *group = census_group(count->census, (uint16_t)i);
		uint64_t low, high;

		*(group->kind.dead ? &dead : &objects) += group->objects;
		REQUIRE(group->inexact <= group->objects && group->owned_bytes <= SUM_MAX);
		REQUIRE(group->stayed <= group->objects && group->stayed <= group->before);
		heap_count_range(count, group, false, true, &low, &high);
		REQUIRE(low <= high);
	}
	for (size_t i = 0; i < totals->nr_pools; i++) {
		free_slots += totals->pools[i].free;
		slots += totals->pools[i].slots;
	}
	REQUIRE(objects == totals->objects && dead == totals->dead);
	REQUIRE(totals->slots == objects + dead + totals->free && free_slots == totals->free && slots == totals->slots);
}

/* Compares a count with its own JSON: nothing has grown. */
static void compare(const char *json, struct histogram *histogram)
{
	char path[64];
	const int fd = memfd_create("heaps", MFD_CLOEXEC);
	struct error *error;
	char *text;

	REQUIRE(fd >= 0 && write(fd, json, printed_length) == (ssize_t)printed_length);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	error = baseline_compare(path, histogram);
	close(fd);
	REQUIRE(!error);
	for (size_t i = 0; i < histogram->nr_rows; i++)
		REQUIRE(histogram->rows[i].before.objects == histogram->rows[i].objects &&
			histogram->rows[i].before.owned_bytes == histogram->rows[i].owned_bytes);
	begin_output();
	histogram_text(histogram, 0, stdout);
	text = end_output(NULL);
	free(text);
}

static void print_count(const struct run *run, struct heap_count *count, enum heap_mode mode)
{
	struct histogram histogram = {.version = "3.4.5", .description = "ruby", .mode = mode};
	char *text;

	REQUIRE(histogram_make(&run->session.ruby, count, true, &histogram));
	begin_output();
	histogram_text(&histogram, 5, stdout);
	free(end_output(NULL));
	begin_output();
	REQUIRE(histogram_json(&histogram, stdout));
	text = end_output(NULL);
	json_decref(parse(text, printed_length));
	compare(text, &histogram);
	free(text);
	histogram_clear(&histogram);
}

static void run_count(const struct run *run)
{
	struct heap_count count;

	REQUIRE(heap_count_begin(&run->session.ruby, target_read_pages, run->session.target,
				 run->session.target->operations->runs, false, &count));
	count.owned_max = OWNED_MAX;
	heap_count_once(&count);
	REQUIRE(!count.no_memory);
	check_count(&count);
	run->outcome->complete = !count.incomplete;
	run->outcome->slots = count.totals.slots;
	run->outcome->objects = count.totals.objects;
	for (size_t i = CENSUS_OTHERS; i < census_end(count.census); i++)
		run->outcome->sized +=
		    census_group(count.census, (uint16_t)i)->objects - census_group(count.census, (uint16_t)i)->inexact;
	print_count(run, &count, HEAP_CORE);
	heap_count_twice(&count);
	REQUIRE(!count.no_memory);
	check_count(&count);
	print_count(run, &count, HEAP_UNPAUSED);
	heap_count_clear(&count);
}

static void run_objspace(struct run *run)
{
	enum exit_status status;
	struct error *error;
	char *text, *end;

	begin_output();
	error = heap_dump(&run->options, &run->session, &status);
	text = end_output(error);
	for (char *line = text; *line; line = end + 1) {
		json_t *object;

		end = strchr(line, '\n');
		REQUIRE(end);
		object = parse(line, (size_t)(end - line));
		REQUIRE(json_is_string(json_object_get(object, "type")));
		if (json_object_get(object, "address"))
			run->outcome->lines++;
		run->outcome->references += json_array_size(json_object_get(object, "references"));
		json_decref(object);
	}
	free(text);
	begin_output();
	text = end_output(object_print(&run->options.target, &run->session, HEAP_FIRST_SLOT, 30, false, &status));
	run->outcome->found = strstr(text, "Refers to") != NULL;
	free(text);
}

static void run_dominators(struct run *run)
{
	enum exit_status status;
	char *text;

	begin_output();
	text = end_output(heap_dominators(&run->options, &run->session, &status));
	run->outcome->printed = strstr(text, "retained") != NULL;
	free(text);
}

static void run_why(struct run *run)
{
	enum exit_status status;
	char *text;

	run->options.why = HEAP_CLASS_NAME;
	begin_output();
	text = end_output(heap_why(&run->options, &run->session, &status));
	run->outcome->printed = strstr(text, "leads to") != NULL;
	free(text);
	run->options.why = "the first object";
	run->options.why_address = HEAP_FIRST_SLOT;
	begin_output();
	free(end_output(heap_why(&run->options, &run->session, &status)));
}

static void run_command(struct run *run, uint8_t command)
{
	switch (command) {
	case HEAPS_COUNT:
		run_count(run);
		break;
	case HEAPS_OBJSPACE:
		run_objspace(run);
		break;
	case HEAPS_DOMINATORS:
		run_dominators(run);
		break;
	default:
		run_why(run);
	}
}

static void run_image(const uint8_t *data, struct heaps_outcome *ret)
{
	const bool runs = data[1] & HEAPS_RUNS, stripped = data[1] & HEAPS_STRIPPED;
	const struct target_operations operations = {
	    .name = "process",
	    .is = "is",
	    .again = "",
	    .runs = runs,
	    .read_pages = read_pages,
	    .may_have = may_have,
	    .mapped_bytes = mapped_bytes,
	};
	struct target target = {.operations = &operations, .pid = 1};
	struct module_segment variables = {HEAP_VARIABLES, HEAP_VARIABLES + HEAP_NR_VARIABLES * 8};
	struct module module = {.target = &target, .fd = -1, .data = &variables, .nr_data = 1, .whole = variables};
	struct run run = {
	    .session = {.target = &target, .module = &module, .version = "3.4.5"},
	    .options = {.target = {.core = runs ? NULL : "core"}, .rows = 10},
	    .outcome = ret,
	};
	struct ruby *ruby = &run.session.ruby;

	*ruby = (struct ruby){
	    .layout = layouts_get(data[0]),
	    .vm = HEAP_VM,
	    .symbols = IMAGE_SYMBOLS,
	    .object_class = HEAP_VARIABLES + VARIABLE_OBJECT_CLASS * 8,
	    .shape_tree = stripped ? 0 : HEAP_VARIABLES + VARIABLE_SHAPE_TREE * 8,
	    .generic_ivars = stripped ? 0 : HEAP_VARIABLES + VARIABLE_GENERIC_IVARS * 8,
	};
	run.session.layout.layout = (struct layout *)ruby->layout;
	ruby->memory = session_memory(&run.session);
	REQUIRE(ruby->memory && ivars_search(&module, target_read_pages, &target, ruby));
	run_command(&run, data[1] & HEAPS_COMMAND);
	memory_destroy(ruby->memory);
}

void heaps_run(const uint8_t *data, size_t size, struct heaps_outcome *ret)
{
	struct heaps_outcome outcome = {0};

	if (size >= IMAGE_HEADER) {
		take_image(data, size);
		reads = 0;
		run_image(data, &outcome);
		outcome.reads = reads;
	}
	if (ret)
		*ret = outcome;
}
