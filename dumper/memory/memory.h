/*
 * The target's memory, as a snapshot of pages.
 *
 * Every read of the target goes through here, so that what is printed comes from bytes that were copied once, while
 * the target stood still, however often they are looked at afterwards. A page is copied when it is first read, or
 * ahead of that by memory_prefetch() in as few system calls as there can be. A sealed snapshot copies no more: a read
 * of a page that it lacks fails, and the page is noted as wanted.
 *
 * One snapshot belongs to one thread at a time.
 */
#ifndef RBDUMP_MEMORY_H
#define RBDUMP_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define MEMORY_PAGE ((uint64_t)4096)

/*
 * Where pages come from: copies `count` pages, whose addresses are in `pages`, ascending, to `buffer`, one after the
 * other, and sets ok[i] for each that could be read.
 */
typedef void memory_source(void *context, const uint64_t *pages, size_t count, uint8_t *buffer, bool *ok);

struct memory;

/*
 *   source, context  where pages come from; called from the functions below only
 *   max_pages        how many pages it may hold at most; a read beyond that fails
 * Returns NULL if out of memory.
 */
struct memory *memory_create(memory_source *source, void *context, size_t max_pages);
void memory_destroy(struct memory *memory); /* NULL is fine */

/* Copies `length` bytes at `address`; false if any of them cannot be had. */
bool memory_read(struct memory *memory, uint64_t address, void *buffer, size_t length);

/*
 * From now on reads are allowed for so long; after that, each is refused at once. It is here that the time is limited
 * that anything takes which follows what the target says, however it goes about it: nothing but reading can go on for
 * long. memory_prefetch(), memory_fetch() and memory_has_changed() copy as ever.
 *   limit_ns  0: for ever
 */
void memory_limit(struct memory *memory, long limit_ns);

/*
 * From the next memory_limit() on, only time counts in which the thread itself runs, not what it waits for the source:
 * that of a target which stands still may be on a slow disk.
 */
void memory_count_own_time(struct memory *memory);

/* The clock that tells what time counts. */
clockid_t memory_clock(const struct memory *memory);

/*
 * Whether a read was refused since then for lack of time: what was read is not all, and what was concluded from a read
 * that failed need not be so.
 */
bool memory_is_over(const struct memory *memory);

struct footprint;

/* From now on, what is read is added to a footprint, too; NULL ends that. */
void memory_record(struct memory *memory, struct footprint *footprint);

/* Bytes that were copied otherwise: those of the target from `address` on. */
struct memory_piece {
	uint64_t address;
	size_t length;
	const uint8_t *data;
};

/*
 * Lays pieces over the snapshot: a read that lies within one gets its bytes. The pieces are the caller's, ascending by
 * address, and stay until the next call; `count` 0 takes them away.
 *   low, high  a range [low, high) that must come from the pieces alone: a read that begins there and lies within no
 *              piece fails
 */
void memory_overlay(struct memory *memory, const struct memory_piece *pieces, size_t count, uint64_t low,
		    uint64_t high);

/*
 * Drops every copy, takes the seal off, and makes ready to copy every page that was ever read or missed: room for them
 * is allocated and touched here, so that memory_prefetch() need not. False if out of memory.
 */
bool memory_forget(struct memory *memory);

/* Copies the pages that memory_forget() made ready, and does nothing else: it runs while the target is stopped. */
void memory_prefetch(struct memory *memory);

/* Whether the target has other bytes now than the copy has: reads those pages again, apart from the copy. */
bool memory_has_changed(struct memory *memory, uint64_t address, size_t length);

/*
 * What the source ought to have and has not, as a core that was cut short: asked for a page of which a read has failed.
 *   lacks  whether that page is one of these; NULL (as at first): there are none
 */
void memory_set_lacking(struct memory *memory, bool (*lacks)(const void *context, uint64_t page), const void *context);

/* How many reads have failed at such a page, ever: what is concluded from those need not be so. */
size_t memory_lacked(const struct memory *memory);

/* How many pages were ever read or missed. */
size_t memory_pages(const struct memory *memory);

/* From now on nothing is copied. */
void memory_seal(struct memory *memory);

/* How many reads since the seal hit a page that is not there and was noted as wanted. */
size_t memory_missed(const struct memory *memory);

/* Notes the pages of [start, end) as wanted, as far as there is room for them. Nothing is copied yet. */
void memory_want(struct memory *memory, uint64_t start, uint64_t end);

/*
 * Copies all that is noted as wanted, in as few system calls as there can be; what was copied before stays as it is,
 * and a sealed snapshot stays sealed: a search seals it, reads what it can, fetches what it lacked, and goes on.
 * Returns how many pages were tried; 0 also if out of memory.
 */
size_t memory_fetch(struct memory *memory);

#endif
