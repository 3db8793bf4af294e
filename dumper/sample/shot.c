#include "sample/shot.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "decode/value.h"
#include "vm/context.h"

/* The pieces that a stack has, in the order in which they are copied. */
enum { PIECE_THREAD, PIECE_EC, PIECE_FRAMES, PIECE_VALUES, PIECE_COLLECTIONS, STACK_PIECES };

/* With what is copied beside them. */
#define ALL_PIECES (STACK_PIECES + SHOT_BESIDE_MAX)

/*
 * vm_core.h: VM_ENV_DATA_INDEX_: from two words before an ep (ME_CREF, SPECVAL, FLAGS) to one behind it (ENV, on the
 * heap). The low bits of SPECVAL, a previous ep, are a tag.
 */
#define EP_TAG	   UINT64_C(3)
#define ENV_BEFORE 16u
#define ENV_LENGTH 32u

/* How much more than the last stack took is copied: a stack grows and shrinks between two shots. */
#define SLACK_FRAMES 16u
#define SLACK_VALUES 2048u
#define ROOM_SLACK   16384u

/* After how many shots the aim is drawn in to what the last one took. */
#define AIM_AGE 256u

/* Objects: how many, how often what they lead to is looked for, and the most pieces of a call (IOV_MAX). */
#define OBJECTS_MAX  4096u
#define OBJECT_BYTES (1u << 20)
#define SEEN_SLOTS   (2 * OBJECTS_MAX)
#define ROUNDS	     6
#define MAX_PIECES   1024u

/* vm_core.h: VM_ENV_FLAGS are always a Fixnum. */
#define FLAGS_ARE_FIXNUM UINT64_C(1)

/* How many blocks within blocks are followed to their method. */
#define NESTED_MAX 32

/* An object that is to be copied. */
enum object_kind { OBJECT_VALUE, OBJECT_ENV, OBJECT_DEFINITION, OBJECT_NATIVE_SLOT, OBJECT_ZJIT_FRAME };

struct want {
	uint64_t address;
	uint32_t length;
	enum object_kind kind;
};

struct seen {
	uint64_t address, generation;
};

struct shot {
	const struct layout *layout;
	pid_t pid;
	int memory_fd; /* /proc/PID/mem */
	struct context_members members;
	uint32_t ec_offset, ec_length; /* what is copied of an execution context */
	uint32_t object_length;	       /* what is copied of an object */
	uint32_t definition_length;    /* and of a method definition */
	uint32_t zjit_frame_length;    /* and of a frame of ZJIT's own; 0 if there are none */
	uint64_t collections;	       /* where it is that tells how far the collector has come */
	size_t collections_length;     /* 0 if nothing tells it */
	uint8_t *collections_data;     /* room for that */

	struct shot_beside beside[SHOT_BESIDE_MAX];
	size_t nr_beside, beside_length;

	uint8_t *stack; /* the stack's pieces, what is beside them, and behind that their second copies */
	size_t stack_size;
	struct shot_aim aim; /* what the pieces were copied by */
	struct stack_facts facts;
	uint64_t values_end; /* behind the highest environment on the stack */
	const uint8_t *beside_data;

	struct want *wants; /* what is to be copied next */
	size_t nr_wants;
	struct seen *seen; /* all that was ever wanted of this shot: a hash table */
	size_t nr_seen;
	uint64_t generation; /* the slots of other generations are empty */
	uint8_t *objects;
	size_t objects_used;
	bool has_all_objects;

	struct memory_piece of_stack[STACK_PIECES];
	size_t nr_of_stack;
	enum object_kind *kinds;     /* of the pieces behind the stack's, in the order in which they were copied */
	struct memory_piece *pieces; /* all, ascending, once the objects are there */
	size_t nr_pieces;
};

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

struct shot *shot_create(const struct ruby *ruby, const struct target *target)
{
	const struct layout *layout = ruby->layout;
	const struct context_members members = context_members(layout);
	const enum layout_member_id of_ec[] = {members.vm_stack, members.vm_stack_size, members.cfp, F_ec_thread_ptr,
					       members.fiber_ptr};
	static const enum layout_member_id of_object[] = {
	    F_basic_flags, F_iseq_body, F_ment_def, F_ment_owner, F_svar_cref_or_me, F_env_ep, F_moved_destination,
	};
	struct shot *shot = calloc(1, sizeof(*shot));
	uint32_t start = UINT32_MAX, end = 0;
	uint64_t collections_end;

	if (!shot)
		return NULL;
	shot->layout = layout;
	shot->pid = target->pid;
	shot->memory_fd = target->memory_fd;
	for (size_t i = 0; i < sizeof(of_ec) / sizeof(of_ec[0]); i++) {
		const struct layout_member *member = &layout->members[of_ec[i]];

		if (member->present && member->offset < start)
			start = member->offset;
		reach(layout, of_ec[i], &end);
	}
	shot->members = members;
	shot->ec_offset = start;
	shot->ec_length = end - start;
	for (size_t i = 0; i < sizeof(of_object) / sizeof(of_object[0]); i++)
		reach(layout, of_object[i], &shot->object_length);
	reach(layout, F_mdef_type, &shot->definition_length);
	reach(layout, F_mdef_original_id, &shot->definition_length);
	reach(layout, F_mdef_iseq, &shot->definition_length);
	if (ruby->zjit != ZJIT_OFF && is_pointer(layout, F_zjit_frame_pc) && is_pointer(layout, F_zjit_frame_iseq) &&
	    is_pointer(layout, F_cfp_jit_return)) {
		reach(layout, F_zjit_frame_pc, &shot->zjit_frame_length);
		reach(layout, F_zjit_frame_iseq, &shot->zjit_frame_length);
	}
	if (collections_range(ruby, &shot->collections, &collections_end))
		shot->collections_length = (size_t)(collections_end - shot->collections);
	shot->collections_data = malloc(shot->collections_length + 1);
	shot->wants = calloc(OBJECTS_MAX, sizeof(*shot->wants));
	shot->seen = calloc(SEEN_SLOTS, sizeof(*shot->seen));
	shot->objects = calloc(1, OBJECT_BYTES);
	shot->pieces = calloc(OBJECTS_MAX + STACK_PIECES, sizeof(*shot->pieces));
	shot->kinds = calloc(OBJECTS_MAX + STACK_PIECES, sizeof(*shot->kinds));
	if (!shot->collections_data || !shot->wants || !shot->seen || !shot->pieces || !shot->kinds || !shot->objects) {
		shot_destroy(shot);
		return NULL;
	}
	return shot;
}

void shot_destroy(struct shot *shot)
{
	if (!shot)
		return;
	free(shot->stack);
	free(shot->collections_data);
	free(shot->wants);
	free(shot->seen);
	free(shot->objects);
	free(shot->pieces);
	free(shot->kinds);
	free(shot);
}

/* Where the pieces are in the target, and how long they are. */
static void lay_out(const struct shot *shot, const struct shot_aim *aim, struct iovec remote[ALL_PIECES])
{
	remote[PIECE_THREAD].iov_base = (void *)(uintptr_t)(aim->thread + shot->layout->members[F_thread_ec].offset);
	remote[PIECE_THREAD].iov_len = 8;
	remote[PIECE_EC].iov_base = (void *)(uintptr_t)(aim->ec + shot->ec_offset);
	remote[PIECE_EC].iov_len = shot->ec_length;
	remote[PIECE_FRAMES].iov_base = (void *)(uintptr_t)aim->frames_start;
	remote[PIECE_FRAMES].iov_len = (size_t)(aim->end - aim->frames_start);
	remote[PIECE_VALUES].iov_base = (void *)(uintptr_t)aim->vm_stack;
	remote[PIECE_VALUES].iov_len = (size_t)(aim->values_end - aim->vm_stack);
	remote[PIECE_COLLECTIONS].iov_base = (void *)(uintptr_t)shot->collections;
	remote[PIECE_COLLECTIONS].iov_len = shot->collections_length;
	for (size_t i = 0; i < shot->nr_beside; i++)
		remote[STACK_PIECES + i] =
		    (struct iovec){(void *)(uintptr_t)shot->beside[i].address, shot->beside[i].length};
}

/* Room for so many bytes of a stack, and some more. */
static bool make_room(struct shot *shot, size_t wanted)
{
	size_t size = wanted + ROOM_SLACK;
	uint8_t *grown;

	if (wanted <= shot->stack_size)
		return true;
	grown = realloc(shot->stack, size);
	if (!grown)
		return false;
	/* Touched here, not by the kernel while the target waits. */
	memset(grown + shot->stack_size, 0, size - shot->stack_size);
	shot->stack = grown;
	shot->stack_size = size;
	return true;
}

static size_t length_of(const struct shot_aim *aim, const struct shot *shot)
{
	return 8 + shot->ec_length + (size_t)(aim->end - aim->frames_start) +
	       (size_t)(aim->values_end - aim->vm_stack) + shot->collections_length + shot->beside_length;
}

bool shot_make_ready(struct shot *shot, const struct shot_aim *aim, enum shot_way way)
{
	return make_room(shot, (way == SHOT_TWICE ? 2 : 1) * length_of(aim, shot));
}

static uint64_t word_at(const uint8_t *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

/* A member of the copied execution context, a word of 8 bytes. */
static uint64_t ec_word(const struct shot *shot, const uint8_t *ec, enum layout_member_id id)
{
	return word_at(ec + shot->layout->members[id].offset - shot->ec_offset);
}

static uint64_t member_at(const struct shot *shot, const uint8_t *object, enum layout_member_id id)
{
	return word_at(object + shot->layout->members[id].offset);
}

/* Draws the aim to a stack as it was found: with some slack, and never further than to its ends. */
static bool correct(struct shot_aim *aim, uint64_t ec, const struct stack_facts *facts, uint64_t values_end)
{
	uint64_t end = facts->vm_stack + facts->words * 8;
	uint64_t frames_start, frame_slack = SLACK_FRAMES * facts->frame_size;

	/* The two grow towards each other, and may meet in a stack that is nearly full. */
	if (end - facts->cfp + (values_end - facts->vm_stack) > SHOT_STACK_MAX)
		return false;
	if (aim->ec != ec || aim->vm_stack != facts->vm_stack || aim->end != end || ++aim->shots >= AIM_AGE) {
		aim->ec = ec;
		aim->vm_stack = facts->vm_stack;
		aim->end = end;
		aim->frames_start = end;
		aim->values_end = facts->vm_stack;
		aim->shots = 0;
	}
	frames_start = facts->cfp - facts->vm_stack > frame_slack ? facts->cfp - frame_slack : facts->vm_stack;
	values_end = facts->cfp - values_end > SLACK_VALUES ? values_end + SLACK_VALUES : facts->cfp;
	if (frames_start < aim->frames_start)
		aim->frames_start = frames_start;
	if (values_end > aim->values_end)
		aim->values_end = values_end;
	return true;
}

/*
 * The end of the values that the frames refer to. Younger frames have higher environments, but one that is just being
 * made may have any: only those on the stack count.
 */
static uint64_t find_values_end(const struct shot *shot, const uint8_t *frames, size_t length,
				const struct stack_facts *facts)
{
	uint64_t highest = facts->vm_stack;

	for (size_t at = 0; at + facts->frame_size <= length; at += facts->frame_size) {
		uint64_t ep = member_at(shot, frames + at, F_cfp_ep);

		if (ep % 8 == 0 && ep >= facts->vm_stack && ep < facts->cfp && ep + 8 > highest)
			highest = ep + 8;
	}
	return highest;
}

static bool read_pieces(struct shot *shot, const struct iovec *local, const struct iovec *remote, size_t count)
{
	ssize_t wanted = 0, n;

	for (size_t i = 0; i < count; i++)
		wanted += (ssize_t)remote[i].iov_len;
	n = process_vm_readv(shot->pid, local, 1, remote, count, 0);
	return n == wanted;
}

/* Copies the pieces; in the buffer, the second copies follow in the reverse order. */
static bool copy_pieces(struct shot *shot, const struct iovec remote[ALL_PIECES], bool twice, size_t total)
{
	struct iovec local = {.iov_base = shot->stack, .iov_len = total}, both[2 * ALL_PIECES];
	const size_t count = STACK_PIECES + shot->nr_beside;

	if (!twice)
		return read_pieces(shot, &local, remote, count);
	for (size_t i = 0; i < count; i++)
		both[i] = both[2 * count - 1 - i] = remote[i];
	local.iov_len = 2 * total;
	return read_pieces(shot, &local, both, 2 * count);
}

static int pieces_by_address(const void *a, const void *b)
{
	const struct memory_piece *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

/* Leaves the stack's own pieces, in the order in which they were copied. */
static void drop_objects(struct shot *shot)
{
	memcpy(shot->pieces, shot->of_stack, sizeof(shot->of_stack));
	shot->nr_pieces = shot->nr_of_stack;
}

/* Notes where the pieces of a stack are, in the target and here. What has no `data` was not copied: the last ones. */
static void take_pieces(struct shot *shot, const struct shot_aim *aim, const struct stack_facts *facts,
			uint64_t values_end, const uint8_t *const data[STACK_PIECES])
{
	struct iovec remote[ALL_PIECES];

	lay_out(shot, aim, remote);
	shot->aim = *aim;
	shot->facts = *facts;
	shot->values_end = values_end;
	for (size_t i = 0; i < STACK_PIECES && data[i]; i++)
		shot->of_stack[shot->nr_of_stack++] = (struct memory_piece){
		    .address = (uint64_t)(uintptr_t)remote[i].iov_base,
		    .length = remote[i].iov_len,
		    .data = data[i],
		};
	drop_objects(shot);
	qsort(shot->pieces, shot->nr_pieces, sizeof(*shot->pieces), pieces_by_address);
}

/* What the thread runs in, by its copied word. */
static uint64_t ec_of(const struct shot *shot, const struct shot_aim *aim, const uint8_t *piece)
{
	return layout_has(shot->layout, F_thread_ec) ? word_at(piece) : aim->thread;
}

static struct stack_facts facts_of(const struct shot *shot, const uint8_t *ec)
{
	return (struct stack_facts){
	    .vm_stack = ec_word(shot, ec, shot->members.vm_stack),
	    .words = ec_word(shot, ec, shot->members.vm_stack_size),
	    .cfp = ec_word(shot, ec, shot->members.cfp),
	    .frame_size = (uint64_t)shot->layout->sizes[S_cfp].value,
	};
}

static bool read_one(struct shot *shot, const struct iovec *remote, void *buffer)
{
	return read_pieces(shot, &(struct iovec){buffer, remote->iov_len}, remote, 1);
}

/* From one thing to the next, each by a read of its own, as far as it was just found to go. */
static enum shot_result copy_naively(struct shot *shot, struct shot_aim *aim, enum reason *reason)
{
	const uint8_t *piece[STACK_PIECES];
	struct iovec remote[ALL_PIECES];
	struct stack_facts facts;
	uint64_t values_end;

	*reason = REASON_EC_UNREADABLE;
	shot->nr_pieces = shot->nr_of_stack = 0;
	shot->beside_data = NULL;
	lay_out(shot, aim, remote);
	if (!make_room(shot, 8 + shot->ec_length) || !read_one(shot, &remote[PIECE_THREAD], shot->stack))
		return SHOT_FAILED;
	aim->ec = ec_of(shot, aim, shot->stack);
	lay_out(shot, aim, remote);
	if (!read_one(shot, &remote[PIECE_EC], shot->stack + 8))
		return SHOT_FAILED;
	facts = facts_of(shot, shot->stack + 8);
	*reason = REASON_NONE;
	if (facts.vm_stack == 0)
		return SHOT_NONE;
	*reason = validate_stack(&facts);
	if (*reason != REASON_NONE)
		return SHOT_MOVED;
	aim->vm_stack = aim->values_end = facts.vm_stack;
	aim->end = facts.vm_stack + facts.words * 8;
	aim->frames_start = facts.cfp;
	*reason = REASON_TOO_DEEP;
	if (aim->end - facts.cfp > SHOT_STACK_MAX)
		return SHOT_FAILED;
	*reason = REASON_EC_UNREADABLE;
	lay_out(shot, aim, remote);
	if (!make_room(shot, length_of(aim, shot)) ||
	    !read_one(shot, &remote[PIECE_FRAMES], shot->stack + 8 + shot->ec_length))
		return SHOT_FAILED;
	values_end = find_values_end(shot, shot->stack + 8 + shot->ec_length,
				     (size_t)(aim->end - facts.frame_size - facts.cfp), &facts);
	aim->values_end = values_end;
	*reason = REASON_TOO_DEEP;
	if (length_of(aim, shot) > SHOT_STACK_MAX)
		return SHOT_FAILED;
	*reason = REASON_EC_UNREADABLE;
	lay_out(shot, aim, remote);
	if (!make_room(shot, length_of(aim, shot)))
		return SHOT_FAILED;
	piece[PIECE_THREAD] = shot->stack;
	piece[PIECE_EC] = piece[PIECE_THREAD] + 8;
	piece[PIECE_FRAMES] = piece[PIECE_EC] + shot->ec_length;
	piece[PIECE_VALUES] = piece[PIECE_FRAMES] + remote[PIECE_FRAMES].iov_len;
	piece[PIECE_COLLECTIONS] = NULL;
	if (!read_one(shot, &remote[PIECE_VALUES], shot->stack + 8 + shot->ec_length + remote[PIECE_FRAMES].iov_len))
		return SHOT_FAILED;
	take_pieces(shot, aim, &facts, values_end, piece);
	*reason = REASON_NONE;
	return SHOT_COVERED;
}

/*
 * Where nothing can be read, the stack that is aimed at may be gone: that of a fiber goes with it. Aims at what the
 * thread is in now; false if that is what is aimed at, and nothing else.
 */
static bool aim_anew(struct shot *shot, struct shot_aim *aim)
{
	struct iovec remote[ALL_PIECES];
	uint8_t word[8] = {0};
	uint64_t ec;

	lay_out(shot, aim, remote);
	if (!read_one(shot, &remote[PIECE_THREAD], word))
		return false;
	ec = ec_of(shot, aim, word);
	if (ec == aim->ec && aim->vm_stack == aim->values_end && aim->frames_start == aim->end)
		return false;
	*aim = (struct shot_aim){.thread = aim->thread, .ec = ec};
	return true;
}

enum shot_result shot_copy(struct shot *shot, struct shot_aim *aim, enum shot_way way, enum reason *reason)
{
	bool twice = way == SHOT_TWICE, same;
	struct iovec remote[ALL_PIECES];
	const uint8_t *piece[STACK_PIECES], *again[STACK_PIECES];
	uint64_t ec, values_end, end, skipped;
	struct stack_facts facts;
	size_t total;

	if (way == SHOT_NAIVE)
		return copy_naively(shot, aim, reason);
	lay_out(shot, aim, remote);
	total = length_of(aim, shot);
	*reason = REASON_EC_UNREADABLE;
	shot->nr_pieces = shot->nr_of_stack = 0;
	shot->beside_data = NULL;
	if (!make_room(shot, (twice ? 2 : 1) * total))
		return SHOT_FAILED;
	if (!copy_pieces(shot, remote, twice, total))
		return aim_anew(shot, aim) ? SHOT_MISSED : SHOT_FAILED;
	piece[0] = shot->stack;
	for (size_t i = 1; i < STACK_PIECES; i++)
		piece[i] = piece[i - 1] + remote[i - 1].iov_len;
	again[STACK_PIECES - 1] = shot->stack + total + shot->beside_length;
	for (size_t i = STACK_PIECES - 1; i-- > 0;)
		again[i] = again[i + 1] + remote[i + 1].iov_len;

	/* Fibers: the thread may be in another execution context than last time. */
	*reason = REASON_MOVED;
	ec = ec_of(shot, aim, piece[PIECE_THREAD]);
	if (ec != aim->ec) {
		aim->ec = ec;
		return SHOT_MISSED;
	}
	facts = facts_of(shot, piece[PIECE_EC]);
	*reason = REASON_NONE;
	if (facts.vm_stack == 0)
		return SHOT_NONE;
	*reason = validate_stack(&facts);
	if (*reason != REASON_NONE)
		return SHOT_MOVED;
	end = facts.vm_stack + facts.words * 8;
	values_end = facts.vm_stack;
	skipped = facts.cfp - aim->frames_start;
	if (facts.vm_stack == aim->vm_stack && end == aim->end && facts.cfp >= aim->frames_start)
		values_end = find_values_end(shot, piece[PIECE_FRAMES] + skipped,
					     (size_t)(end - facts.frame_size - facts.cfp), &facts);
	if (facts.vm_stack != aim->vm_stack || end != aim->end || facts.cfp < aim->frames_start ||
	    values_end > aim->values_end) {
		bool corrected = correct(aim, ec, &facts, values_end);

		*reason = corrected ? REASON_MOVED : REASON_TOO_DEEP;
		return corrected ? SHOT_MISSED : SHOT_FAILED;
	}
	same = !twice ||
	       (ec_of(shot, aim, again[PIECE_THREAD]) == ec &&
		memcmp(piece[PIECE_EC], again[PIECE_EC], shot->ec_length) == 0 &&
		memcmp(piece[PIECE_FRAMES] + skipped, again[PIECE_FRAMES] + skipped, (size_t)(end - facts.cfp)) == 0 &&
		memcmp(piece[PIECE_VALUES], again[PIECE_VALUES], (size_t)(values_end - facts.vm_stack)) == 0);
	take_pieces(shot, aim, &facts, values_end, piece);
	shot->beside_data = piece[STACK_PIECES - 1] + remote[STACK_PIECES - 1].iov_len;
	correct(aim, ec, &facts, values_end);
	*reason = same ? REASON_NONE : REASON_MOVED;
	return same ? SHOT_COVERED : SHOT_CONTRADICTS;
}

void shot_set_beside(struct shot *shot, const struct shot_beside *pieces, size_t count)
{
	shot->nr_beside = count;
	shot->beside_length = 0;
	for (size_t i = 0; i < count; i++) {
		shot->beside[i] = pieces[i];
		shot->beside_length += pieces[i].length;
	}
}

const uint8_t *shot_beside(const struct shot *shot)
{
	return shot->beside_data;
}

struct collections shot_collections(const struct shot *shot, const struct ruby *ruby)
{
	struct collections then;

	shot_lay(shot, ruby->memory);
	then = collections_read(ruby);
	memory_overlay(ruby->memory, NULL, 0, 0, 0);
	return then;
}

struct collections shot_collections_now(struct shot *shot, const struct ruby *ruby)
{
	const struct iovec remote = {(void *)(uintptr_t)shot->collections, shot->collections_length};
	const struct memory_piece piece = {
	    .address = shot->collections, .length = shot->collections_length, .data = shot->collections_data};
	struct collections now = {0};

	if (shot->collections_length == 0 || !read_one(shot, &remote, shot->collections_data))
		return now;
	memory_overlay(ruby->memory, &piece, 1, 0, 0);
	now = collections_read(ruby);
	memory_overlay(ruby->memory, NULL, 0, 0, 0);
	return now;
}

uint64_t shot_context(const struct shot *shot)
{
	return shot->aim.ec;
}

const struct stack_facts *shot_facts(const struct shot *shot)
{
	return &shot->facts;
}

const uint8_t *shot_bytes(const struct shot *shot, uint64_t address, size_t length)
{
	for (size_t i = 0; i < shot->nr_of_stack; i++) {
		const struct memory_piece *piece = &shot->of_stack[i];
		const uint64_t offset = address - piece->address;

		if (offset <= piece->length && length <= piece->length - offset)
			return piece->data + offset;
	}
	return NULL;
}

/* ---- objects */

static int wants_by_address(const void *a, const void *b)
{
	const struct want *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

/* Notes that an object is wanted, unless it was before. */
static void want(struct shot *shot, uint64_t address, enum object_kind kind)
{
	const uint32_t lengths[] = {
	    [OBJECT_VALUE] = shot->object_length,	   [OBJECT_ENV] = ENV_LENGTH,
	    [OBJECT_DEFINITION] = shot->definition_length, [OBJECT_NATIVE_SLOT] = 8,
	    [OBJECT_ZJIT_FRAME] = shot->zjit_frame_length,
	};
	uint32_t length = lengths[kind];
	size_t i = (size_t)((address * 0x9e3779b97f4a7c15ULL) >> 32) % SEEN_SLOTS;

	/* What lies in the stack is in its own pieces. */
	if (address < MEMORY_PAGE || address % 8 != 0 || address > UINT64_MAX - length ||
	    (address >= shot->facts.vm_stack && address < shot->aim.end))
		return;
	while (shot->seen[i].generation == shot->generation && shot->seen[i].address != address)
		i = (i + 1) % SEEN_SLOTS;
	if (shot->seen[i].generation == shot->generation)
		return;
	if (shot->nr_seen >= OBJECTS_MAX) {
		shot->has_all_objects = false;
		return;
	}
	shot->seen[i] = (struct seen){address, shot->generation};
	shot->nr_seen++;
	shot->wants[shot->nr_wants++] = (struct want){address, length, kind};
}

/* The words from ME_CREF to FLAGS of an environment on the stack; NULL if they are not all in the shot. */
static const uint8_t *env_on_stack(const struct shot *shot, uint64_t ep)
{
	const struct memory_piece *values = &shot->of_stack[PIECE_VALUES];

	if (ep % 8 != 0 || ep < shot->facts.vm_stack + ENV_BEFORE || ep >= shot->values_end ||
	    shot->values_end - ep < 8)
		return NULL;
	return values->data + (ep - ENV_BEFORE - values->address);
}

/* An environment's words from ME_CREF to FLAGS: a method entry or what stands for it, and what encloses it. */
static void want_of_env(struct shot *shot, const uint8_t *words)
{
	for (int nested = 0; words && nested < NESTED_MAX; nested++) {
		uint64_t flags = word_at(words + 16), previous = word_at(words + 8) & ~EP_TAG;

		want(shot, word_at(words), OBJECT_VALUE);
		if (!(flags & FLAGS_ARE_FIXNUM)) {
			want(shot, flags, OBJECT_VALUE);
			return;
		}
		if (flags & (uint64_t)shot->layout->enumerators[E_VM_ENV_FLAG_LOCAL].value)
			return;
		if ((previous < shot->facts.vm_stack || previous >= shot->facts.cfp) && previous > ENV_BEFORE)
			want(shot, previous - ENV_BEFORE, OBJECT_ENV);
		words = env_on_stack(shot, previous);
	}
}

/* What the innermost `count` frames lead to. */
static void want_of_frames(struct shot *shot, size_t count)
{
	const struct memory_piece *frames = &shot->of_stack[PIECE_FRAMES];

	for (uint64_t cfp = shot->facts.cfp; count-- > 0 && cfp + shot->facts.frame_size <= shot->aim.end;
	     cfp += shot->facts.frame_size) {
		const uint8_t *frame = frames->data + (cfp - frames->address);
		uint64_t ep = member_at(shot, frame, F_cfp_ep);

		want(shot, member_at(shot, frame, F_cfp_iseq), OBJECT_VALUE);
		/* vm/jit_frame.h */
		if (shot->zjit_frame_length > 0 && member_at(shot, frame, F_cfp_jit_return) > MEMORY_PAGE)
			want(shot, member_at(shot, frame, F_cfp_jit_return) - 8, OBJECT_NATIVE_SLOT);
		if (env_on_stack(shot, ep))
			want_of_env(shot, env_on_stack(shot, ep));
		else if (ep > ENV_BEFORE)
			want(shot, ep - ENV_BEFORE, OBJECT_ENV);
	}
}

/* What an object that was just copied leads to. */
static void want_of_object(struct shot *shot, enum object_kind kind, const struct memory_piece *object)
{
	const struct layout *layout = shot->layout;
	uint64_t flags, type;

	if (kind == OBJECT_DEFINITION)
		return;
	if (kind == OBJECT_NATIVE_SLOT) {
		want(shot, word_at(object->data), OBJECT_ZJIT_FRAME);
		return;
	}
	if (kind == OBJECT_ZJIT_FRAME) {
		want(shot, member_at(shot, object->data, F_zjit_frame_iseq), OBJECT_VALUE);
		return;
	}
	if (kind == OBJECT_ENV) {
		want_of_env(shot, object->data);
		want(shot, word_at(object->data + ENV_BEFORE + 8), OBJECT_VALUE);
		return;
	}
	flags = member_at(shot, object->data, F_basic_flags);
	type = flags & (uint64_t)layout->enumerators[E_RUBY_T_MASK].value;
	if (layout->enumerators[E_RUBY_T_MOVED].present && layout_has(layout, F_moved_destination) &&
	    type == (uint64_t)layout->enumerators[E_RUBY_T_MOVED].value) {
		want(shot, member_at(shot, object->data, F_moved_destination), OBJECT_VALUE);
		return;
	}
	if (!layout->enumerators[E_RUBY_T_IMEMO].present || type != (uint64_t)layout->enumerators[E_RUBY_T_IMEMO].value)
		return;
	type = value_imemo_type(layout, flags);
	if (type == (uint64_t)layout->enumerators[E_imemo_ment].value)
		want(shot, member_at(shot, object->data, F_ment_def), OBJECT_DEFINITION);
	else if (type == (uint64_t)layout->enumerators[E_imemo_svar].value)
		want(shot, member_at(shot, object->data, F_svar_cref_or_me), OBJECT_VALUE);
	else if (type == (uint64_t)layout->enumerators[E_imemo_env].value && layout_has(layout, F_env_ep))
		want(shot, member_at(shot, object->data, F_env_ep) - ENV_BEFORE, OBJECT_ENV);
}

/* A run of wanted objects that lie in one page: copied together, since a page costs more than its bytes. */
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

/* Enters the objects of a run, whose bytes have just been copied, as pieces. */
static void enter_run(struct shot *shot, const struct want *wants, size_t count, size_t length)
{
	const uint8_t *data = shot->objects + shot->objects_used;

	for (size_t i = 0; i < count; i++) {
		shot->kinds[shot->nr_pieces] = wants[i].kind;
		shot->pieces[shot->nr_pieces++] = (struct memory_piece){
		    .address = wants[i].address,
		    .length = wants[i].length,
		    .data = data + (wants[i].address - wants[0].address),
		};
	}
	shot->objects_used += length;
}

/* Copies what is wanted, and enters each object as a piece. What cannot be read is left out. */
static void copy_wants(struct shot *shot)
{
	struct iovec remote[MAX_PIECES];
	size_t first[MAX_PIECES + 1], done = 0;

	qsort(shot->wants, shot->nr_wants, sizeof(*shot->wants), wants_by_address);
	while (done < shot->nr_wants) {
		struct iovec local = {.iov_base = shot->objects + shot->objects_used};
		size_t runs = 0, end = done;
		ssize_t got;

		while (end < shot->nr_wants && runs < MAX_PIECES) {
			size_t length, n = run_length(&shot->wants[end], shot->nr_wants - end, &length);

			if (shot->objects_used + local.iov_len + length > OBJECT_BYTES)
				break;
			remote[runs].iov_base = (void *)(uintptr_t)shot->wants[end].address;
			remote[runs].iov_len = length;
			first[runs++] = end;
			local.iov_len += length;
			end += n;
		}
		if (runs == 0) {
			shot->has_all_objects = false;
			return;
		}
		first[runs] = end;
		got = process_vm_readv(shot->pid, &local, 1, remote, runs, 0);
		for (size_t run = 0; run < runs; run++) {
			bool stopped_here = got < (ssize_t)remote[run].iov_len;

			done = first[run + 1];
			/* What stopped it short may be a page that Ruby protects while it compacts its heap. */
			if (!stopped_here ||
			    pread(shot->memory_fd, shot->objects + shot->objects_used, remote[run].iov_len,
				  (off_t)(uintptr_t)remote[run].iov_base) == (ssize_t)remote[run].iov_len)
				enter_run(shot, &shot->wants[first[run]], first[run + 1] - first[run],
					  remote[run].iov_len);
			if (stopped_here)
				break;
			got -= (ssize_t)remote[run].iov_len;
		}
	}
}

void shot_copy_objects(struct shot *shot, size_t frames)
{
	size_t looked_at = shot->nr_of_stack;

	drop_objects(shot);
	shot->generation++;
	shot->nr_seen = 0;
	shot->nr_wants = 0;
	shot->objects_used = 0;
	shot->has_all_objects = true;
	want_of_frames(shot, frames);
	for (int round = 0; round < ROUNDS && shot->nr_wants > 0; round++) {
		copy_wants(shot);
		shot->nr_wants = 0;
		for (; looked_at < shot->nr_pieces; looked_at++)
			want_of_object(shot, shot->kinds[looked_at], &shot->pieces[looked_at]);
	}
	shot->has_all_objects &= shot->nr_wants == 0;
	qsort(shot->pieces, shot->nr_pieces, sizeof(*shot->pieces), pieces_by_address);
}

bool shot_leads_to_native_stack(const struct shot *shot)
{
	return shot->zjit_frame_length > 0;
}

bool shot_has_all_objects(const struct shot *shot)
{
	return shot->has_all_objects;
}

void shot_lay(const struct shot *shot, struct memory *memory)
{
	memory_overlay(memory, shot->pieces, shot->nr_pieces, shot->facts.vm_stack,
		       shot->facts.vm_stack + shot->facts.words * 8);
}
