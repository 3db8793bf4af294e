/*
 * An overlay: pieces of the target's memory. Reads use these pieces instead of the pages of a snapshot (memory.h). For
 * example, the stack copy of a sample consists of such pieces.
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
	const struct memory_piece *pieces; /* owned by the caller */
	size_t count;
	size_t last;	    /* the index of the piece that the last successful overlay_find() returned; 0 at first */
	uint64_t low, high; /* if there are pieces, a read that begins in [low, high) uses only the pieces */
};

/*
 * Returns a piece that contains all `length` bytes at `address`; NULL if no such piece is found. A short piece may lie
 * within a longer piece that begins before the short piece. So the function tries the last four pieces that begin at or
 * before `address`.
 */
const struct memory_piece *overlay_find(struct overlay *overlay, uint64_t address, size_t length);

#endif
