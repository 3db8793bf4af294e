#include "target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "facts.h"
#include "image.h"
#include "layout/check.h"
#include "layout/read.h"
#include "layout/write.h"
#include "layouts.h"
#include "looks.h"
#include "render/render.h"
#include "ruby/frame.h"
#include "ruby/resolve.h"
#include "values.h"
#include "waits.h"

/* How many frames are walked at most: the seeds have fewer, and their stacks room for more. */
enum { FRAMES_MAX = 8 };

/*
 * How many reads one walk and its names may take. A frame can lead to 4,096 environments of some 10 reads, twice to
 * 4,096 enclosing pieces of code of some 25, and to a few classes of 256 variables each: half a million. The seeds take
 * 500.
 */
#define READS_MAX (FRAMES_MAX * UINT64_C(600000))

/* One image in so many is also taken as two looks at a process. */
#define LOOKS_ONE_IN 8

static void violated(const char *what, int line)
{
	fprintf(stderr, "fuzz: line %d: not so: %s\n", line, what);
	abort();
}

#define REQUIRE(condition) ((condition) ? (void)0 : violated(#condition, __LINE__))

/* ---- counting reads: the linker puts this in the place of memory_read() (--wrap) */

bool __real_memory_read(struct memory *memory, uint64_t address, void *buffer, size_t length);
bool __wrap_memory_read(struct memory *memory, uint64_t address, void *buffer, size_t length);

static uint64_t reads, reads_max = READS_MAX;

bool __wrap_memory_read(struct memory *memory, uint64_t address, void *buffer, size_t length)
{
	reads++;
	REQUIRE(reads <= reads_max);
	return __real_memory_read(memory, address, buffer, length);
}

/* ---- images */

/* Nothing is anywhere but in the image. */
static void no_source(void *context, const uint64_t *pages, size_t count, uint8_t *buffer, bool *ok)
{
	(void)context;
	(void)pages;
	(void)buffer;
	memset(ok, 0, count * sizeof(*ok));
}

/* What one pass over an image has found. */
struct pass {
	struct stack stack;
	struct trace *trace;
	enum call_site_verdict *call_sites; /* of each frame but the innermost and the one above it */
	char *json, *text;
	size_t json_length, text_length;
};

/* Of one thread, which the trace has. */
static const struct trace_thread *thread_of(const struct pass *pass)
{
	return &pass->trace->threads[0];
}

static void take_pass(const struct ruby *ruby, struct pass *ret)
{
	struct access access = ruby_access(ruby);
	uint64_t ec = access_member(&access, IMAGE_THREAD, F_thread_ec);
	struct resolver *resolver;
	FILE *stream;

	*ret = (struct pass){.trace = trace_create()};
	REQUIRE(stack_walk(ruby, ec, IMAGE_THREAD, FRAMES_MAX, &ret->stack));
	ret->call_sites = calloc(ret->stack.nr_frames + 1, sizeof(*ret->call_sites));
	resolver = resolver_create(ruby, ret->trace);
	REQUIRE(ret->call_sites && ret->trace && resolver);
	for (size_t i = 0; i + 1 < ret->stack.nr_frames; i++)
		ret->call_sites[i] = call_site_judge(ruby, &ret->stack.frames[i + 1], &ret->stack.frames[i]);

	ret->trace->threads = calloc(1, sizeof(*ret->trace->threads));
	REQUIRE(ret->trace->threads);
	ret->trace->nr_threads = 1;
	ret->trace->ruby_version = ruby->layout->version;
	REQUIRE(resolver_stack(resolver, &ret->stack, &ret->trace->threads[0]));
	resolver_destroy(resolver);

	stream = open_memstream(&ret->json, &ret->json_length);
	REQUIRE(stream && render_json(ret->trace, stream));
	fclose(stream);
	stream = open_memstream(&ret->text, &ret->text_length);
	REQUIRE(stream);
	render_text(ret->trace, &(struct render_style){0}, stream);
	fclose(stream);
}

static void drop_pass(struct pass *pass)
{
	stack_clear(&pass->stack);
	trace_destroy(pass->trace);
	free(pass->call_sites);
	free(pass->json);
	free(pass->text);
}

/* Whether bytes are well-formed UTF-8: told by what they decode to, not as text.c does it. */
static bool is_utf8(const char *text)
{
	static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};

	for (const uint8_t *at = (const uint8_t *)text; *at;) {
		int more = *at < 0x80 ? 0 : *at >> 5 == 6 ? 1 : *at >> 4 == 14 ? 2 : *at >> 3 == 30 ? 3 : -1;
		uint32_t code = more <= 0 ? *at : *at & (0x3fu >> more);

		if (more < 0)
			return false;
		at++;
		for (int i = 0; i < more; i++, at++) {
			if (*at >> 6 != 2)
				return false;
			code = code << 6 | (*at & 0x3f);
		}
		if (code < least[more] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
			return false;
	}
	return true;
}

static bool is_of_a_stack(enum reason reason)
{
	return reason == REASON_EC_UNREADABLE || reason == REASON_EC_FOREIGN || reason == REASON_STACK_SIZE ||
	       reason == REASON_CFP_OUTSIDE || reason == REASON_CFP_MISALIGNED || reason == REASON_TOO_DEEP;
}

static bool is_of_a_frame(enum reason reason)
{
	return reason == REASON_FRAME_UNREADABLE || reason == REASON_EP_OUTSIDE || reason == REASON_ENV_UNREADABLE ||
	       reason == REASON_FRAME_KIND || reason == REASON_NOT_CODE || reason == REASON_METHOD_UNREADABLE ||
	       reason == REASON_NO_METHOD || reason == REASON_METHOD_OTHER;
}

/* What is there now is an imemo of that type; code may have been moved. */
static bool is_imemo(const struct ruby *ruby, uint64_t address, enum layout_enumerator_id type, bool follow)
{
	struct access access = ruby_access(ruby);
	uint64_t flags = access_member(&access, address, F_basic_flags), mask = access_enum(&access, E_RUBY_T_MASK);

	if (follow && layout_has(ruby->layout, F_moved_destination) &&
	    (flags & mask) == access_enum(&access, E_RUBY_T_MOVED))
		return is_imemo(ruby, access_member(&access, address, F_moved_destination), type, false);
	return !access.failed && (flags & mask) == access_enum(&access, E_RUBY_T_IMEMO) &&
	       (flags >> access_enum(&access, E_RUBY_FL_USHIFT) & 15) == access_enum(&access, type);
}

static void check_frame(const struct ruby *ruby, const struct stack *stack, const struct frame *frame)
{
	uint64_t end = stack->facts.vm_stack + stack->facts.words * 8;

	REQUIRE(frame->cfp >= stack->facts.vm_stack && frame->cfp + 2 * stack->facts.frame_size <= end);
	REQUIRE((end - frame->cfp) % stack->facts.frame_size == 0);
	switch (frame->kind) {
	case FRAME_UNREADABLE:
		REQUIRE(is_of_a_frame(frame->reason));
		return;
	case FRAME_RUBY:
		REQUIRE(is_imemo(ruby, frame->iseq, E_imemo_iseq, true));
		REQUIRE(frame->method != 0 || !frame->own_method || ruby->unchecked);
		break;
	case FRAME_CFUNC:
		REQUIRE(frame->iseq == 0 && frame->method != 0 && frame->own_method);
		break;
	case FRAME_HIDDEN:
		REQUIRE(frame->method == 0);
		break;
	default:
		REQUIRE(!"a kind of frame");
	}
	REQUIRE(frame->reason == REASON_NONE);
	REQUIRE(frame->method == 0 || is_imemo(ruby, frame->method, E_imemo_ment, true));
}

static void check_walk(const struct ruby *ruby, const struct stack *stack)
{
	bool failed = false;

	if (stack->reason == REASON_NONE && stack->started) {
		const struct stack_facts *f = &stack->facts;

		facts_check_stack(f);
		REQUIRE(validate_stack(f) == REASON_NONE);
		REQUIRE(stack->nr_frames == (f->vm_stack + f->words * 8 - f->cfp) / f->frame_size - 1);
	}
	REQUIRE(stack->reason == REASON_NONE || is_of_a_stack(stack->reason) || is_of_a_frame(stack->reason));
	REQUIRE(stack->nr_frames <= FRAMES_MAX);
	REQUIRE(stack->started || stack->nr_frames == 0);
	/* A thread that has not begun, or has ended. */
	REQUIRE(!stack->started || stack->facts.vm_stack != 0);
	if (is_of_a_stack(stack->reason) && stack->reason != REASON_TOO_DEEP)
		REQUIRE(stack->nr_frames == 0);
	for (size_t i = 0; i < stack->nr_frames; i++) {
		check_frame(ruby, stack, &stack->frames[i]);
		REQUIRE(stack->frames[i].cfp == stack->facts.cfp + i * stack->facts.frame_size);
		if (!failed && stack->frames[i].reason != REASON_NONE)
			REQUIRE(stack->reason == stack->frames[i].reason || stack->reason == REASON_TOO_DEEP);
		failed |= stack->frames[i].kind == FRAME_UNREADABLE;
	}
	if (is_of_a_frame(stack->reason))
		REQUIRE(failed);
}

static void check_named(const struct pass *pass)
{
	const struct trace_thread *thread = thread_of(pass);

	REQUIRE(thread->verdict == validate_verdict(thread->reason));
	REQUIRE(thread->nr_frames <= pass->stack.nr_frames);
	REQUIRE(pass->stack.reason == REASON_NONE || thread->reason == pass->stack.reason);
	for (size_t i = 0; i < thread->nr_frames; i++) {
		const struct trace_frame *frame = &thread->frames[i];

		if (frame->kind == TRACE_UNREADABLE) {
			REQUIRE(frame->reason > REASON_NONE && frame->reason < REASONS);
			REQUIRE(!frame->label && !frame->name && !frame->path && !frame->has_line);
			REQUIRE(thread->reason != REASON_NONE);
			continue;
		}
		REQUIRE(frame->reason == REASON_NONE);
		REQUIRE(frame->label && is_utf8(frame->label) && frame->name && is_utf8(frame->name));
		REQUIRE((!frame->path || is_utf8(frame->path)) &&
			(!frame->absolute_path || is_utf8(frame->absolute_path)));
	}
}

/* One line a frame, and no name can drive a terminal. */
static void check_text(const struct pass *pass)
{
	const struct trace_thread *thread = thread_of(pass);
	size_t lines = 0, expected = 4 + (thread->nr_frames > 0 ? thread->nr_frames : 1);

	REQUIRE(is_utf8(pass->text) && is_utf8(pass->json));
	REQUIRE(strlen(pass->text) == pass->text_length && strlen(pass->json) == pass->json_length);
	for (const char *at = pass->text; *at; at++) {
		lines += *at == '\n';
		REQUIRE(*at == '\n' || !((uint8_t)*at < 0x20 || *at == 0x7f));
		REQUIRE(!((uint8_t)at[0] == 0xc2 && (uint8_t)at[1] < 0xa0));
	}
	REQUIRE(lines == expected);
}

static void check_same(const struct pass *a, const struct pass *b)
{
	REQUIRE(a->stack.reason == b->stack.reason && a->stack.started == b->stack.started);
	REQUIRE(a->stack.nr_frames == b->stack.nr_frames);
	for (size_t i = 0; i < a->stack.nr_frames; i++) {
		const struct frame *x = &a->stack.frames[i], *y = &b->stack.frames[i];

		REQUIRE(x->cfp == y->cfp && x->pc == y->pc && x->iseq == y->iseq && x->method == y->method);
		REQUIRE(x->kind == y->kind && x->own_method == y->own_method && x->finish == y->finish &&
			x->reason == y->reason);
		REQUIRE(a->call_sites[i] == b->call_sites[i]);
	}
	REQUIRE(a->json_length == b->json_length && memcmp(a->json, b->json, a->json_length) == 0);
	REQUIRE(a->text_length == b->text_length && memcmp(a->text, b->text, a->text_length) == 0);
}

static void check_call_sites(const struct pass *pass)
{
	for (size_t i = 0; i + 1 < pass->stack.nr_frames; i++) {
		const struct frame *callee = &pass->stack.frames[i], *caller = &pass->stack.frames[i + 1];
		enum call_site_verdict verdict = pass->call_sites[i];

		REQUIRE(verdict == CALL_SITE_UNDECIDED || verdict == CALL_SITE_AGREES ||
			verdict == CALL_SITE_CONTRADICTS);
		if (verdict != CALL_SITE_UNDECIDED && caller->kind == FRAME_CFUNC)
			REQUIRE(callee->kind == FRAME_RUBY && callee->finish == (verdict == CALL_SITE_AGREES));
		else if (verdict != CALL_SITE_UNDECIDED)
			REQUIRE(callee->own_method && callee->method != 0 && caller->kind == FRAME_RUBY);
	}
}

static void report(const struct pass *pass, struct outcome *ret)
{
	const struct trace_thread *thread = thread_of(pass);
	size_t used = 0;

	ret->walked = pass->stack.started;
	ret->none = !pass->stack.started && pass->stack.reason == REASON_NONE;
	ret->stack = pass->stack.reason;
	ret->thread = thread->reason;
	ret->reasons = 1u << pass->stack.reason | 1u << thread->reason;
	for (size_t i = 0; i < pass->stack.nr_frames; i++) {
		ret->reasons |= 1u << pass->stack.frames[i].reason;
		ret->kinds |= 1u << pass->stack.frames[i].kind;
		if (i + 1 < pass->stack.nr_frames)
			ret->call_sites |= 1u << pass->call_sites[i];
	}
	ret->nr_frames = thread->nr_frames;
	for (size_t i = 0; i < thread->nr_frames; i++) {
		const char *name = thread->frames[i].name;
		size_t length = name ? strlen(name) : 0;

		ret->reasons |= 1u << thread->frames[i].reason;
		if (!name || length + 2 > sizeof(ret->names) - used)
			continue;
		memcpy(ret->names + used, name, length);
		ret->names[used + length] = '\n';
		used += length + 1;
	}
	ret->names[used] = '\0';
}

static size_t take_length(const uint8_t *at, size_t *left)
{
	size_t length = (size_t)(at[0] | at[1] << 8);

	length = length < *left ? length : *left;
	*left -= length;
	return length;
}

static void run_image(const struct layout *layout, const uint8_t *data, size_t size, struct outcome *ret)
{
	static struct memory *memory;
	size_t left = size - IMAGE_HEADER;
	size_t context = take_length(data + 2, &left), stack = take_length(data + 4, &left);
	const uint8_t *at = data + IMAGE_HEADER;
	const struct memory_piece pieces[] = {
	    {.address = IMAGE_CONTEXT, .length = context, .data = at},
	    {.address = IMAGE_STACK, .length = stack, .data = at + context},
	    {.address = IMAGE_HEAP, .length = left, .data = at + context + stack},
	};
	struct ruby ruby = {
	    .layout = layout,
	    .vm = IMAGE_SHAPES - layout->members[F_vm_shape_list].offset,
	    .symbols = data[1] & IMAGE_NO_SYMBOLS ? 0 : IMAGE_SYMBOLS,
	    .unchecked = data[1] & IMAGE_UNCHECKED,
	};
	struct waits_outcome waits;
	struct pass first, second;

	if (!memory)
		memory = memory_create(no_source, NULL, 1);
	REQUIRE(memory);
	memory_overlay(memory, pieces, sizeof(pieces) / sizeof(pieces[0]), 0, UINT64_MAX);
	ruby.memory = memory;
	reads = 0;
	take_pass(&ruby, &first);
	if (ret)
		ret->reads = reads;
	check_walk(&ruby, &first.stack);
	check_named(&first);
	check_call_sites(&first);
	check_text(&first);
	reads_max = UINT64_MAX; /* they have a limit in time */
	values_run(&ruby, &first.stack);
	waits = waits_run(&ruby);
	reads_max = READS_MAX;
	reads = 0;
	take_pass(&ruby, &second);
	check_same(&first, &second);
	if (ret) {
		report(&first, ret);
		ret->waits = waits.kinds;
		ret->deadlock = waits.deadlock;
	}
	if (size % LOOKS_ONE_IN == 0) {
		looks_check(first.trace, second.trace);
		first.trace = second.trace = NULL;
	}
	drop_pass(&first);
	drop_pass(&second);
	memory_overlay(memory, NULL, 0, 0, 0);
}

void target_run(const uint8_t *data, size_t size, struct outcome *ret)
{
	if (ret)
		*ret = (struct outcome){0};
	if (size < IMAGE_HEADER)
		return;
	if (data[0] >= IMAGE_FACTS)
		facts_run(data, size);
	else
		run_image(layouts_get(data[0]), data, size, ret);
}

/* ---- layout files */

static char *write_layout(const struct layout *layout)
{
	char *text = NULL;
	size_t length;
	FILE *stream = open_memstream(&text, &length);

	REQUIRE(stream && layout_write(layout, stream));
	fclose(stream);
	REQUIRE(strlen(text) == length);
	return text;
}

static struct error *read_layout(const void *text, size_t length, struct layout **ret)
{
	FILE *file = fmemopen((void *)text, length, "r");
	struct error *error;

	REQUIRE(file);
	error = layout_read(file, ret);
	fclose(file);
	return error;
}

static void check_refusal(const struct error *error)
{
	REQUIRE(error->status == EXIT_FAILED && *error->message);
	for (const char *at = error->message; *at; at++)
		REQUIRE(*at >= 0x20 && *at <= 0x7e);
}

static void check_layout(const struct layout *layout)
{
	REQUIRE(!layout_missing(layout));
	for (size_t i = 0; i < LAYOUT_MEMBERS; i++) {
		const struct layout_member *m = &layout->members[i];
		const struct layout_number *size = &layout->sizes[layout_member_specs[i].parent];

		if (!m->present)
			continue;
		REQUIRE(size->present && (uint64_t)m->offset + m->size <= (uint64_t)size->value);
		REQUIRE(m->shift + m->width <= 8 * m->size);
	}
}

/* What is written of it is read as the same, and has a digest of its own. */
static void check_written(const struct layout *layout)
{
	char *written = write_layout(layout), *again;
	struct layout *second;
	struct error *error;

	error = read_layout(written, strlen(written), &second);
	REQUIRE(!error);
	again = write_layout(second);
	REQUIRE(strcmp(written, again) == 0);
	layout_destroy(second);
	free(written);
	free(again);
}

bool target_run_layout(const uint8_t *data, size_t size, struct outcome *ret)
{
	const uint8_t *end = memchr(data, 0, size);
	size_t length = end ? (size_t)(end - data) : size;
	struct layout *layout;
	struct error *error;

	if (ret)
		*ret = (struct outcome){0};
	/* fmemopen(3) has no empty files. */
	if (length == 0)
		return false;
	error = read_layout(data, length, &layout);
	if (error) {
		check_refusal(error);
		error_destroy(error);
		return false;
	}
	check_layout(layout);
	check_written(layout);
	if (end && size - length - 1 >= IMAGE_HEADER)
		run_image(layout, end + 1, size - length - 1, ret);
	layout_destroy(layout);
	return true;
}
