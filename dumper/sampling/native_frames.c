#include "sampling/native_frames.h"

#include <stdlib.h>
#include <string.h>

#include "native/kernel_symbols.h"
#include "native/machine_code.h"
#include "native/unwind.h"
#include "ruby/code.h"
#include "ruby/machine.h"
#include "ruby/value.h"

/* The most pages that are read to find the function of a method, or that of the interpreter. */
#define PAGES 8u

/* The size of the direct-mapped cache of methods. */
#define METHODS 1024u

/* The most functions of the interpreter: that which runs code, those that call it, and those that call methods in C. */
#define OF_INTERPRETER 16u
#define CALLS_C	       64u

/* How often to look for the function that interprets code. */
#define TRIES 1000u

/* How far from the innermost function the scheduler is: what is before it belongs to the program that copies. */
#define UNTIL_SCHEDULER 12u

#define SCHEDULER   "__schedule"
#define KERNEL_FILE "[kernel]"

struct functions {
	uint64_t of[CALLS_C];
	size_t count;
};

/* What runs in the innermost Ruby frame of a cached stack. */
struct innermost {
	uint64_t epoch;	     /* 0: none */
	uint64_t method;     /* the method entry of a method in C; 0: it is not one */
	uint64_t caller;     /* the same of the next frame */
	bool called_by_ruby; /* the next frame runs Ruby code */
	bool jit;	     /* JIT-compiled code runs the next frame, or has pushed this one */
	bool just_made;	     /* the interpreter has made the frame, but has not run an instruction of its code yet */
};

struct native_frames {
	const struct session *session;
	struct machine_code *code;
	struct unwinder *unwinder;
	struct kernel_symbols *kernel; /* NULL: the kernel's functions are not wanted */
	struct functions loop;	       /* of the interpreter: the function that runs code, and those that call it */
	struct functions calls_c;      /* of the interpreter: those between methods in C and `loop` */
	uint64_t collections;	       /* how many collections had begun when `methods` was filled */
	unsigned int tries;
	struct innermost innermost[CACHE_MAX];
	struct {
		uint64_t method, function;
	} methods[METHODS];
};

struct error *native_frames_create(const struct session *session, bool kernel, struct native_frames **ret)
{
	struct native_frames *frames = calloc(1, sizeof(*frames));
	struct error *error;

	if (!frames)
		return error_no_memory();
	frames->session = session;
	error = machine_code_open(session->target->pid, &frames->code);
	if (!error && kernel)
		error = kernel_symbols_read("/proc/kallsyms", &frames->kernel);
	if (!error) {
		frames->unwinder = unwinder_create(frames->code);
		error = frames->unwinder ? NULL : error_no_memory();
	}
	if (error) {
		native_frames_destroy(frames);
		return error;
	}
	/* Reads the symbols of Ruby's file. If the first sample did, its names would be read too late. */
	machine_code_function(frames->code, session->module->whole.start);
	*ret = frames;
	return NULL;
}

void native_frames_destroy(struct native_frames *frames)
{
	if (!frames)
		return;
	unwinder_destroy(frames->unwinder);
	machine_code_close(frames->code);
	kernel_symbols_destroy(frames->kernel);
	free(frames);
}

void native_frames_facts(const struct native_frames *frames, struct kernel_facts *facts)
{
	facts->native_length = NATIVE_COPY_MAX;
	facts->functions = frames->kernel != NULL;
}

void native_frames_forget(struct native_frames *frames)
{
	memset(frames->methods, 0, sizeof(frames->methods));
	machine_code_refresh(frames->code);
}

static bool has(const struct functions *functions, uint64_t start)
{
	for (size_t i = 0; i < functions->count; i++)
		if (functions->of[i] == start)
			return true;
	return false;
}

/* Adds a function that is not in the list yet. */
static void add(struct functions *functions, size_t most, uint64_t start)
{
	if (functions->count < most && !has(functions, start))
		functions->of[functions->count++] = start;
}

/* ---- what is known of Ruby */

/* Whether an address is in the file that contains Ruby. */
static bool is_in_ruby(const struct native_frames *frames, uint64_t address)
{
	const struct module_segment *whole = &frames->session->module->whole;

	return address >= whole->start && address < whole->end;
}

/* A word of the target, now: of the first instruction of some code, or of a method's definition. 0 if it cannot be read. */
typedef uint64_t read_word(struct access *access, uint64_t object);

static uint64_t read_now(const struct native_frames *frames, read_word *read, uint64_t object)
{
	struct memory *memory = memory_create(target_read_pages, frames->session->target, PAGES);
	struct access access = access_begin(memory, frames->session->ruby.layout);
	const uint64_t word = memory ? read(&access, object) : 0;

	memory_destroy(memory);
	return memory && !access.failed ? word : 0;
}

/* The function that implements a method in C; 0 if it is not known. */
static uint64_t function_of(struct native_frames *frames, uint64_t method)
{
	const size_t at = (method >> 3) % METHODS;

	if (method == 0 || !layout_has(frames->session->ruby.layout, F_mdef_iseq))
		return 0;
	if (frames->methods[at].method != method) {
		frames->methods[at].method = method;
		frames->methods[at].function = read_now(frames, machine_implementation, method);
	}
	return frames->methods[at].function;
}

/* Finds the function that interprets code, by the code of a frame. */
static void find_loop(struct native_frames *frames, const struct frame *frame, const struct frame *end)
{
	struct machine_function function;
	uint64_t instruction;

	while (frame < end && frame->kind != FRAME_RUBY)
		frame++;
	if (frame == end || frames->loop.count > 0 || frames->tries == TRIES)
		return;
	frames->tries++;
	instruction = read_now(frames, machine_first_instruction, frame->iseq);
	if (!is_in_ruby(frames, instruction))
		return;
	function = machine_code_function(frames->code, instruction);
	if (function.kind == MACHINE_CODE_OF_FILE && function.start != 0)
		add(&frames->loop, OF_INTERPRETER, function.start);
}

static uint64_t method_in_c(const struct frame *frame)
{
	return frame->kind == FRAME_CFUNC ? frame->method : 0;
}

static uint64_t start_of_code(struct access *access, uint64_t iseq)
{
	return access_member(access, code_body(access, value_object(access, iseq)), F_body_iseq_encoded);
}

/* A frame with which a call of vm_exec() begins is made before that call. */
static bool is_just_made(const struct native_frames *frames, const struct frame *frame)
{
	return frame->kind == FRAME_RUBY && frame->finish && frame->pc == read_now(frames, start_of_code, frame->iseq);
}

/* What runs in the innermost Ruby frame of a sample. False if that is not known. */
static bool find_innermost(struct native_frames *frames, const struct sample *sample, struct innermost *ret)
{
	const struct cached_stack entry = sample->cache.entry;
	const bool is_cached = entry.id < CACHE_MAX;
	const struct stack *walked = sample->walked;
	const struct frame *frame, *end;

	/* A method that was freed may have left its place to another one. */
	if (frames->collections != sample->cache.collections)
		memset(frames->methods, 0, sizeof(frames->methods));
	frames->collections = sample->cache.collections;
	if (sample->cache.result == CACHE_HIT && is_cached && frames->innermost[entry.id].epoch == entry.epoch) {
		*ret = frames->innermost[entry.id];
		return true;
	}
	if (!walked || !walked->frames || walked->nr_frames == 0)
		return false;
	frame = walked->frames;
	end = frame + walked->nr_frames;
	find_loop(frames, frame, end);
	/* A block in C is not shown: its functions are inside of the method that calls it. */
	while (frame + 1 < end && frame->kind == FRAME_HIDDEN)
		frame++;
	*ret = (struct innermost){
	    .epoch = entry.epoch,
	    .method = method_in_c(frame),
	    .caller = frame + 1 < end ? method_in_c(frame + 1) : 0,
	    .called_by_ruby = frame + 1 < end && frame[1].kind == FRAME_RUBY,
	    .jit = frame->jit || (frame + 1 < end && frame[1].jit),
	    .just_made = is_just_made(frames, frame),
	};
	if (is_cached)
		frames->innermost[entry.id] = *ret;
	return true;
}

/* ---- functions of the kernel */

static void add_frame(struct inner_functions *stack, uint64_t start, const char *name, const char *file)
{
	if (name && file)
		stack->of[stack->count++] = (struct native_frame){.start = start, .name = name, .file = file};
}

static void take_kernel(const struct native_frames *frames, const uint64_t *addresses, size_t count,
			struct inner_functions *ret)
{
	size_t first = 0;
	uint64_t start = 0;

	for (size_t i = 0; i < count && i < UNTIL_SCHEDULER; i++) {
		const char *name = kernel_symbols_find(frames->kernel, addresses[i] - (i > 0), &start);

		/* The compiler may have added something to the name, after a dot. */
		if (name && strncmp(name, SCHEDULER, sizeof(SCHEDULER) - 1) == 0 &&
		    (name[sizeof(SCHEDULER) - 1] == '\0' || name[sizeof(SCHEDULER) - 1] == '.'))
			first = i;
	}
	for (size_t i = first; i < count && i < KERNEL_FUNCTIONS_MAX; i++) {
		const char *name = kernel_symbols_find(frames->kernel, addresses[i] - (i > 0), &start);

		add_frame(ret, start, name, KERNEL_FILE);
	}
}

/* ---- functions of the program */

/* The function that the interpreter's loop was called by belongs to the interpreter, too. */
static void note_caller(struct native_frames *frames, struct unwind_registers registers,
			const struct unwind_memory *memory)
{
	struct machine_function function;

	if (frames->loop.count == OF_INTERPRETER || !unwind_step(frames->unwinder, &registers, memory))
		return;
	function = machine_code_function(frames->code, registers.ip - 1);
	if (function.kind == MACHINE_CODE_OF_FILE && function.start != 0 && is_in_ruby(frames, function.start))
		add(&frames->loop, OF_INTERPRETER, function.start);
}

/* Where the functions of a sample end. */
enum reached { NOTHING, GENERATED_CODE, INTERPRETER };

/* Adds the functions up to the interpreter, or up to code that a JIT compiler has made. */
static enum reached take_functions(struct native_frames *frames, struct unwind_registers registers,
				   const struct unwind_memory *memory, struct inner_functions *ret)
{
	for (size_t i = 0; i < NATIVE_FRAMES_MAX; i++) {
		const struct machine_function function =
		    machine_code_function(frames->code, registers.ip - (registers.is_caller ? 1 : 0));

		if (function.kind == MACHINE_CODE_GENERATED)
			return GENERATED_CODE;
		if (function.kind == MACHINE_CODE_NONE)
			return NOTHING;
		if (has(&frames->loop, function.start)) {
			if (function.start == frames->loop.of[0])
				note_caller(frames, registers, memory);
			return INTERPRETER;
		}
		add_frame(ret, function.start, function.name, function.file);
		if (!unwind_step(frames->unwinder, &registers, memory))
			return NOTHING;
	}
	return NOTHING;
}

/* How many of the functions there are up to the innermost one that begins at an address; `first` if there is none. */
static size_t end_of(const struct inner_functions *stack, size_t first, uint64_t function)
{
	for (size_t i = first; function != 0 && i < stack->count; i++)
		if (stack->of[i].start == function)
			return i + 1;
	return first;
}

/* The first function from `first` on that is known to call methods in C; the number of all if there is none. */
static size_t find_call(const struct native_frames *frames, const struct inner_functions *stack, size_t first)
{
	while (first < stack->count && !has(&frames->calls_c, stack->of[first].start) &&
	       !(is_in_ruby(frames, stack->of[first].start) && machine_calls_c(stack->of[first].name)))
		first++;
	return first;
}

/* Keeps only the innermost function, and the mark that others are missing. */
static void keep_innermost(struct inner_functions *stack, size_t first)
{
	if (stack->count > first)
		stack->count = first + 1;
	stack->cut = true;
}

/* Between the outermost occurrence of a method's function and the interpreter are the functions that call methods. */
static void learn_calls(struct native_frames *frames, const struct inner_functions *stack, uint64_t function)
{
	for (size_t i = stack->count; i-- > 0 && stack->of[i].start != function;)
		if (is_in_ruby(frames, stack->of[i].start))
			add(&frames->calls_c, CALLS_C, stack->of[i].start);
}

/*
 * The functions of a method in C end at the function that implements it. Its innermost occurrence counts: the method
 * may be called by itself through other methods. If it is not there, or only beyond a function that calls methods, then
 * the method has left its frame to another function, or is just being called, or has just returned.
 */
static void end_at_method(struct native_frames *frames, const struct innermost *innermost, size_t first,
			  enum reached reached, struct inner_functions *ret)
{
	const size_t end = end_of(ret, first, function_of(frames, innermost->method));
	const size_t call = find_call(frames, ret, first);

	if (end > first && call >= end) {
		if (reached == INTERPRETER && innermost->called_by_ruby)
			learn_calls(frames, ret, ret->of[end - 1].start);
		ret->count = end;
		return;
	}
	if (call < ret->count) {
		ret->count = call;
		ret->cut = end > first;
	} else if (innermost->called_by_ruby && reached == NOTHING) {
		ret->cut = true; /* all of these are inside of the method */
	} else if (!(innermost->called_by_ruby && innermost->jit && reached == GENERATED_CODE)) {
		keep_innermost(ret, first);
	}
}

/* The functions inside of a frame of Ruby code. If the frame was only just made, those of its callers would be shown. */
static void end_at_code(struct native_frames *frames, const struct innermost *innermost, size_t first,
			enum reached reached, struct inner_functions *ret)
{
	const bool known = frames->loop.count > 0;

	ret->cut = known && reached == NOTHING;
	if (!known || (innermost->just_made && reached != GENERATED_CODE) ||
	    end_of(ret, first, function_of(frames, innermost->caller)) > first) {
		ret->count = first;
		ret->cut = false;
	}
}

/* Adds the functions of the program to those of the kernel. */
static void take(struct native_frames *frames, const struct innermost *innermost,
		 const struct unwind_registers *registers, const struct unwind_memory *memory,
		 struct inner_functions *ret)
{
	const size_t first = ret->count;
	const enum reached reached = take_functions(frames, *registers, memory, ret);

	if (innermost->method != 0)
		end_at_method(frames, innermost, first, reached, ret);
	else
		end_at_code(frames, innermost, first, reached, ret);
}

void native_frames_take(struct native_frames *frames, const struct sample *sample, struct inner_functions *ret)
{
	const struct native_copy *copy = &sample->native;
	const struct unwind_memory memory = {
	    .start = copy->registers.of[UNWIND_RSP],
	    .length = copy->length,
	    .bytes = copy->bytes,
	};
	struct innermost innermost;
	bool known;

	ret->count = 0;
	ret->cut = false;
	if (!sample->checked || sample->lacks_innermost)
		return;
	/* Noted for this entry of the cache also if this sample gets no native frames. */
	known = find_innermost(frames, sample, &innermost);
	if (sample->stop.window || copy->registers.known == 0)
		return;
	ret->cut = !known;
	if (!known)
		return;
	if (frames->kernel)
		take_kernel(frames, copy->functions, copy->nr_functions, ret);
	take(frames, &innermost, &copy->registers, &memory, ret);
}
