/* Layout files: what is written is read again as it was; what must be refused is refused, with the reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "layout/layout.h"
#include "layout/read.h"
#include "layout/words.h"
#include "layout/write.h"

/* A layout with everything that fields.def knows, under the first name of each. */
static struct layout *full_layout(void)
{
	struct layout *l = layout_create();

	assert_non_null(l);
	l->arch = strdup("x86_64");
	l->build_id = strdup("00ff");
	l->description = strdup("ruby 9.9.9 (a test)");
	l->levels = strdup("0 12");
	l->origin = strdup("v9_9_9 0123abcd");
	l->producer = strdup("a compiler -O2");
	l->source = strdup("a file");
	l->version = strdup("9.9.9");
	for (size_t i = 0; i < LAYOUT_STRUCTS; i++)
		l->sizes[i] = (struct layout_number){.present = true, .value = 4096};
	for (size_t i = 0; i < LAYOUT_MEMBERS; i++)
		l->members[i] = (struct layout_member){.present = true, .offset = (uint32_t)(8 * i), .size = 8};
	l->members[F_thread_status] =
	    (struct layout_member){.present = true, .offset = 100, .size = 2, .shift = 7, .width = 3};
	for (size_t i = 0; i < LAYOUT_ENUMERATORS; i++)
		l->enumerators[i] = (struct layout_number){.present = true, .value = -(int64_t)i};
	l->enumerators[E_RUBY_FL_USHIFT].value = 63;
	l->enumerators[E_RUBY_ID_SCOPE_SHIFT].value = 0;
	l->enumerators[E_RSTRING_EMBED_LEN_SHIFT].value = 1;
	l->enumerators[E_RARRAY_EMBED_LEN_SHIFT].value = 2;
	l->enumerators[E_VM_CALL_TAILCALL_bit].value = 8;
	l->enumerators[E_RUBY_SPECIAL_SHIFT].value = 8;
	l->enumerators[E_RARRAY_EMBED_FLAG].is_macro = true;
	for (size_t i = 0; i < LAYOUT_CONSTANTS; i++)
		l->constants[i] = (struct layout_number){.present = true, .value = INT64_MIN};
	for (size_t i = 0; i < LAYOUT_SYMBOLS; i++)
		l->symbols[i] = (struct layout_symbol){.present = true, .address = UINT64_MAX - i};
	for (size_t i = 0; i < LAYOUT_FUNCTIONS; i++)
		l->functions[i] = true;
	l->nr_windows = 2;
	l->windows = calloc(2, sizeof(*l->windows));
	assert_non_null(l->windows);
	/* In their order as numbers, which is not that of their texts. */
	l->windows[0] = (struct layout_window){.low = 0x20, .high = 0x30, .function = strdup("f")};
	l->windows[1] = (struct layout_window){.low = 0x100, .high = 0x180, .function = strdup("g")};
	return l;
}

/* The file's content, malloc'ed. */
static char *written(const struct layout *layout)
{
	char *content = NULL;
	size_t length;
	FILE *file = open_memstream(&content, &length);

	assert_non_null(file);
	assert_true(layout_write(layout, file));
	fclose(file);
	return content;
}

static struct error *read_bytes(const void *content, size_t length, struct layout **ret)
{
	FILE *file = length ? fmemopen((void *)content, length, "r") : fopen("/dev/null", "re");

	assert_non_null(file);
	struct error *error = layout_read(file, ret);

	fclose(file);
	return error;
}

static struct error *read_text(const char *content, struct layout **ret)
{
	return read_bytes(content, strlen(content), ret);
}

static void assert_refused_bytes(const void *content, size_t length, const char *reason)
{
	struct layout *layout = NULL;
	struct error *error = read_bytes(content, length, &layout);

	assert_non_null(error);
	assert_null(layout);
	if (!strstr(error->message, reason))
		fail_msg("refused with \"%s\", not \"%s\"", error->message, reason);
	assert_int_equal(error->status, EXIT_FAILED);
	error_destroy(error);
}

static void assert_refused(const char *content, const char *reason)
{
	assert_refused_bytes(content, strlen(content), reason);
}

/* The full layout's file with the first occurrence of a text replaced; malloc'ed. */
static char *with_replaced(const char *old, const char *new)
{
	struct layout *layout = full_layout();
	char *content = written(layout), *at = strstr(content, old);

	if (!at)
		fail_msg("no \"%s\" in the layout", old);
	size_t before = (size_t)(at - content), after = strlen(at) - strlen(old);
	char *result = malloc(before + strlen(new) + after + 1);

	assert_non_null(result);
	memcpy(result, content, before);
	memcpy(result + before, new, strlen(new));
	memcpy(result + before + strlen(new), at + strlen(old), after + 1);
	free(content);
	layout_destroy(layout);
	return result;
}

static void refuse_replaced(const char *old, const char *new, const char *reason)
{
	char *content = with_replaced(old, new);

	assert_refused(content, reason);
	free(content);
}

static void test_round_trip(void **state)
{
	struct layout *layout = full_layout(), *again;
	char *first = written(layout);
	struct error *error = read_text(first, &again);

	(void)state;
	assert_null(error);
	char *second = written(again);

	assert_string_equal(first, second);
	assert_string_equal(again->build_id, "00ff");
	assert_string_equal(again->description, "ruby 9.9.9 (a test)");
	assert_string_equal(again->levels, "0 12");
	assert_string_equal(again->origin, "v9_9_9 0123abcd");
	assert_memory_equal(layout->sizes, again->sizes, sizeof(layout->sizes));
	for (size_t i = 0; i < LAYOUT_MEMBERS; i++) {
		const struct layout_member *x = &layout->members[i], *y = &again->members[i];

		assert_true(x->present == y->present && x->offset == y->offset && x->size == y->size &&
			    x->shift == y->shift && x->width == y->width && x->alternative == y->alternative);
	}
	for (size_t i = 0; i < LAYOUT_ENUMERATORS; i++) {
		assert_int_equal(again->enumerators[i].value, layout->enumerators[i].value);
		assert_int_equal(again->enumerators[i].is_macro, i == E_RARRAY_EMBED_FLAG);
	}
	for (size_t i = 0; i < LAYOUT_CONSTANTS; i++)
		assert_int_equal(again->constants[i].value, INT64_MIN);
	for (size_t i = 0; i < LAYOUT_SYMBOLS; i++)
		assert_true(again->symbols[i].present && again->symbols[i].address == UINT64_MAX - i);
	assert_int_equal(again->nr_windows, 2);
	assert_int_equal(again->windows[0].low, 0x20);
	assert_string_equal(again->windows[1].function, "g");
	free(first);
	free(second);
	layout_destroy(layout);
	layout_destroy(again);
}

/* Without a build-id, nobody can say for which file addresses would hold. */
static void test_no_build_id(void **state)
{
	struct layout *layout = full_layout(), *again;

	(void)state;
	free(layout->build_id);
	layout->build_id = NULL;
	char *content = written(layout);

	assert_null(strstr(content, "build-id"));
	assert_null(strstr(content, "symbol "));
	assert_null(strstr(content, "window "));
	assert_null(read_text(content, &again));
	assert_null(again->build_id);
	assert_int_equal(again->nr_windows, 0);
	assert_false(again->symbols[0].present);
	free(content);
	layout_destroy(again);
	layout_destroy(layout);
	refuse_replaced("build-id 00ff\n", "", "an address is not allowed in a layout that has no build-id");
}

static void test_alternative_names(void **state)
{
	struct layout *layout = full_layout(), *again;

	(void)state;
	layout->struct_alternative[S_list_node] = 1;
	layout->members[F_list_node_next].alternative = 1;
	layout->members[F_cfp_iseq].alternative = 1;
	char *content = written(layout);

	assert_non_null(strstr(content, "\nmember ccan_list_node.next "));
	assert_non_null(strstr(content, "\nmember rb_control_frame_struct._iseq "));
	assert_null(read_text(content, &again));
	assert_int_equal(again->struct_alternative[S_list_node], 1);
	assert_int_equal(again->members[F_cfp_iseq].alternative, 1);
	free(content);
	layout_destroy(again);

	/* A member of one alternative, the size of the other. */
	layout->struct_alternative[S_list_node] = 0;
	content = written(layout);
	assert_refused(content, "member ccan_list_node.next: the size of its struct is missing");
	free(content);
	layout_destroy(layout);
}

/* Takes the digest line out, as a person does who has changed a fact. */
static void without_digest(char *content)
{
	char *line = strstr(content, "\ndigest "), *next = line ? strchr(line + 1, '\n') : NULL;

	assert_non_null(next);
	memmove(line, next, strlen(next) + 1);
}

static void test_digest(void **state)
{
	struct layout *again;
	char *content = with_replaced("constant ID_ENTRY_UNIT -9", "constant ID_ENTRY_UNIT -8");

	(void)state;
	assert_refused(content, "the facts were changed after the layout was made");
	without_digest(content);
	assert_null(read_text(content, &again));
	layout_destroy(again);
	free(content);
	content = with_replaced("\ndigest ", "\ndigest 0");
	assert_refused(content, "the facts were changed after the layout was made");
	free(content);
}

static void test_unknown_facts(void **state)
{
	struct layout *again;
	char *content = with_replaced("constant ", "a_later_fact 1 2 3\nconstant ");
	char *end = strstr(content, "\nend ");

	(void)state;
	assert_non_null(end);
	unsigned long facts = strtoul(end + strlen("\nend "), NULL, 10);

	snprintf(end, strlen(end) + 1, "\nend %lu\n", facts + 1);
	without_digest(content);
	assert_null(read_text(content, &again));
	layout_destroy(again);
	free(content);
}

static void test_absent_is_not_zero(void **state)
{
	struct layout *layout = full_layout(), *again;

	(void)state;
	layout->members[F_nt_tid].present = false;
	char *content = written(layout);

	assert_null(read_text(content, &again));
	assert_false(layout_has(again, F_nt_tid));
	assert_true(layout_has(again, F_nt_thread_id));
	free(content);
	layout_destroy(layout);
	layout_destroy(again);
}

static void test_required(void **state)
{
	struct layout *layout = full_layout();
	char *content;

	(void)state;
	layout->members[F_cfp_pc].present = false;
	content = written(layout);
	assert_refused(content, "the member rb_control_frame_struct.pc or rb_control_frame_t.pc is missing");
	free(content);
	layout->members[F_cfp_pc].present = true;

	layout->enumerators[E_RUBY_T_STRING].present = false;
	content = written(layout);
	assert_refused(content, "the enumerator RUBY_T_STRING is missing");
	free(content);
	layout->enumerators[E_RUBY_T_STRING].present = true;

	layout->members[F_vm_living_threads].present = layout->members[F_vm_living_table].present = false;
	layout->members[F_vm_ractors].present = false;
	content = written(layout);
	assert_refused(content, "at least one of these members is required, but none is present: "
				"rb_vm_struct.living_threads.n.next, "
				"rb_vm_struct.living_threads, rb_vm_struct.ractor.set.n.next");
	free(content);
	layout_destroy(layout);
}

static void test_first_line(void **state)
{
	(void)state;
	assert_refused("", "the file is empty");
	assert_refused("\x7f"
		       "ELF",
		       "not printable ASCII");
	assert_refused("hello\n", "not a layout file");
	refuse_replaced("rbdump-layout 1", "rbdump-layout 2", "layout format 2 is not known");
	refuse_replaced("rbdump-layout 1", "rbdump-layout", "not a layout file");
	refuse_replaced("rbdump-layout 1", "rbdump-layout 18446744073709551617", "is not known");
}

static void test_header(void **state)
{
	(void)state;
	refuse_replaced("arch x86_64\n", "", "the `arch` line is missing");
	refuse_replaced("version 9.9.9\n", "", "the `version` line is missing");
	refuse_replaced("arch x86_64\n", "arch x86_64\narch x86_64\n", "`arch` appears twice or is out of order");
	refuse_replaced("arch x86_64\nbuild-id 00ff\n", "build-id 00ff\narch x86_64\n", "the `arch` line is missing");
	refuse_replaced("version 9.9.9", "version", "`version` without a value");
	refuse_replaced("version 9.9.9\n", "version 9.9.9\nversions 9.9.0 9.9.12\n", "a layout that is for one build");
	refuse_replaced("version 9.9.9\n", "version 9.9.9\nversions 9.9.10 9.9.12\n", "not a range of releases");
	refuse_replaced("version 9.9.9\n", "version 9.9.9\nversions 9.9.9\n", "not a range of releases");
	refuse_replaced("version 9.9.9\n", "version 9.9.9pre\nversions 9.9.9 9.9.9\n", "not a range of releases");
	refuse_replaced("version 9.9.9\n", "versions 9.9.0 9.9.12\nversion 9.9.9\n", "the `version` line is missing");
	refuse_replaced("version 9.9.9\n", "levels 0 5\nversion 9.9.9\n", "out of order");
	refuse_replaced("levels 0 12", "levels 5", "not a range of patch levels");
	refuse_replaced("origin v9_9_9 0123abcd", "origin", "`origin` without a value");
	refuse_replaced("build-id 00ff", "build-id 00f", "not a build-id");
	refuse_replaced("build-id 00ff", "build-id 00FF", "not a build-id");
	refuse_replaced("\nsize ", "\nversion 9.9.9\nsize ", "a header line after the facts");
}

/* Every place where a file can have been cut. */
static void test_truncated(void **state)
{
	struct layout *layout = full_layout();
	char *content = written(layout);

	(void)state;
	for (size_t length = 0; length < strlen(content); length++) {
		struct layout *again = NULL;
		struct error *error = read_bytes(content, length, &again);

		assert_non_null(error);
		assert_null(again);
		error_destroy(error);
	}
	free(content);
	layout_destroy(layout);
}

static void test_end(void **state)
{
	(void)state;
	refuse_replaced("enumerator RUBY_FL_USHIFT 63", "enumerator RUBY_FL_USHIFT 64",
			"a shift of 64 bits is out of range");
	refuse_replaced("enumerator RUBY_ID_SCOPE_SHIFT 0", "enumerator RUBY_ID_SCOPE_SHIFT -1",
			"a shift of -1 bits is out of range");
	refuse_replaced("enumerator VM_CALL_TAILCALL_bit 8", "enumerator VM_CALL_TAILCALL_bit 64",
			"a shift of 64 bits is out of range");
	refuse_replaced("\nend ", "\nend 1", "does not match the number of facts");
	refuse_replaced("\nend ", "\nend -", "does not match the number of facts");
	refuse_replaced("\nend ", "\nend 0\nend ", "does not match the number of facts");

	struct layout *layout = full_layout();
	char *content = written(layout);
	char *longer = malloc(strlen(content) + 2);

	assert_non_null(longer);
	strcpy(longer, content);
	strcat(longer, "\n");
	assert_refused(longer, "something follows the `end` line");
	free(longer);
	free(content);
	layout_destroy(layout);
}

static void test_hostile_numbers(void **state)
{
	static const char *const wrong[] = {"-1",	  "65536",
					    "4294967296", "18446744073709551616",
					    "0x10",	  "1e3",
					    "+1",	  "",
					    " 1",	  "99999999999999999999999999999999999999"};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char number[100];

		snprintf(number, sizeof(number), "member RBasic.flags %s 8\n", wrong[i]);
		char *content = with_replaced("member RBasic.flags ", number);

		assert_refused(content, "line ");
		free(content);
		snprintf(number, sizeof(number), "size RBasic %s\n", wrong[i]);
		content = with_replaced("size RBasic 4096\n", number);
		assert_refused(content, "line ");
		free(content);
	}
	refuse_replaced("size RBasic 4096", "size RBasic 0", "out of range");
	refuse_replaced("size RBasic 4096", "size RBasic 8", "do not fit into its struct of 8 bytes");
	refuse_replaced("0xffffffffffffffff", "0x1ffffffffffffffff", "out of range");
	refuse_replaced("0xffffffffffffffff", "ffff", "out of range");
	refuse_replaced("window vm_push_frame 0x100 0x180", "window vm_push_frame 0x180 0x180", "out of range");
	refuse_replaced("-9223372036854775808", "-9223372036854775809", "out of range");
	refuse_replaced("-9223372036854775808", "9223372036854775808", "out of range");
}

static void test_bitfields(void **state)
{
	(void)state;
	refuse_replaced("100 2 bits 7 3", "100 2 bits 8 3", "out of range");
	refuse_replaced("100 2 bits 7 3", "100 1 bits 7 3", "out of range");
	refuse_replaced("100 2 bits 7 3", "100 2 bits 7 0", "out of range");
	refuse_replaced("100 2 bits 7 3", "100 9 bits 7 65", "out of range");
	refuse_replaced("100 2 bits 7 3", "100 2 bits 7", "not understood");
	refuse_replaced("100 2 bits 7 3", "100 2 bit 7 3", "not understood");
	refuse_replaced("100 2 bits 7 3", "100 2 bits 7 3 1", "not understood");
}

static void test_order(void **state)
{
	(void)state;
	refuse_replaced("member RBasic.flags", "member z.flags", "the line appears twice or is out of order");
	refuse_replaced("size RBasic 4096\n", "size RBasic 4096\nsize RBasic 4096\n",
			"the line appears twice or is out of order");
	refuse_replaced("size RBasic 4096\n", "size RBasic 4096\nsize RBasic 4097\n",
			"the fact appears twice: size RBasic 4097");
	refuse_replaced("symbol ruby_current_vm_ptr 0xffffffffffffffff\n",
			"symbol ruby_current_vm_ptr 0x1\nsymbol ruby_current_vm_ptr 0xffffffffffffffff\n",
			"appears twice");
}

static void test_bytes(void **state)
{
	char line[1100], nul[] = "rbdump-layout 1\0\n";
	size_t large = 2 << 20;
	char *content = malloc(large);

	(void)state;
	assert_refused_bytes(nul, sizeof(nul) - 1, "not printable ASCII (0x00)");
	refuse_replaced("ruby 9.9.9", "ruby\t9.9.9", "line 4: a byte that is not printable ASCII (0x09)");
	refuse_replaced("ruby 9.9.9", "ruby \xc3\xa9", "not printable ASCII");
	refuse_replaced("arch x86_64\n", "arch x86_64\r\n", "not printable ASCII (0x0d)");
	memset(line, 'x', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	refuse_replaced("ruby 9.9.9", line, "line 4: longer than 1023 bytes");

	/* Lines that are no facts known, without end. */
	assert_non_null(content);
	int length = snprintf(content, large, "rbdump-layout 1\narch a\nsource s\nversion 1\n");

	for (unsigned int i = 0; (size_t)length + 20 < large; i++)
		length += snprintf(content + length, large - (size_t)length, "z%010u\n", i);
	assert_refused_bytes(content, (size_t)length, "the file is larger than 1048576 bytes");
	free(content);
}

static void test_header_only(void **state)
{
	struct layout *layout = full_layout(), *header;
	char *content = written(layout);
	FILE *file = fmemopen(content, strlen(content), "r");

	(void)state;
	assert_non_null(file);
	assert_null(layout_read_header(file, &header));
	assert_string_equal(header->version, "9.9.9");
	assert_string_equal(header->build_id, "00ff");
	assert_false(header->sizes[0].present);
	fclose(file);
	layout_destroy(header);
	layout_destroy(layout);
	free(content);
}

/* A text of anybody's for a layout file. */
static void test_text(void **state)
{
	char *text = layout_text("r\xc3\xbc\x1b ~\x7f and more", 7);

	(void)state;
	assert_string_equal(text, "r??? ~?");
	free(text);
}

static void test_write_error(void **state)
{
	struct layout *layout = full_layout();
	FILE *full = fopen("/dev/full", "we");

	(void)state;
	assert_non_null(full);
	assert_false(layout_write(layout, full));
	fclose(full);
	layout_destroy(layout);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_round_trip),
	    cmocka_unit_test(test_no_build_id),
	    cmocka_unit_test(test_alternative_names),
	    cmocka_unit_test(test_digest),
	    cmocka_unit_test(test_unknown_facts),
	    cmocka_unit_test(test_absent_is_not_zero),
	    cmocka_unit_test(test_required),
	    cmocka_unit_test(test_first_line),
	    cmocka_unit_test(test_header),
	    cmocka_unit_test(test_truncated),
	    cmocka_unit_test(test_end),
	    cmocka_unit_test(test_hostile_numbers),
	    cmocka_unit_test(test_bitfields),
	    cmocka_unit_test(test_order),
	    cmocka_unit_test(test_bytes),
	    cmocka_unit_test(test_header_only),
	    cmocka_unit_test(test_text),
	    cmocka_unit_test(test_write_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
