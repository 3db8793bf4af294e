#include "ruby/heap_root.h"

#include <inttypes.h>
#include <string.h>

#include "base/signal_name.h"
#include "ruby/context.h"
#include "ruby/environment.h"
#include "ruby/label.h"
#include "ruby/symbol.h"

/* Appends the name of an ID; its number if it has none. */
static void add_id(const struct ruby *ruby, uint64_t id, struct text *text)
{
	struct access access = ruby_access(ruby);

	if (!symbol_add(ruby, &access, id, text))
		text_format(text, "(ID 0x%" PRIx64 ")", id);
}

/* The member of a struct that contains a place; -1 if the layout has none. */
static int member_at(const struct layout *layout, enum layout_struct_id parent, uint64_t offset)
{
	for (int i = 0; i < LAYOUT_MEMBERS; i++) {
		const struct layout_member *member = &layout->members[i];

		if (layout_member_specs[i].parent == (int)parent && member->present && offset >= member->offset &&
		    offset - member->offset < member->size)
			return i;
	}
	return -1;
}

/*
 * The name of the signal that a place in vm.trap_list is for; NULL if it has none. A handler is a VALUE since 2.5, and a
 * struct of two words before (vm_core.h, v1_9_3_0 to v4.0.5 and head).
 */
static const char *signal_of(const struct layout_member *trap_list, uint64_t offset)
{
	return signal_name((int)((offset - trap_list->offset) / (trap_list->alternative == 0 ? 8 : 16)));
}

/* Appends the member of a struct that contains a word: "load_path", "0x48" if the layout does not name it. */
static void add_member(const struct layout *layout, enum layout_struct_id parent, uint64_t offset, struct text *text)
{
	const int id = member_at(layout, parent, offset);
	const char *name = id >= 0 ? layout_member_specs[id].names[layout->members[id].alternative] : NULL;
	const char *dot = name ? strchr(name, '.') : NULL;

	if (id == F_vm_trap_list && signal_of(&layout->members[id], offset))
		text_format(text, "handler of %s", signal_of(&layout->members[id], offset));
	else if (dot)
		text_format(text, "%s", dot + 1);
	else
		text_format(text, "0x%" PRIx64, offset);
}

static void add_thread(const struct heap_roots *roots, size_t index, struct text *text)
{
	const struct ruby_threads *threads = &roots->threads;
	struct access access = ruby_access(roots->ruby);
	struct text name = {0};

	if (index >= threads->count) {
		text_format(text, "a thread that has ended");
		return;
	}
	if (threads->threads[index].main) {
		text_format(text, "the main thread");
		return;
	}
	text_format(text, "thread %zu", index + 1);
	if (!value_is_object(threads->threads[index].name))
		return;
	if (!value_append_shortened(&name, &access, threads->threads[index].name, VALUE_NAME_MAX))
		text_clear(&name);
	if (name.data) {
		text_format(text, " \"");
		text_add(text, name.data, name.length);
		text_format(text, "\"");
	}
	text_clear(&name);
}

static void add_stack(const struct heap_roots *roots, const struct heap_root *root, struct text *text)
{
	const struct heap_stack *stack = &roots->stacks[root->stack];

	if (stack->fiber != 0)
		text_format(text, "fiber 0x%" PRIx64 " of ", stack->fiber);
	add_thread(roots, stack->thread, text);
}

/* The index of the frame that a word of a VM stack belongs to; the number of frames if that is not known. */
static size_t frame_of_word(const struct heap_stack *stack, uint64_t word)
{
	const struct stack_facts *facts = &stack->walked.facts;
	size_t index = 0;

	if (word >= facts->cfp && facts->frame_size > 0)
		index = (size_t)((word - facts->cfp) / facts->frame_size);
	else /* The innermost frame is the first, and has the highest addresses. */
		while (index < stack->walked.nr_frames &&
		       (stack->words[index].start == 0 || stack->words[index].start > word))
			index++;
	return index < stack->walked.nr_frames ? index : stack->walked.nr_frames;
}

/* Appends "Shop#open at shop.rb:12". */
static void add_frame(const struct ruby *ruby, const struct frame *frame, struct text *text)
{
	struct access access = ruby_access(ruby);
	struct method method;
	struct code code;
	const bool has_method = frame->method != 0 && method_read(&access, frame->method, &method);
	int64_t line;

	access.failed = false;
	if (frame->kind == FRAME_CFUNC && has_method) {
		name_of_method(ruby, &access, &method, text);
		return;
	}
	if (frame->kind != FRAME_RUBY || !code_read(&access, frame->iseq, &code)) {
		text_format(text, "of Ruby itself");
		return;
	}
	name_of_code(ruby, &access, &code, has_method ? &method : NULL, text);
	text_format(text, " at ");
	value_append(text, &access, code.path);
	line = code_has_pc(&code, frame->pc) ? code_line(&access, &code, frame->pc) : code.first_line;
	text_format(text, ":%" PRId64, line);
}

/* The ID of a local variable; 0 if it cannot be read. Some variables of Ruby itself have no ID. */
static uint64_t local_id(const struct ruby *ruby, const struct frame *frame, uint64_t index)
{
	struct access access = ruby_access(ruby);
	uint64_t table, id;

	if (!layout_has(ruby->layout, F_body_local_table))
		return 0;
	table = access_member(&access, code_body(&access, value_object(&access, frame->iseq)), F_body_local_table);
	id = access_word(&access, table + index * 8);
	return access.failed ? 0 : id;
}

/* Appends the name of a local variable, if it has one. Those without a name are of Ruby itself. */
static bool add_local(const struct ruby *ruby, uint64_t id, struct text *text)
{
	struct access access = ruby_access(ruby);
	struct text name = {0};
	const bool named = id != 0 && symbol_add(ruby, &access, id, &name) && name.length > 0;

	if (named) {
		text_format(text, "local variable ");
		text_add(text, name.data, name.length);
	}
	text_clear(&name);
	return named;
}

/* Appends what a word of the part of a frame is. */
static void add_frame_word(const struct ruby *ruby, const struct heap_stack *stack, size_t index, uint64_t word,
			   struct text *text)
{
	const struct heap_stack_words *words = &stack->words[index];
	const struct frame *frame = &stack->walked.frames[index];
	const uint64_t variable = (word - words->start) / 8;

	if (word >= stack->walked.facts.cfp) {
		add_member(ruby->layout, S_cfp, word - frame->cfp, text);
		text_format(text, " of frame ");
	} else if (variable < words->named && add_local(ruby, local_id(ruby, frame, variable), text)) {
		text_format(text, " of ");
	} else {
		text_format(text, "frame ");
	}
	add_frame(ruby, frame, text);
}

static void add_stack_word(const struct heap_roots *roots, const struct heap_root *root, struct text *text)
{
	const struct heap_stack *stack = &roots->stacks[root->stack];
	const size_t index = frame_of_word(stack, root->word);

	if (index < stack->walked.nr_frames) {
		add_frame_word(roots->ruby, stack, index, root->word, text);
		text_format(text, " in ");
	} else {
		text_format(text, "VM stack of ");
	}
	add_stack(roots, root, text);
}

/* A member of the struct of a thread, of a fiber or of an execution context. */
static void add_thread_word(const struct heap_roots *roots, const struct heap_root *root, struct text *text)
{
	const struct heap_stack *stack = &roots->stacks[root->stack];
	const struct ruby_threads *threads = &roots->threads;
	enum layout_struct_id id = S_ec;
	uint64_t at = stack->walked.ec;

	if (root->kind == ROOT_THREAD) {
		id = S_thread;
		at = stack->thread < threads->count ? threads->threads[stack->thread].address : 0;
	} else if (root->kind == ROOT_FIBER) {
		id = S_fiber;
		at = heap_stack_fiber(roots, stack);
	}
	add_member(roots->ruby->layout, id, root->word - at, text);
	text_format(text, "%s", id == S_fiber && stack->fiber == 0 ? " of the fiber of " : " of ");
	add_stack(roots, root, text);
}

static void add_of_thread(const struct heap_roots *roots, const struct heap_root *root, struct text *text)
{
	switch (root->kind) {
	case ROOT_STORAGE:
		text_format(text, "fiber-local variable ");
		add_id(roots->ruby, root->name, text);
		text_format(text, " of ");
		break;
	case ROOT_NATIVE_STACK:
		text_format(text, "native stack of ");
		break;
	case ROOT_FRAME:
	case ROOT_VM_STACK:
		add_stack_word(roots, root, text);
		return;
	default:
		add_thread_word(roots, root, text);
		return;
	}
	add_stack(roots, root, text);
}

static void add_variable(const struct heap_roots *roots, const struct heap_root *root, struct text *text)
{
	const size_t length = text->length;

	text_format(text, "C variable ");
	data_files_add_name(roots->files, root->word, text);
	if (text->length == length + strlen("C variable "))
		text_format(text, "at 0x%" PRIx64 ", registered by rb_gc_register_address", root->word);
}

static void add_of_ruby(const struct heap_roots *roots, const struct heap_root *root, struct text *text)
{
	static const char *const texts[] = {
	    [ROOT_TRACE] = "TracePoint",
	    [ROOT_LOADING] = "loading of a file",
	    [ROOT_MODULE] = "modules defined in C",
	    [ROOT_METHOD] = "method cache",
	    [ROOT_SYMBOLS] = "symbol table",
	    [ROOT_BOX] = "Ruby::Box",
	};

	switch (root->kind) {
	case ROOT_GLOBAL_VARIABLE:
		text_format(text, "global variable ");
		add_id(roots->ruby, root->name, text);
		break;
	case ROOT_FINALIZER:
		text_format(text, "finalizer of 0x%" PRIx64, root->name);
		break;
	case ROOT_VM:
		text_format(text, "VM: ");
		add_member(roots->ruby->layout, S_vm, root->word - roots->ruby->vm, text);
		break;
	case ROOT_RACTOR:
	case ROOT_RACTOR_STORAGE:
		text_format(text, "ractor %" PRIu64 "%s", root->name,
			    root->kind == ROOT_RACTOR ? "" : ": local storage");
		break;
	default:
		text_format(text, "%s", texts[root->kind]);
	}
}

void heap_root_text(const struct heap_roots *roots, const struct heap_root *root, struct text *text)
{
	if (root->stack < roots->nr_stacks)
		add_of_thread(roots, root, text);
	else if (root->kind == ROOT_C_VARIABLE || root->kind == ROOT_REGISTERED)
		add_variable(roots, root, text);
	else
		add_of_ruby(roots, root, text);
}
