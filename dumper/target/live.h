/*
 * A live process as a target: its memory, and the files that are mapped there. stopping.h has its threads.
 */
#ifndef RBDUMP_LIVE_H
#define RBDUMP_LIVE_H

#include "target/target.h"

/*
 * Opens a process. Fails with EXIT_FAILED if there is none, with EXIT_NO_PERMISSION and the cause if the kernel refuses
 * access to it. target_close() ends it.
 */
struct error *live_open(pid_t pid, struct target **ret);

/*
 * Whether its memory can be read by process_vm_readv(2). live_open() takes /proc/PID/mem where that is refused, which
 * reads page by page; sampling needs the call. Fails as live_open().
 */
struct error *live_check_calls(const struct target *target);

/*
 * Reads the mappings anew: a process may have got more memory since it was opened. Those of before are gone, unless
 * there are none to be had.
 */
void live_update_mappings(struct target *target);

/* Whether the process is gone, or on its way out of the kernel: then it has no memory any more, or soon. */
bool live_is_ending(const struct target *target);

/*
 * Whether the memory that was opened is no process's any more: it has ended, or has become another program. Its file
 * stays that of the old memory (fs/proc/base.c, mem_rw()).
 */
bool live_is_gone(const struct target *target);

/* ---- how target.h does it for a process */

void live_close(struct target *target); /* what is no other kind's: resumes it, closes its files */

/*
 * The calls are as few as can be, with as many pages each as process_vm_readv takes. A page that this refuses
 * (PROT_NONE: Ruby protects pages while it compacts its heap) is read through /proc/PID/mem.
 */
void live_read_pages(const struct target *target, const uint64_t *pages, size_t count, uint8_t *buffer, bool *ok);

/*
 * Through map_files if that is allowed, /proc/PID/exe if it is the executable, else by its name below the target's own
 * root (it may live in a container).
 */
int live_open_file(const struct target *target, const struct mapping *mapping);

#endif
