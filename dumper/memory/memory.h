/*
 * The target's memory, as a snapshot of pages.
 *
 * The code in ruby/ reads the target through the snapshot (for the exceptions, see ruby/ruby.h). So each byte is copied
 * only once, even if it is used many times, and all output comes from the same copy. Some data can change while the
 * target's threads run. The caller can copy such data first, for example while the target is stopped. Other data rarely
 * changes, such as code and names. This header calls such data "data that lasts". The caller can copy it later (see
 * memory_reads()). By default, a page is copied when it is first read. The functions memory_prefetch() and
 * memory_fetch() copy many pages in advance, in as few system calls as possible. A read from a sealed snapshot (see
 * memory_seal()) does not copy any pages. If such a read needs a page that the snapshot does not contain, the read
 * fails, and the page is marked as wanted.
 *
 * Only one thread at a time may use a snapshot.
 */
#ifndef RBDUMP_MEMORY_H
#define RBDUMP_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "memory/overlay.h"
#include "memory/page.h"

struct memory;

/*
 * Creates an empty snapshot. Returns NULL if there is not enough memory.
 *   source, context  the function that is the source of pages (page.h), and its first argument. The source is called
 *                    only while a function of this header runs
 *   max_pages        the maximum number of pages in the snapshot; a read that needs more pages fails
 */
struct memory *memory_create(memory_source *source, void *context, size_t max_pages);
void memory_destroy(struct memory *memory); /* NULL is fine */

/*
 * From this call on, a read does not fail if the snapshot has no room for another page. Instead, the read drops all
 * pages that were copied so far, and continues. So the same bytes can be copied twice, at different moments.
 * memory_want() never drops pages, even if there is no room. Do not use memory_recycle() together with memory_forget(),
 * or with functions for data that changes, such as memory_forget_changing().
 */
void memory_recycle(struct memory *memory);

/* Copies `length` bytes at `address` to `buffer`. Returns false if any of these bytes cannot be read. */
bool memory_read(struct memory *memory, uint64_t address, void *buffer, size_t length);

/*
 * Sets a time limit for reads. The time is counted from this call on. When the time is over, each read fails
 * immediately. The limit also ends loops that follow pointers in the target's data, because each step of such a loop
 * needs a read. The limit does not apply to memory_prefetch(), memory_fetch() and memory_copy_again(). It also does not
 * apply when memory_has_changed() reads pages again.
 *   limit_ns  the limit in nanoseconds; 0: no limit
 */
void memory_limit(struct memory *memory, long limit_ns);

/*
 * From the next call of memory_limit() on, the time limit counts only the CPU time of the calling thread. The time
 * during which the thread waits for the source does not count. Call this function if the target is a core. A core does
 * not change, so it does no harm to wait for a slow disk.
 */
void memory_count_own_time(struct memory *memory);

/* The clock that the time limit uses. */
clockid_t memory_clock(const struct memory *memory);

/*
 * Whether the time limit has made a read fail since the last call of memory_limit(). If so, do not draw conclusions
 * from a failed read, because the time limit may have caused the failure.
 */
bool memory_is_over(const struct memory *memory);

struct footprint;

/* From this call on, `footprint` receives all bytes that are read. If `footprint` is NULL, no bytes are recorded. */
void memory_record(struct memory *memory, struct footprint *footprint);

/*
 * Overlays the snapshot with pieces of memory (see overlay.h). A read that lies within one piece returns the bytes of
 * that piece. The pieces must be in ascending order of their addresses. Where pieces overlap, they must have the same
 * bytes. The caller owns the pieces, and must keep them until the next call of memory_overlay() replaces them. If
 * `count` is 0, all pieces are removed.
 *   low, high  while there are pieces, a read that begins in [low, high) must lie within one piece. Otherwise, the read
 *              fails
 */
void memory_overlay(struct memory *memory, const struct memory_piece *pieces, size_t count, uint64_t low,
		    uint64_t high);

/*
 * Drops all copied pages, and unseals the snapshot. Then allocates memory for every page that has been read or marked
 * as wanted so far, and writes to this memory, so that the kernel provides the memory now. So the next
 * memory_prefetch() does not have to allocate memory. Returns false if there is not enough memory.
 */
bool memory_forget(struct memory *memory);

/*
 * Copies the pages for which memory_forget() or memory_forget_changing() allocated memory. The function does nothing
 * else, because the target may be stopped during the call.
 */
void memory_prefetch(struct memory *memory);

/*
 * Whether the `length` bytes at `address` in the target differ from their copy in the snapshot. If memory_copy_again()
 * has made a second copy of all pages that contain these bytes, the function compares the two copies. Otherwise, the
 * function reads the pages again from the target. The copies in the snapshot do not change. Also returns true if the
 * bytes cannot be read.
 */
bool memory_has_changed(struct memory *memory, uint64_t address, size_t length);

/*
 * Sets the function `lacks`, which returns whether the source lacks a page. The source lacks a page if the source
 * should contain the page, but does not. For example, a core that was cut short lacks pages.
 *   lacks  returns whether the source lacks the page at the address `page`. A read that fails calls this function for
 *          the page that cannot be read. NULL (the default): the source does not lack any page
 */
void memory_set_lacking(struct memory *memory, bool (*lacks)(const void *context, uint64_t page), const void *context);

/*
 * The number of reads that have failed so far because the source lacks a page. After such a failure, it is not known
 * whether the target had memory at the address of the read.
 */
size_t memory_lacked(const struct memory *memory);

/*
 * A snapshot can contain data from two moments. At the first moment, rbdump copies the data that can change while the
 * target's threads run. Either the target is stopped at that moment, or rbdump copies the data twice to detect changes.
 * Data that lasts (code, names) is copied later. These are the steps:
 *
 *   1. While the target runs, read all data that is needed. These reads show which pages contain data that changes.
 *   2. Call memory_forget_changing(). Stop the target, and call memory_prefetch(). This call copies the pages with data
 *      that changes. More pages may be read or fetched while the target is stopped.
 *   3. Resume the target, call memory_seal_changing(), and read everything again. Data that changes is read only from
 *      the pages that were copied in step 2. If a read of such data needs a page that was not copied in step 2, the
 *      read fails, and memory_missed() counts the failure.
 *
 * If the target is not stopped in step 2 (see above), call memory_copy_again() at the end of step 2. After that,
 * memory_has_changed() returns whether the bytes of a range changed during step 2.
 *
 * Data that lasts is copied after the first moment. The caller must find out whether this data was the same at the
 * first moment (ruby/collections.h).
 */

/*
 * Sets the kind of the data that is read after this call. Before the first call, the kind is MEMORY_CHANGES. Returns
 * the previous kind.
 */
enum memory_kind memory_reads(struct memory *memory, enum memory_kind kind);

/*
 * If `holds` is true: from this call on, reads do not copy any pages. If a read needs a page that the snapshot does not
 * contain, the read fails, as if the snapshot were sealed. If `holds` is false, this restriction ends.
 */
void memory_hold(struct memory *memory, bool holds);

/*
 * Like memory_forget(), but the next memory_prefetch() copies only pages with data that changes. The reads since the
 * last call of memory_forget() or memory_seal_changing() have shown which pages contain such data. These reads include
 * the reads that failed because a page had not been copied in time.
 */
bool memory_forget_changing(struct memory *memory);

/*
 * Call this function when the target runs again. Pages that are copied after this call are used only for data that
 * lasts.
 */
void memory_seal_changing(struct memory *memory);

/*
 * Call this function between memory_forget_changing() and memory_seal_changing(). All pages that were copied since
 * memory_forget_changing() are copied a second time, in one call of the source. Until memory_forget() or
 * memory_forget_changing() is called, memory_has_changed() returns whether the bytes of a range differ between the two
 * copies. After memory_seal_changing(), data that lasts is read from the second copy. The second copy also contains the
 * objects that Ruby created while the first copy was made, so it contains everything that the first copy can refer to.
 * A page that cannot be read again counts as unreadable. Returns false if there is not enough memory.
 */
bool memory_copy_again(struct memory *memory);

/*
 * The number of pages that have been read or marked as wanted since the snapshot was created. If a read has dropped all
 * pages (memory_recycle()), the count began again at 0 at that time.
 */
size_t memory_pages(const struct memory *memory);

/*
 * The number of pages that reads have copied so far, because the snapshot did not contain these pages. Pages that could
 * not be copied are counted, too.
 */
size_t memory_copied(const struct memory *memory);

/* Seals the snapshot. Until memory_forget() or memory_forget_changing() is called, reads do not copy any pages. */
void memory_seal(struct memory *memory);

/*
 * The number of reads from the sealed snapshot that failed because a page had not been copied. After
 * memory_seal_changing(), the function counts only failed reads of changing data. A read of changing data fails if a
 * page that it needs was not copied before memory_seal_changing(). Reads that fail because of memory_hold() are always
 * counted, for both kinds of data. These functions reset the number to 0: memory_fetch(), the functions that seal the
 * snapshot, and the functions that forget pages.
 */
size_t memory_missed(const struct memory *memory);

/*
 * Sets the result of memory_missed() back to `missed`, an earlier result of memory_missed(). Call this function if the
 * caller has already taken into account the reads that have failed since memory_missed() returned `missed`.
 */
void memory_excuse(struct memory *memory, size_t missed);

/*
 * Marks the pages of the range [start, end) as wanted. Between memory_forget_changing() and memory_seal_changing(),
 * also marks these pages as pages with data that changes. Does nothing if the whole range lies within one piece (see
 * memory_overlay()). If there is no room for more pages, the remaining pages are not marked. Copies nothing yet.
 */
void memory_want(struct memory *memory, uint64_t start, uint64_t end);

/*
 * Copies all pages that are marked as wanted, in as few system calls as possible. Between memory_forget_changing() and
 * memory_seal_changing(), copies only wanted pages with data that changes. After memory_seal_changing(), copies only
 * wanted pages with data that lasts. Each call of memory_forget() or memory_seal_changing() begins a new pass. The
 * reads of the previous pass have shown which pages contain data that lasts. Pages that were already copied are not
 * copied again, and a sealed snapshot stays sealed. So a search can seal the snapshot, read the pages that are present,
 * fetch the missing pages, and continue. Returns how many pages the function tried to copy; 0 if there is not enough
 * memory.
 */
size_t memory_fetch(struct memory *memory);

#endif
