/*
 * Pieces of the target's memory that are laid over a snapshot (memory.h), for example what a sample has of a stack.
 */
#ifndef RBDUMP_OVERLAY_H
#define RBDUMP_OVERLAY_H

#include <stddef.h>
#include <stdint.h>

/* A piece: bytes of the target at `address`. The bytes come from the caller, not from the snapshot's source. */
struct memory_piece {
	uint64_t address;
	size_t length;
	const uint8_t *data;
};

/* Sorts pieces by their addresses, as struct overlay requires. */
void memory_sort_pieces(struct memory_piece *pieces, size_t count);

/* Pieces in ascending order of their addresses. Where pieces overlap, they have the same bytes. */
struct overlay {
	const struct memory_piece *pieces; /* the caller's */
	size_t count;
	size_t last;	    /* the piece that was found last; at first 0 */
	uint64_t low, high; /* if there are pieces, nothing else is read there */
};

/*
 * The piece that has all of `length` bytes at `address`; NULL if none has. A short piece may lie in a longer one that begins
 * before it: of those that begin at or before `address`, the last four are looked at.
 */
const struct memory_piece *overlay_find(struct overlay *overlay, uint64_t address, size_t length);

#endif
