#include "sampling/stack_copy.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "ruby/environment.h"
#include "sampling/stack_copy_parts.h"

/* How much more than the last stack is copied, because a stack grows and shrinks between two copies. */
#define SLACK_FRAMES 16u
#define SLACK_VALUES 2048u
#define ROOM_SLACK   16384u

/* After how many copies the extent is reduced to what the last copy needed. */
#define EXTENT_AGE 256u

static void reach(const struct layout *layout, enum layout_member_id id, uint32_t *end)
{
	const struct layout_member *member = &layout->members[id];

	if (member->present && member->offset + member->size > *end)
		*end = member->offset + member->size;
}

static bool is_pointer(const struct layout *layout, enum layout_member_id id)
{
	return layout_has(layout, id) && layout->members[id].size == 8;
}

struct stack_copy *stack_copy_create(const struct ruby *ruby, const struct target *target)
{
	const struct layout *layout = ruby->layout;
	const struct context_members members = context_members(layout);
	const enum layout_member_id of_ec[] = {members.vm_stack, members.vm_stack_size, members.cfp, F_ec_thread_ptr,
					       members.fiber_ptr};
	static const enum layout_member_id of_object[] = {
	    F_basic_flags, F_iseq_body, F_ment_def, F_ment_owner, F_svar_cref_or_me, F_env_ep, F_moved_destination,
	};
	struct stack_copy *copy = calloc(1, sizeof(*copy));
	uint32_t start = UINT32_MAX, end = 0;
	uint64_t collections_end;

	if (!copy)
		return NULL;
	copy->layout = layout;
	copy->pid = target->pid;
	copy->memory_fd = target->memory_fd;
	for (size_t i = 0; i < sizeof(of_ec) / sizeof(of_ec[0]); i++) {
		const struct layout_member *member = &layout->members[of_ec[i]];

		if (member->present && member->offset < start)
			start = member->offset;
		reach(layout, of_ec[i], &end);
	}
	copy->members = members;
	copy->ec_offset = start;
	copy->ec_length = end - start;
	for (size_t i = 0; i < sizeof(of_object) / sizeof(of_object[0]); i++)
		reach(layout, of_object[i], &copy->object_length);
	reach(layout, F_mdef_type, &copy->definition_length);
	reach(layout, F_mdef_original_id, &copy->definition_length);
	reach(layout, F_mdef_iseq, &copy->definition_length);
	reach(layout, F_mdef_serial, &copy->definition_length);
	if (ruby->zjit != ZJIT_OFF && is_pointer(layout, F_zjit_frame_pc) && is_pointer(layout, F_zjit_frame_iseq) &&
	    is_pointer(layout, F_cfp_jit_return)) {
		reach(layout, F_zjit_frame_pc, &copy->zjit_frame_length);
		reach(layout, F_zjit_frame_iseq, &copy->zjit_frame_length);
	}
	if (collections_range(ruby, &copy->collections, &collections_end))
		copy->collections_length = (size_t)(collections_end - copy->collections);
	copy->collections_data = malloc(copy->collections_length + 1);
	copy->wants = calloc(OBJECTS_MAX, sizeof(*copy->wants));
	copy->seen = calloc(SEEN_SLOTS, sizeof(*copy->seen));
	copy->fetched = calloc(OBJECTS_MAX, sizeof(*copy->fetched));
	copy->objects = calloc(1, OBJECT_BYTES);
	copy->pieces = calloc(OBJECTS_MAX + STACK_PIECES, sizeof(*copy->pieces));
	copy->kinds = calloc(OBJECTS_MAX + STACK_PIECES, sizeof(*copy->kinds));
	if (!copy->collections_data || !copy->wants || !copy->seen || !copy->fetched || !copy->pieces || !copy->kinds ||
	    !copy->objects) {
		stack_copy_destroy(copy);
		return NULL;
	}
	return copy;
}

void stack_copy_destroy(struct stack_copy *copy)
{
	if (!copy)
		return;
	free(copy->stack);
	free(copy->collections_data);
	free(copy->wants);
	free(copy->seen);
	free(copy->fetched);
	free(copy->objects);
	free(copy->pieces);
	free(copy->kinds);
	free(copy);
}

void stack_copy_lay_out(const struct stack_copy *copy, const struct stack_extent *extent,
			struct iovec remote[ALL_PIECES])
{
	remote[PIECE_THREAD].iov_base = (void *)(uintptr_t)(extent->thread + copy->layout->members[F_thread_ec].offset);
	remote[PIECE_THREAD].iov_len = 8;
	remote[PIECE_EC].iov_base = (void *)(uintptr_t)(extent->ec + copy->ec_offset);
	remote[PIECE_EC].iov_len = copy->ec_length;
	remote[PIECE_FRAMES].iov_base = (void *)(uintptr_t)extent->frames_start;
	remote[PIECE_FRAMES].iov_len = (size_t)(extent->end - extent->frames_start);
	remote[PIECE_VALUES].iov_base = (void *)(uintptr_t)extent->vm_stack;
	remote[PIECE_VALUES].iov_len = (size_t)(extent->values_end - extent->vm_stack);
	remote[PIECE_COLLECTIONS].iov_base = (void *)(uintptr_t)copy->collections;
	remote[PIECE_COLLECTIONS].iov_len = copy->collections_length;
	for (size_t i = 0; i < copy->nr_beside; i++)
		remote[STACK_PIECES + i] =
		    (struct iovec){(void *)(uintptr_t)copy->beside[i].address, copy->beside[i].length};
}

bool stack_copy_make_room(struct stack_copy *copy, size_t wanted)
{
	size_t size = wanted + ROOM_SLACK;
	uint8_t *grown;

	if (wanted <= copy->stack_size)
		return true;
	grown = realloc(copy->stack, size);
	if (!grown)
		return false;
	/* Touches the memory now, so that the kernel need not provide the pages while the target waits. */
	memset(grown + copy->stack_size, 0, size - copy->stack_size);
	copy->stack = grown;
	copy->stack_size = size;
	return true;
}

size_t stack_copy_length(const struct stack_copy *copy, const struct stack_extent *extent)
{
	return 8 + copy->ec_length + (size_t)(extent->end - extent->frames_start) +
	       (size_t)(extent->values_end - extent->vm_stack) + copy->collections_length + copy->beside_length;
}

bool stack_copy_make_ready(struct stack_copy *copy, const struct stack_extent *extent, enum copy_way way)
{
	return stack_copy_make_room(copy, (way == COPY_TWICE ? 2 : 1) * stack_copy_length(copy, extent));
}

/* A member of the copied execution context, a word of 8 bytes. */
static uint64_t ec_word(const struct stack_copy *copy, const uint8_t *ec, enum layout_member_id id)
{
	return stack_copy_word(ec + copy->layout->members[id].offset - copy->ec_offset);
}

/* Corrects the extent to the stack that was found, with some slack, but not beyond the ends of the stack. */
static bool correct(struct stack_extent *extent, uint64_t ec, const struct stack_facts *facts, uint64_t values_end)
{
	uint64_t end = facts->vm_stack + facts->words * 8;
	uint64_t frames_start, frame_slack = SLACK_FRAMES * facts->frame_size;

	/* Frames and values grow towards each other, and may meet in a stack that is nearly full. */
	if (end - facts->cfp + (values_end - facts->vm_stack) > STACK_COPY_MAX)
		return false;
	if (extent->ec != ec || extent->vm_stack != facts->vm_stack || extent->end != end ||
	    ++extent->copies >= EXTENT_AGE) {
		extent->ec = ec;
		extent->vm_stack = facts->vm_stack;
		extent->end = end;
		extent->frames_start = end;
		extent->values_end = facts->vm_stack;
		extent->copies = 0;
	}
	frames_start = facts->cfp - facts->vm_stack > frame_slack ? facts->cfp - frame_slack : facts->vm_stack;
	values_end = facts->cfp - values_end > SLACK_VALUES ? values_end + SLACK_VALUES : facts->cfp;
	if (frames_start < extent->frames_start)
		extent->frames_start = frames_start;
	if (values_end > extent->values_end)
		extent->values_end = values_end;
	return true;
}

uint64_t stack_copy_values_end(const struct stack_copy *copy, const uint8_t *frames, size_t length,
			       const struct stack_facts *facts)
{
	uint64_t highest = facts->vm_stack;

	for (size_t at = 0; at + facts->frame_size <= length; at += facts->frame_size) {
		uint64_t ep = stack_copy_member(copy, frames + at, F_cfp_ep);

		if (ep % 8 == 0 && ep >= facts->vm_stack && ep < facts->cfp && ep + 8 > highest)
			highest = ep + 8;
	}
	return highest;
}

const uint8_t *stack_copy_env(const struct stack_copy *copy, uint64_t ep)
{
	const struct memory_piece *values = &copy->of_stack[PIECE_VALUES];

	if (ep % 8 != 0 || ep < copy->facts.vm_stack + ENVIRONMENT_BEFORE || ep >= copy->values_end ||
	    copy->values_end - ep < 8)
		return NULL;
	return values->data + (ep - ENVIRONMENT_BEFORE - values->address);
}

static bool read_pieces(struct stack_copy *copy, const struct iovec *local, const struct iovec *remote, size_t count)
{
	ssize_t wanted = 0, n;

	for (size_t i = 0; i < count; i++)
		wanted += (ssize_t)remote[i].iov_len;
	n = process_vm_readv(copy->pid, local, 1, remote, count, 0);
	return n == wanted;
}

/* Copies the pieces. In the buffer, the second copies follow in the reverse order. */
static bool copy_pieces(struct stack_copy *copy, const struct iovec remote[ALL_PIECES], bool twice, size_t total)
{
	struct iovec local = {.iov_base = copy->stack, .iov_len = total}, both[2 * ALL_PIECES];
	const size_t count = STACK_PIECES + copy->nr_beside;

	if (!twice)
		return read_pieces(copy, &local, remote, count);
	for (size_t i = 0; i < count; i++)
		both[i] = both[2 * count - 1 - i] = remote[i];
	local.iov_len = 2 * total;
	return read_pieces(copy, &local, both, 2 * count);
}

void stack_copy_sort_pieces(struct stack_copy *copy)
{
	memory_sort_pieces(copy->pieces, copy->nr_pieces);
}

void stack_copy_take_pieces(struct stack_copy *copy, const struct stack_extent *extent, const struct stack_facts *facts,
			    uint64_t values_end, const uint8_t *const data[STACK_PIECES])
{
	struct iovec remote[ALL_PIECES];

	stack_copy_lay_out(copy, extent, remote);
	copy->extent = *extent;
	copy->facts = *facts;
	copy->values_end = values_end;
	for (size_t i = 0; i < STACK_PIECES && data[i]; i++)
		copy->of_stack[copy->nr_of_stack++] = (struct memory_piece){
		    .address = (uint64_t)(uintptr_t)remote[i].iov_base,
		    .length = remote[i].iov_len,
		    .data = data[i],
		};
	stack_copy_drop_objects(copy);
	stack_copy_sort_pieces(copy);
}

uint64_t stack_copy_ec_of(const struct stack_copy *copy, const struct stack_extent *extent, const uint8_t *piece)
{
	return layout_has(copy->layout, F_thread_ec) ? stack_copy_word(piece) : extent->thread;
}

struct stack_facts stack_copy_facts_of(const struct stack_copy *copy, const uint8_t *ec)
{
	return (struct stack_facts){
	    .vm_stack = ec_word(copy, ec, copy->members.vm_stack),
	    .words = ec_word(copy, ec, copy->members.vm_stack_size),
	    .cfp = ec_word(copy, ec, copy->members.cfp),
	    .frame_size = (uint64_t)copy->layout->sizes[S_cfp].value,
	};
}

bool stack_copy_read(struct stack_copy *copy, const struct iovec *remote, void *buffer)
{
	return read_pieces(copy, &(struct iovec){buffer, remote->iov_len}, remote, 1);
}

/*
 * If the extent cannot be read, the expected stack may be gone: the stack of a fiber is freed with the fiber. Sets the
 * extent to the thread's current execution context, without a stack. False if the extent is exactly that already.
 */
static bool expect_anew(struct stack_copy *copy, struct stack_extent *extent)
{
	struct iovec remote[ALL_PIECES];
	uint8_t word[8] = {0};
	uint64_t ec;

	stack_copy_lay_out(copy, extent, remote);
	if (!stack_copy_read(copy, &remote[PIECE_THREAD], word))
		return false;
	ec = stack_copy_ec_of(copy, extent, word);
	if (ec == extent->ec && extent->vm_stack == extent->values_end && extent->frames_start == extent->end)
		return false;
	*extent = (struct stack_extent){.thread = extent->thread, .ec = ec};
	return true;
}

enum copy_result stack_copy_take(struct stack_copy *copy, struct stack_extent *extent, enum copy_way way,
				 enum reason *reason)
{
	bool twice = way == COPY_TWICE, same;
	struct iovec remote[ALL_PIECES];
	const uint8_t *piece[STACK_PIECES], *again[STACK_PIECES];
	uint64_t ec, values_end, end, skipped;
	struct stack_facts facts;
	size_t total;

	stack_copy_lay_out(copy, extent, remote);
	total = stack_copy_length(copy, extent);
	*reason = REASON_EC_UNREADABLE;
	copy->nr_pieces = copy->nr_of_stack = 0;
	copy->beside_data = NULL;
	if (!stack_copy_make_room(copy, (twice ? 2 : 1) * total))
		return COPY_FAILED;
	if (!copy_pieces(copy, remote, twice, total))
		return expect_anew(copy, extent) ? COPY_MISSED : COPY_FAILED;
	piece[0] = copy->stack;
	for (size_t i = 1; i < STACK_PIECES; i++)
		piece[i] = piece[i - 1] + remote[i - 1].iov_len;
	again[STACK_PIECES - 1] = copy->stack + total + copy->beside_length;
	for (size_t i = STACK_PIECES - 1; i-- > 0;)
		again[i] = again[i + 1] + remote[i + 1].iov_len;

	/* The thread may run another fiber, and so be in another execution context, than last time. */
	*reason = REASON_MOVED;
	ec = stack_copy_ec_of(copy, extent, piece[PIECE_THREAD]);
	if (ec != extent->ec) {
		extent->ec = ec;
		return COPY_MISSED;
	}
	facts = stack_copy_facts_of(copy, piece[PIECE_EC]);
	*reason = REASON_NONE;
	if (facts.vm_stack == 0)
		return COPY_NONE;
	*reason = validate_stack(&facts);
	if (*reason != REASON_NONE)
		return COPY_MOVED;
	end = facts.vm_stack + facts.words * 8;
	values_end = facts.vm_stack;
	skipped = facts.cfp - extent->frames_start;
	if (facts.vm_stack == extent->vm_stack && end == extent->end && facts.cfp >= extent->frames_start)
		values_end = stack_copy_values_end(copy, piece[PIECE_FRAMES] + skipped,
						   (size_t)(end - facts.frame_size - facts.cfp), &facts);
	if (facts.vm_stack != extent->vm_stack || end != extent->end || facts.cfp < extent->frames_start ||
	    values_end > extent->values_end) {
		bool corrected = correct(extent, ec, &facts, values_end);

		*reason = corrected ? REASON_MOVED : REASON_TOO_DEEP;
		return corrected ? COPY_MISSED : COPY_FAILED;
	}
	same = !twice ||
	       (stack_copy_ec_of(copy, extent, again[PIECE_THREAD]) == ec &&
		memcmp(piece[PIECE_EC], again[PIECE_EC], copy->ec_length) == 0 &&
		memcmp(piece[PIECE_FRAMES] + skipped, again[PIECE_FRAMES] + skipped, (size_t)(end - facts.cfp)) == 0 &&
		memcmp(piece[PIECE_VALUES], again[PIECE_VALUES], (size_t)(values_end - facts.vm_stack)) == 0);
	stack_copy_take_pieces(copy, extent, &facts, values_end, piece);
	copy->beside_data = piece[STACK_PIECES - 1] + remote[STACK_PIECES - 1].iov_len;
	correct(extent, ec, &facts, values_end);
	*reason = same ? REASON_NONE : REASON_MOVED;
	return same ? COPY_COVERED : COPY_CONTRADICTS;
}

void stack_copy_set_beside(struct stack_copy *copy, const struct copy_beside *pieces, size_t count)
{
	copy->nr_beside = count;
	copy->beside_length = 0;
	for (size_t i = 0; i < count; i++) {
		copy->beside[i] = pieces[i];
		copy->beside_length += pieces[i].length;
	}
}

const uint8_t *stack_copy_beside(const struct stack_copy *copy)
{
	return copy->beside_data;
}

struct collections stack_copy_collections(const struct stack_copy *copy, const struct ruby *ruby)
{
	struct collections then;

	stack_copy_lay(copy, ruby->memory);
	then = collections_read(ruby);
	memory_overlay(ruby->memory, NULL, 0, 0, 0);
	return then;
}

struct collections stack_copy_collections_now(struct stack_copy *copy, const struct ruby *ruby)
{
	const struct iovec remote = {(void *)(uintptr_t)copy->collections, copy->collections_length};
	const struct memory_piece piece = {
	    .address = copy->collections, .length = copy->collections_length, .data = copy->collections_data};
	struct collections now = {0};

	if (copy->collections_length == 0 || !stack_copy_read(copy, &remote, copy->collections_data))
		return now;
	memory_overlay(ruby->memory, &piece, 1, 0, 0);
	now = collections_read(ruby);
	memory_overlay(ruby->memory, NULL, 0, 0, 0);
	return now;
}

uint64_t stack_copy_thread(const struct stack_copy *copy)
{
	return copy->extent.thread;
}

uint64_t stack_copy_context(const struct stack_copy *copy)
{
	return copy->extent.ec;
}

const struct stack_facts *stack_copy_facts(const struct stack_copy *copy)
{
	return &copy->facts;
}

const uint8_t *stack_copy_bytes(const struct stack_copy *copy, uint64_t address, size_t length)
{
	for (size_t i = 0; i < copy->nr_of_stack; i++) {
		const struct memory_piece *piece = &copy->of_stack[i];
		const uint64_t offset = address - piece->address;

		if (offset <= piece->length && length <= piece->length - offset)
			return piece->data + offset;
	}
	return NULL;
}

void stack_copy_lay(const struct stack_copy *copy, struct memory *memory)
{
	memory_overlay(memory, copy->pieces, copy->nr_pieces, copy->facts.vm_stack,
		       copy->facts.vm_stack + copy->facts.words * 8);
}
