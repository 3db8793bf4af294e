#include "sampling/stack_objects.h"

#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "ruby/environment.h"
#include "ruby/frame.h"
#include "ruby/value.h"
#include "sampling/old_objects.h"
#include "sampling/stack_copy_parts.h"

/* Bytes of an environment on the heap: from ME_CREF to ENV. */
#define ENV_LENGTH ((ENVIRONMENT_WORDS + 1) * 8)

/* How many levels of references are followed, and the most pieces of a system call (IOV_MAX). */
#define ROUNDS	   6
#define MAX_PIECES 1024u

/* How many blocks within blocks are followed to their method. */
#define NESTED_MAX 32

static int wants_by_address(const void *a, const void *b)
{
	const struct want *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

/* Notes that an object is wanted, unless that was noted before. */
static void want(struct stack_copy *copy, uint64_t address, enum object_kind kind)
{
	const uint32_t lengths[] = {
	    [OBJECT_VALUE] = copy->object_length,	   [OBJECT_ENV] = ENV_LENGTH,
	    [OBJECT_DEFINITION] = copy->definition_length, [OBJECT_NATIVE_SLOT] = 8,
	    [OBJECT_ZJIT_FRAME] = copy->zjit_frame_length,
	};
	uint32_t length = lengths[kind];
	size_t i = (size_t)((address * 0x9e3779b97f4a7c15ULL) >> 32) % SEEN_SLOTS;

	/* An object on the stack is in the stack's own pieces. */
	if (address < MEMORY_PAGE || address % 8 != 0 || address > UINT64_MAX - length ||
	    (address >= copy->facts.vm_stack && address < copy->extent.end))
		return;
	while (copy->seen[i].generation == copy->generation && copy->seen[i].address != address)
		i = (i + 1) % SEEN_SLOTS;
	if (copy->seen[i].generation == copy->generation)
		return;
	if (copy->nr_seen >= OBJECTS_MAX) {
		copy->has_all_objects = false;
		return;
	}
	copy->seen[i] = (struct seen){address, copy->generation};
	copy->nr_seen++;
	copy->wants[copy->nr_wants++] = (struct want){address, length, kind};
}

/* Wants what an environment's words from ME_CREF to FLAGS refer to: the method entry, and the enclosing environment. */
static void want_of_env(struct stack_copy *copy, const uint8_t *words)
{
	for (int nested = 0; words && nested < NESTED_MAX; nested++) {
		uint64_t previous = environment_previous(stack_copy_word(words + 8));
		uint64_t flags = stack_copy_word(words + ENVIRONMENT_BEFORE);

		want(copy, stack_copy_word(words), OBJECT_VALUE);
		if (!environment_has_flags(flags)) {
			want(copy, flags, OBJECT_VALUE);
			return;
		}
		if (flags & (uint64_t)copy->layout->enumerators[E_VM_ENV_FLAG_LOCAL].value)
			return;
		if ((previous < copy->facts.vm_stack || previous >= copy->facts.cfp) && previous > ENVIRONMENT_BEFORE)
			want(copy, previous - ENVIRONMENT_BEFORE, OBJECT_ENV);
		words = stack_copy_env(copy, previous);
	}
}

/* Wants the objects to which the innermost `count` frames lead, unless the frame is known. */
static void want_of_frames(struct stack_copy *copy, size_t count, const struct known_stack *known)
{
	const struct memory_piece *frames = &copy->of_stack[PIECE_FRAMES];

	for (uint64_t cfp = copy->facts.cfp; count-- > 0 && cfp + copy->facts.frame_size <= copy->extent.end;
	     cfp += copy->facts.frame_size) {
		const uint8_t *frame = frames->data + (cfp - frames->address);
		uint64_t ep = stack_copy_member(copy, frame, F_cfp_ep);

		if (known && known_stack_frame(known, cfp, copy->facts.frame_size)) {
			copy->has_known_frames = true;
			continue;
		}
		want(copy, stack_copy_member(copy, frame, F_cfp_iseq), OBJECT_VALUE);
		/* ruby/jit_frame.h */
		if (copy->zjit_frame_length > 0 && stack_copy_member(copy, frame, F_cfp_jit_return) > MEMORY_PAGE)
			want(copy, stack_copy_member(copy, frame, F_cfp_jit_return) - 8, OBJECT_NATIVE_SLOT);
		if (stack_copy_env(copy, ep))
			want_of_env(copy, stack_copy_env(copy, ep));
		else if (ep > ENVIRONMENT_BEFORE)
			want(copy, ep - ENVIRONMENT_BEFORE, OBJECT_ENV);
	}
}

/* Wants the objects to which an object that was just copied leads. */
static void want_of_object(struct stack_copy *copy, enum object_kind kind, const struct memory_piece *object)
{
	const struct layout *layout = copy->layout;
	uint64_t flags, type;

	if (kind == OBJECT_DEFINITION)
		return;
	if (kind == OBJECT_NATIVE_SLOT) {
		want(copy, stack_copy_word(object->data), OBJECT_ZJIT_FRAME);
		return;
	}
	if (kind == OBJECT_ZJIT_FRAME) {
		want(copy, stack_copy_member(copy, object->data, F_zjit_frame_iseq), OBJECT_VALUE);
		return;
	}
	if (kind == OBJECT_ENV) {
		want_of_env(copy, object->data);
		want(copy, stack_copy_word(object->data + ENVIRONMENT_BEFORE + 8), OBJECT_VALUE);
		return;
	}
	flags = stack_copy_member(copy, object->data, F_basic_flags);
	type = flags & (uint64_t)layout->enumerators[E_RUBY_T_MASK].value;
	if (layout->enumerators[E_RUBY_T_MOVED].present && layout_has(layout, F_moved_destination) &&
	    type == (uint64_t)layout->enumerators[E_RUBY_T_MOVED].value) {
		want(copy, stack_copy_member(copy, object->data, F_moved_destination), OBJECT_VALUE);
		return;
	}
	if (!layout->enumerators[E_RUBY_T_IMEMO].present || type != (uint64_t)layout->enumerators[E_RUBY_T_IMEMO].value)
		return;
	type = value_imemo_type(layout, flags);
	if (type == (uint64_t)layout->enumerators[E_imemo_ment].value)
		want(copy, stack_copy_member(copy, object->data, F_ment_def), OBJECT_DEFINITION);
	else if (type == (uint64_t)layout->enumerators[E_imemo_svar].value)
		want(copy, stack_copy_member(copy, object->data, F_svar_cref_or_me), OBJECT_VALUE);
	else if (type == (uint64_t)layout->enumerators[E_imemo_env].value && layout_has(layout, F_env_ep))
		want(copy, stack_copy_member(copy, object->data, F_env_ep) - ENVIRONMENT_BEFORE, OBJECT_ENV);
}

/* A run of wanted objects in one page: they are copied together, because each page costs more than its bytes. */
static size_t run_length(const struct want *wants, size_t count, size_t *length)
{
	uint64_t start = wants[0].address, end = start + wants[0].length;
	size_t n = 1;

	while (n < count && wants[n].address / MEMORY_PAGE == start / MEMORY_PAGE) {
		if (wants[n].address + wants[n].length > end)
			end = wants[n].address + wants[n].length;
		n++;
	}
	*length = (size_t)(end - start);
	return n;
}

static void enter(struct stack_copy *copy, const struct want *want, const uint8_t *data)
{
	copy->kinds[copy->nr_pieces] = want->kind;
	copy->pieces[copy->nr_pieces++] =
	    (struct memory_piece){.address = want->address, .length = want->length, .data = data};
}

/* Enters the objects of a run, whose bytes have just been copied, as pieces. */
static void enter_run(struct stack_copy *copy, const struct want *wants, size_t count, size_t length)
{
	const uint8_t *data = copy->objects + copy->objects_used;

	for (size_t i = 0; i < count; i++) {
		enter(copy, &wants[i], data + (wants[i].address - wants[0].address));
		if (wants[i].kind == OBJECT_VALUE)
			copy->fetched[copy->nr_fetched++] = wants[i].address;
	}
	copy->objects_used += length;
}

/* Enters the wanted objects whose bytes are known; the others are still wanted. */
static void enter_known(struct stack_copy *copy, const struct old_objects *old)
{
	size_t left = 0;

	for (size_t i = 0; i < copy->nr_wants; i++) {
		const struct want *want = &copy->wants[i];
		const uint8_t *bytes = old_objects_find(old, want->address, want->length);

		if (!bytes || copy->objects_used + want->length > OBJECT_BYTES) {
			copy->wants[left++] = *want;
			continue;
		}
		memcpy(copy->objects + copy->objects_used, bytes, want->length);
		enter(copy, want, copy->objects + copy->objects_used);
		copy->objects_used += want->length;
	}
	copy->nr_wants = left;
}

/* Copies the wanted objects, and enters each as a piece. An object that cannot be read is left out. */
static void copy_wants(struct stack_copy *copy)
{
	struct iovec remote[MAX_PIECES];
	size_t first[MAX_PIECES + 1], done = 0;

	qsort(copy->wants, copy->nr_wants, sizeof(*copy->wants), wants_by_address);
	while (done < copy->nr_wants) {
		struct iovec local = {.iov_base = copy->objects + copy->objects_used};
		size_t runs = 0, end = done;
		ssize_t got;

		while (end < copy->nr_wants && runs < MAX_PIECES) {
			size_t length, n = run_length(&copy->wants[end], copy->nr_wants - end, &length);

			if (copy->objects_used + local.iov_len + length > OBJECT_BYTES)
				break;
			remote[runs].iov_base = (void *)(uintptr_t)copy->wants[end].address;
			remote[runs].iov_len = length;
			first[runs++] = end;
			local.iov_len += length;
			end += n;
		}
		if (runs == 0) {
			copy->has_all_objects = false;
			return;
		}
		first[runs] = end;
		got = process_vm_readv(copy->pid, &local, 1, remote, runs, 0);
		for (size_t run = 0; run < runs; run++) {
			bool stopped_here = got < (ssize_t)remote[run].iov_len;

			done = first[run + 1];
			/* The copy may have ended early at a page that Ruby protects while it compacts its heap. */
			if (!stopped_here ||
			    pread(copy->memory_fd, copy->objects + copy->objects_used, remote[run].iov_len,
				  (off_t)(uintptr_t)remote[run].iov_base) == (ssize_t)remote[run].iov_len)
				enter_run(copy, &copy->wants[first[run]], first[run + 1] - first[run],
					  remote[run].iov_len);
			if (stopped_here)
				break;
			got -= (ssize_t)remote[run].iov_len;
		}
	}
}

void stack_objects_copy(struct stack_copy *copy, size_t frames, const struct old_objects *old)
{
	size_t looked_at = copy->nr_of_stack;

	stack_copy_drop_objects(copy);
	copy->generation++;
	copy->nr_seen = 0;
	copy->nr_wants = 0;
	copy->nr_fetched = 0;
	copy->any_fetched = false;
	copy->objects_used = 0;
	copy->has_all_objects = true;
	copy->has_known_frames = false;
	want_of_frames(copy, frames, old ? old_objects_frames(old) : NULL);
	for (int round = 0; round < ROUNDS && copy->nr_wants > 0; round++) {
		if (old)
			enter_known(copy, old);
		copy->any_fetched |= copy->nr_wants > 0;
		copy_wants(copy);
		copy->nr_wants = 0;
		for (; looked_at < copy->nr_pieces; looked_at++)
			want_of_object(copy, copy->kinds[looked_at], &copy->pieces[looked_at]);
	}
	copy->has_all_objects &= copy->nr_wants == 0;
	stack_copy_sort_pieces(copy);
}

bool stack_objects_are_native(const struct stack_copy *copy)
{
	return copy->zjit_frame_length > 0;
}

bool stack_objects_lack_known(const struct stack_copy *copy)
{
	return copy->has_known_frames;
}

bool stack_objects_are_read(const struct stack_copy *copy)
{
	return copy->any_fetched;
}

bool stack_objects_are_all(const struct stack_copy *copy)
{
	return copy->has_all_objects;
}
