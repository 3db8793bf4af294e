#include "program.h"

#include <stdbool.h>
#include <string.h>

#include "classes.h"
#include "lock_seed.h"
#include "objects.h"

/* Sizes of the regions. The stack has room for the longest moment only. */
enum { CONTEXT_SIZE = 2048, STACK_SIZE = 2048, HEAP_SIZE = 28416 };

/* vm_core.h: VM_ENV_DATA_INDEX_ are words from ep; this many words before it. */
#define EP_WORDS 2

/* Words of code, and the position that each frame's pc is at: behind a send and its operands. */
enum { CODE_WORDS = 24, LONG_CODE_WORDS = 80, PC_POSITION = 12 };

/* iseq.c, succ_index_table: the first 54 positions have ranks of 7 bits, 9 a word. */
static void put_rank(struct writer *w, uint64_t table, uint64_t position, uint64_t rank)
{
	uint64_t at = table + w->layout->members[F_succ_imm_part].offset + position / 9 * 8, word;

	memcpy(&word, bytes_at(w, at, 8), 8);
	put_word(w, at, word | rank << (position % 9 * 7));
}

/*
 * Lines: the first is `line`, the next one begins at position 6; in long code, a third one at position 60, which is in
 * a block behind the immediate part.
 */
static void put_lines(struct writer *w, uint64_t body, uint64_t line, uint64_t words)
{
	enum { SECOND = 6, THIRD = 60, IMMEDIATE = 54 };
	uint64_t table = allocate(w, size_of(w, S_succ) + size_of(w, S_succ_block));
	uint64_t block = table + w->layout->members[F_succ_succ_part].offset;
	uint64_t count = words > IMMEDIATE ? 3 : 2, insns = allocate(w, count * size_of(w, S_insn));

	for (uint64_t i = 0; i < count; i++)
		set_member(w, insns + i * size_of(w, S_insn), F_insn_line_no, line + i);
	for (uint64_t i = 0; i < IMMEDIATE; i++)
		put_rank(w, table, i, i < SECOND ? 1 : 2);
	set_member(w, block, F_succ_block_rank, 2);
	put_word(w, block + w->layout->members[F_succ_block_bits].offset, UINT64_C(1) << (THIRD - IMMEDIATE));
	set_member(w, body, F_body_insns, insns);
	set_member(w, body, F_body_insns_size, count);
	set_member(w, body, F_body_succ_index_table, table);
}

/* One piece of code. */
struct piece {
	uint64_t iseq, body, encoded;
};

static struct piece new_code(struct writer *w, enum layout_enumerator_id type, const char *label, uint64_t path,
			     uint64_t line, uint64_t words)
{
	struct piece piece = {.iseq = imemo(w, S_iseq, E_imemo_iseq), .body = allocate(w, size_of(w, S_body))};

	piece.encoded = allocate(w, words * 8);
	set_member(w, piece.iseq, F_iseq_body, piece.body);
	set_member(w, piece.body, F_body_type, enumerator(w, type));
	set_member(w, piece.body, F_body_iseq_size, words);
	set_member(w, piece.body, F_body_iseq_encoded, piece.encoded);
	set_member(w, piece.body, F_body_label, new_string(w, label));
	set_member(w, piece.body, F_body_pathobj, path);
	set_member(w, piece.body, F_body_local_iseq, piece.iseq);
	/* A Fixnum up to 3.1. */
	set_member(w, piece.body, F_body_first_lineno,
		   w->layout->members[F_body_first_lineno].size == 8 ? line << 1 | 1 : line);
	put_lines(w, piece.body, line, words);
	return piece;
}

static void enclose(struct writer *w, const struct piece *inner, const struct piece *outer, const struct piece *local)
{
	set_member(w, inner->body, F_body_parent_iseq, outer->iseq);
	set_member(w, inner->body, F_body_local_iseq, local->iseq);
}

struct routine {
	uint64_t id, entry;
};

static struct routine new_method(struct writer *w, enum layout_enumerator_id type, uint64_t owner, const char *name,
				 const struct piece *code)
{
	struct routine routine = {.id = new_id(w, name), .entry = imemo(w, S_ment, E_imemo_ment)};
	uint64_t definition = allocate(w, size_of(w, S_mdef));

	set_member(w, routine.entry, F_ment_def, definition);
	set_member(w, routine.entry, F_ment_owner, owner);
	set_member_if_there(w, routine.entry, F_ment_called_id, routine.id);
	set_member(w, definition, F_mdef_type, enumerator(w, type));
	set_member(w, definition, F_mdef_original_id, routine.id);
	set_member_if_there(w, definition, F_mdef_reference_count, 1);
	if (code)
		set_member_if_there(w, definition, F_mdef_iseq, code->iseq);
	return routine;
}

/* The send before where the code's pc is, without a block or with one: what it calls, and what it found last. */
static void put_send(struct writer *w, const struct piece *code, const struct routine *called, bool packed,
		     const uint64_t *block)
{
	uint64_t pc = code->encoded + PC_POSITION * 8, data, info, cache;

	/* Until 2.6 it has no struct for that. */
	if (!layout_has(w->layout, F_call_data_ci))
		return;
	data = allocate(w, size_of(w, S_call_data));
	if (layout_has(w->layout, F_call_data_ci_mid)) {
		set_member(w, data, F_call_data_ci_mid, called->id);
		set_member(w, data, F_call_data_cc_me, called->entry);
	} else {
		/* vm_callinfo.h: CI_EMBED_ID_SHFT, and the tag. */
		info = called->id << 32 | 1;
		if (!packed) {
			info = imemo(w, S_call_info, E_imemo_callinfo);
			set_member(w, info, F_call_info_mid, called->id);
		}
		cache = imemo(w, S_call_cache, E_imemo_callcache);
		set_member(w, cache, F_call_cache_cme, called->entry);
		set_member(w, data, F_call_data_ci, info);
		set_member(w, data, F_call_data_cc, cache);
	}
	put_word(w, pc - (block ? 16 : 8), data);
	if (block)
		put_word(w, pc - 8, *block);
	set_member_if_there(w, code->body, F_body_call_data, data);
	set_member_if_there(w, code->body, F_body_ci_size, 1);
}

/*
 * What the program has:
 *   main calls Shop#open, which calls Array#each with a block, which calls Shop#close; that has a rescue, and calls
 *   Shop.build, which calls Kernel#loop, which is of Ruby's own code; others are called by nobody in particular.
 */
struct things {
	struct piece main, open, block, inner_block, close, rescue, build, loop, body, eval, fresh, hello;
	struct routine open_method, each, close_method, build_method, loop_method, fresh_method, hello_method;
	uint64_t moved, ifunc, cref, svar;
	uint64_t open_env, open_ep, block_ep; /* environments on the heap: of Shop#open, and of its block */
};

static uint64_t local(const struct writer *w, enum layout_enumerator_id magic)
{
	return enumerator(w, magic) | enumerator(w, E_VM_ENV_FLAG_LOCAL);
}

static uint64_t put_env(struct writer *w, uint64_t at, uint64_t me_cref, uint64_t specval, uint64_t flags)
{
	put_word(w, at, me_cref);
	put_word(w, at + 8, specval);
	put_word(w, at + 16, flags);
	return note_address(w, at + EP_WORDS * 8);
}

/* An environment on the heap; *env is the rb_env_t. */
static uint64_t heap_env(struct writer *w, uint64_t me_cref, uint64_t specval, uint64_t flags, uint64_t *env)
{
	uint64_t at = allocate(w, 4 * 8);

	*env = imemo(w, S_env, E_imemo_env);
	set_member_if_there(w, *env, F_env_ep, at + EP_WORDS * 8);
	put_word(w, at + 3 * 8, *env);
	return put_env(w, at, me_cref, specval, flags | enumerator(w, E_VM_ENV_FLAG_ESCAPED));
}

static struct things put_things(struct writer *w)
{
	struct things t;
	struct class_names names = {0};
	uint64_t nil = enumerator(w, E_RUBY_Qnil), path, shop, array, kernel, module, nobody, env;

	if (has_class_tables(w) || has_shapes(w))
		names = (struct class_names){
		    .path = new_id(w, "__classpath__"),
		    .attached = new_id(w, "__attached__"),
		    .refined = new_id(w, "__refined_class__"),
		    .defined_at = new_id(w, "__defined_at__"),
		};
	if (has_shapes(w))
		put_shapes(w, &names);
	path = new_string(w, "/srv/shop/lib/sh\xc3\xb6p.rb");
	shop = class_of(w, &names, enumerator(w, E_RUBY_T_CLASS), "Shop");
	array = class_of(w, &names, enumerator(w, E_RUBY_T_CLASS), "Array");
	kernel = class_of(w, &names, enumerator(w, E_RUBY_T_MODULE), "Kernel");
	module = class_of(w, &names, enumerator(w, E_RUBY_T_MODULE), "Shop::Freshness::Refinements");
	nobody = class_of(w, &names, enumerator(w, E_RUBY_T_CLASS), NULL);
	set_superclass(w, nobody, shop);

	t.main = new_code(w, E_ISEQ_TYPE_MAIN, "<main>", embedded_pair(w, path, path), 90, CODE_WORDS);
	t.open = new_code(w, E_ISEQ_TYPE_METHOD, "open", path, 10, CODE_WORDS);
	t.block = new_code(w, E_ISEQ_TYPE_BLOCK, "block in open", path, 12, CODE_WORDS);
	t.inner_block = new_code(w, E_ISEQ_TYPE_BLOCK, "block (2 levels) in open", path, 14, CODE_WORDS);
	t.close = new_code(w, E_ISEQ_TYPE_METHOD, "close", path, 20, LONG_CODE_WORDS);
	t.rescue = new_code(w, E_ISEQ_TYPE_RESCUE, "rescue in close", path, 24, CODE_WORDS);
	t.build = new_code(w, E_ISEQ_TYPE_METHOD, "build", path, 30, CODE_WORDS);
	t.loop = new_code(w, E_ISEQ_TYPE_METHOD, "loop", new_string(w, "<internal:kernel>"), 150, CODE_WORDS);
	t.body = new_code(w, E_ISEQ_TYPE_CLASS, "<class:Shop>", path, 1, CODE_WORDS);
	t.eval = new_code(w, E_ISEQ_TYPE_EVAL, "<main>", embedded_pair(w, new_string(w, "(eval)"), nil), 1, CODE_WORDS);
	t.fresh = new_code(w, E_ISEQ_TYPE_METHOD, "fresh", path, 40, CODE_WORDS);
	t.hello = new_code(w, E_ISEQ_TYPE_METHOD, "hello", path, 50, CODE_WORDS);
	enclose(w, &t.block, &t.open, &t.open);
	enclose(w, &t.inner_block, &t.block, &t.open);
	enclose(w, &t.rescue, &t.close, &t.close);
	enclose(w, &t.eval, &t.main, &t.main);
	if (layout_has(w->layout, F_body_builtin_attrs) && w->layout->enumerators[E_BUILTIN_ATTR_C_TRACE].present)
		set_member(w, t.loop.body, F_body_builtin_attrs, enumerator(w, E_BUILTIN_ATTR_C_TRACE));

	t.open_method = new_method(w, E_VM_METHOD_TYPE_ISEQ, shop, "open", &t.open);
	t.each = new_method(w, E_VM_METHOD_TYPE_CFUNC, array, "each", NULL);
	t.close_method = new_method(w, E_VM_METHOD_TYPE_ISEQ, shop, "close", &t.close);
	t.build_method = new_method(w, E_VM_METHOD_TYPE_ISEQ, singleton_of(w, &names, shop, nobody), "build", &t.build);
	t.loop_method = new_method(w, E_VM_METHOD_TYPE_ISEQ, kernel, "loop", &t.loop);
	t.fresh_method =
	    new_method(w, E_VM_METHOD_TYPE_ISEQ, refinement_of(w, &names, shop, module), "fresh", &t.fresh);
	t.hello_method = new_method(w, E_VM_METHOD_TYPE_ISEQ, singleton_of(w, &names, path, nobody), "hello", &t.hello);
	put_send(w, &t.main, &t.open_method, true, NULL);
	put_send(w, &t.open, &t.each, true, &t.block.iseq);
	put_send(w, &t.block, &t.close_method, false, NULL);
	put_send(w, &t.close, &t.build_method, false, NULL);
	put_send(w, &t.build, &t.loop_method, true, NULL);

	t.moved = t.main.iseq;
	if (layout_has(w->layout, F_moved_destination) && w->layout->enumerators[E_RUBY_T_MOVED].present) {
		t.moved = new_object(w, S_moved, enumerator(w, E_RUBY_T_MOVED));
		set_member(w, t.moved, F_moved_destination, t.main.iseq);
	}
	t.ifunc = imemo(w, S_string, E_imemo_ifunc);
	t.cref = imemo(w, S_string, E_imemo_cref);
	t.svar = imemo(w, S_svar, E_imemo_svar);
	set_member(w, t.svar, F_svar_cref_or_me, t.open_method.entry);
	t.open_ep = heap_env(w, t.open_method.entry, 0, local(w, E_VM_FRAME_MAGIC_METHOD), &t.open_env);
	t.block_ep = heap_env(w, t.cref, t.open_ep, enumerator(w, E_VM_FRAME_MAGIC_BLOCK), &env);
	return t;
}

static uint64_t stack_env(struct writer *w, uint64_t me_cref, uint64_t specval, uint64_t flags)
{
	/* One local variable in front. */
	w->stack.next += 4 * 8;
	return put_env(w, w->stack.next - 3 * 8, me_cref, specval, flags);
}

static void set_cfp(struct writer *w, uint64_t cfp)
{
	w->cfp = note_address(w, cfp);
	set_member(w, w->ec, F_ec_cfp, cfp);
}

static void push(struct writer *w, uint64_t pc, uint64_t iseq, uint64_t ep, const char *name)
{
	set_cfp(w, w->cfp - size_of(w, S_cfp));
	if (w->cfp < w->stack.next)
		end_by_abort("the stack is full");
	set_member(w, w->cfp, F_cfp_pc, pc);
	set_member(w, w->cfp, F_cfp_iseq, iseq);
	set_member(w, w->cfp, F_cfp_ep, ep);
	if (name)
		w->program->names[w->program->nr_names++] = name;
}

static void push_code(struct writer *w, const struct piece *code, uint64_t ep, const char *name)
{
	push(w, code->encoded + PC_POSITION * 8, code->iseq, ep, name);
}

static void push_method(struct writer *w, const struct piece *code, const struct routine *method, const char *name)
{
	push_code(w, code, stack_env(w, method->entry, 0, local(w, E_VM_FRAME_MAGIC_METHOD)), name);
}

/* What is called, one letter a frame, oldest first. Each moment has to begin with the program itself. */
static const char *const moments[PROGRAM_MOMENTS] = {
    "m",	       /* the program */
    "mo",	       /* Shop#open */
    "moe",	       /* Array#each */
    "moeb",	       /* a block of Shop#open */
    "moebc",	       /* Shop#close */
    "moebcr",	       /* its rescue */
    "moecs",  "mocsl", /* Shop.build, Kernel#loop, without a block in between */
    "Mvhi2",	       /* moved code; a method with an svar; a block whose environments are on the heap; a C block */
    "mxykE",	       /* class body, eval; methods of a refinement and of an object's own class */
    "mopb",	       /* an environment that is being moved to the heap */
    "",
};

static void put_moment(struct writer *w, const struct things *t, const char *moment)
{
	uint64_t open_ep = 0, close_ep = 0, ep;
	const uint64_t block = enumerator(w, E_VM_FRAME_MAGIC_BLOCK);

	for (const char *step = moment; *step; step++) {
		switch (*step) {
		case 'm':
			ep = stack_env(w, t->cref, 0, local(w, E_VM_FRAME_MAGIC_EVAL));
			push_code(w, &t->main, ep, "<main>");
			break;
		case 'M':
			ep = stack_env(w, 0, 0, local(w, E_VM_FRAME_MAGIC_TOP));
			push(w, t->main.encoded + 8, t->moved, ep, "<main>");
			break;
		case 'o':
			push_method(w, &t->open, &t->open_method, "Shop#open");
			open_ep = w->stack.next - 8;
			break;
		case 'v':
			open_ep = stack_env(w, t->svar, 0, local(w, E_VM_FRAME_MAGIC_METHOD));
			push_code(w, &t->open, open_ep, "Shop#open");
			break;
		case 'e':
			/* What its pc is means nothing. */
			ep = stack_env(w, t->each.entry, 0, local(w, E_VM_FRAME_MAGIC_CFUNC));
			push(w, t->open.encoded, 0, ep, "Array#each");
			break;
		case 'b':
			/* The low bits of an enclosing ep are a tag. */
			push_code(w, &t->block, stack_env(w, 0, open_ep | 1, block), "block in Shop#open");
			break;
		case 'h':
			open_ep = t->open_ep;
			push_code(w, &t->block, t->block_ep, "block in Shop#open");
			break;
		case '2':
			push_code(w, &t->inner_block, stack_env(w, 0, open_ep, block), "block (2 levels) in Shop#open");
			break;
		case 'i':
			ep = stack_env(w, 0, open_ep, enumerator(w, E_VM_FRAME_MAGIC_IFUNC));
			push(w, 0, t->ifunc, ep, NULL);
			break;
		case 'p':
			/* vm.c, vm_make_env_each: the slots are on the heap, the frame's ep is not there yet. */
			open_ep = stack_env(w, 0, 0, t->open_env);
			push_code(w, &t->open, open_ep, "Shop#open");
			break;
		case 'c':
			push_method(w, &t->close, &t->close_method, "Shop#close");
			close_ep = w->stack.next - 8;
			break;
		case 'r':
			ep = stack_env(w, 0, close_ep, enumerator(w, E_VM_FRAME_MAGIC_RESCUE));
			push_code(w, &t->rescue, ep, "Shop#close");
			break;
		case 's':
			push_method(w, &t->build, &t->build_method, "Shop.build");
			break;
		case 'l':
			push_method(w, &t->loop, &t->loop_method, "Kernel#loop");
			break;
		case 'x':
			ep = stack_env(w, t->cref, 0, local(w, E_VM_FRAME_MAGIC_CLASS));
			push_code(w, &t->body, ep, "<class:Shop>");
			break;
		case 'y':
			push_method(w, &t->fresh, &t->fresh_method,
				    "#<refinement Shop of Shop::Freshness::Refinements>#fresh");
			break;
		case 'k':
			push_method(w, &t->hello, &t->hello_method,
				    "#<instance of #<anonymous subclass of Shop>>#hello");
			break;
		case 'E':
			ep = stack_env(w, t->cref, 0, local(w, E_VM_FRAME_MAGIC_EVAL));
			push_code(w, &t->eval, ep, "<main>");
			break;
		default:
			end_by_abort("no such step");
		}
	}
}

static void put_context(struct writer *w)
{
	w->ec = IMAGE_THREAD + (size_of(w, S_thread) + 7) / 8 * 8;
	set_member(w, note_address(w, IMAGE_THREAD), F_thread_ec, note_address(w, w->ec));
	set_member(w, w->ec, F_ec_thread_ptr, IMAGE_THREAD);
	set_member(w, w->ec, F_ec_vm_stack, note_address(w, IMAGE_STACK));
	set_member(w, w->ec, F_ec_vm_stack_size, STACK_SIZE / 8);
	/* The dummy, the oldest frame: it has nothing. */
	set_cfp(w, note_address(w, IMAGE_STACK + STACK_SIZE) - size_of(w, S_cfp));
	put_symbols(w);
}

void program_build(const struct layout *layout, size_t index, size_t moment, struct program *ret)
{
	static uint8_t context[CONTEXT_SIZE], stack[STACK_SIZE], heap[HEAP_SIZE];
	struct writer w = {
	    .layout = layout,
	    .program = ret,
	    .context = {IMAGE_CONTEXT, IMAGE_CONTEXT, context, CONTEXT_SIZE},
	    .stack = {IMAGE_STACK, IMAGE_STACK, stack, STACK_SIZE},
	    .heap = {IMAGE_HEAP, IMAGE_HEAP, heap, HEAP_SIZE},
	};
	struct things things;
	size_t context_size, heap_size;

	memset(context, 0, sizeof(context));
	memset(stack, 0, sizeof(stack));
	memset(heap, 0, sizeof(heap));
	memset(ret, 0, sizeof(*ret));
	reserve_locks(&w);
	put_context(&w);
	put_locks(&w);
	things = put_things(&w);
	put_moment(&w, &things, moments[moment]);

	context_size = (size_t)(w.ec + size_of(&w, S_ec) + 7 - IMAGE_CONTEXT) / 8 * 8;
	heap_size = (size_t)(w.heap.next - w.heap.base);
	ret->length = IMAGE_HEADER + context_size + STACK_SIZE + heap_size;
	if (context_size > CONTEXT_SIZE || ret->length > IMAGE_MAX)
		end_by_abort("an image is too long");
	ret->image[0] = (uint8_t)index;
	ret->image[2] = (uint8_t)context_size;
	ret->image[3] = (uint8_t)(context_size >> 8);
	ret->image[4] = (uint8_t)STACK_SIZE;
	ret->image[5] = (uint8_t)(STACK_SIZE >> 8);
	memcpy(ret->image + IMAGE_HEADER, context, context_size);
	memcpy(ret->image + IMAGE_HEADER + context_size, stack, STACK_SIZE);
	memcpy(ret->image + IMAGE_HEADER + context_size + STACK_SIZE, heap, heap_size);
}
