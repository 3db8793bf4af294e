/*
 * A live process as a target: its memory and its mapped files. The functions that stop the threads of a live process
 * are in stopping.h.
 */
#ifndef RBDUMP_LIVE_H
#define RBDUMP_LIVE_H

#include "target/target.h"

/* The operations of a live process (target.h, struct target_operations). */
extern const struct target_operations live_operations;

/*
 * Opens a process. Fails with EXIT_FAILED if the process does not exist. If the kernel refuses access to the process,
 * fails with EXIT_NO_PERMISSION. The message then names the cause. Close the target with target_close().
 */
struct error *live_open(pid_t pid, struct target **ret);

/*
 * Checks that process_vm_readv(2) can read the target's memory. If the kernel refuses process_vm_readv(2), a dump can
 * still read /proc/PID/mem page by page, but sampling needs process_vm_readv(2). Fails with the same errors as
 * live_open().
 */
struct error *live_check_calls(const struct target *target);

/*
 * Whether the memory of the target is gone. This is the case if the process has ended or has called exec. If
 * /proc/PID/mem was opened before an exec, the open file still refers to the old memory (fs/proc/base.c, mem_rw()). An
 * open /proc/PID/maps also refers to the old memory. If the kernel refuses to open /proc/PID/mem, rbdump checks
 * /proc/PID/maps instead.
 */
bool live_is_gone(const struct target *target);

/*
 * Whether a process sees the same files under the same paths as rbdump: it has the same root folder, in the same mount
 * namespace. False if that is not known.
 */
bool live_shares_files(pid_t pid);

#endif
