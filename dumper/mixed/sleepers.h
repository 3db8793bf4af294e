/*
 * Decides which sleeping threads of a process must be stopped, so that their native stacks can be unwound.
 *
 * Of a thread that sleeps in a system call, the kernel tells the instruction pointer and the stack pointer without a
 * stop. To unwind most stacks, this is enough: a function that needs another register has saved the value that its
 * caller had there. A stop would end some system calls (target/sleeper.h). So a sleeping thread is stopped only if its
 * stack was tried before, and could not be followed without its other registers.
 */
#ifndef RBDUMP_SLEEPERS_H
#define RBDUMP_SLEEPERS_H

#include "mixed/native_walk.h"

/*
 * Adds the threads that must be stopped to `restless` of the target. Replaces the copies of the walker's stacks, which
 * must be prepared for one stack. Returns false if there is not enough memory.
 */
bool sleepers_choose(const struct native_walker *walker);

#endif
