/*
 * Locks that are not T_DATA objects (typed.h). Only older Rubies have such locks. In 2.1 to 2.4, queues and
 * ConditionVariables are T_STRUCTs. Up to 2.6, Monitors are objects whose methods are written in Ruby. rbdump recognizes all
 * these locks by the names of their methods ("Thread::Queue#pop").
 *
 * Based on Ruby's sources: ext/thread/thread.c, v2_1_0 to v2_2_10, and thread_sync.c, v2_3_0 to v2_4_10 (QUEUE_QUE,
 * SZQUEUE_MAX); lib/monitor.rb, v1_9_3_0 to v2_6_10.
 */
#ifndef RBDUMP_PLAIN_LOCKS_H
#define RBDUMP_PLAIN_LOCKS_H

#include "ruby/locks.h"

/* Whether an object is a T_STRUCT. */
bool plain_is_struct(const struct ruby *ruby, uint64_t object);

/*
 * Reads how full a queue is.
 *   object  a Thread::Queue or Thread::SizedQueue that is a T_STRUCT
 *   sized   whether the queue is a SizedQueue
 *   length  receives the number of elements in the queue
 *   max     receives the maximum number of elements; 0 for a Queue
 * Returns false if the queue cannot be read.
 */
bool plain_queue_length(const struct ruby *ruby, uint64_t object, bool sized, uint64_t *length, uint64_t *max);

/* At most this many Mutexes are found for one object. */
#define PLAIN_MUTEXES_MAX 8u

/*
 * Finds the Mutexes among the instance variables of an object. The object is a Monitor, or was extended with MonitorMixin.
 * Returns how many Mutexes were found. Uses steps of `locks`: see locks_step().
 *   mutexes  receives the addresses (rb_mutex_t), at most PLAIN_MUTEXES_MAX
 */
size_t plain_monitor_mutexes(struct locks *locks, uint64_t object, uint64_t *mutexes);

#endif
