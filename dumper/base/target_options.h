/*
 * Which process or core the user wants to see, and how to find the layout for it.
 */
#ifndef RBDUMP_TARGET_OPTIONS_H
#define RBDUMP_TARGET_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct target_options {
	pid_t pid;		  /* the live process; not used if `core` is set */
	uint64_t started;	  /* when `pid` started, as in struct process_stat; 0: any start time is accepted */
	const char *core;	  /* core file; NULL: the process `pid` */
	const char *executable;	  /* for a core: the path of the program that ran; NULL: use the path from the core */
	const char *ruby_version; /* for a core: Ruby's version, as the user gave it; NULL: not given */
	bool force;		  /* for a core: use `executable` even if it matches no mapped file */
	const char *offsets;	  /* layout file; NULL: search for a layout */
	bool nearest;		  /* if the target's release has no layout, use the nearest layout that fits */
	/* how many seconds rbdump may take until it has a result, not counting the unpacking of a core; 0: the default */
	unsigned int time_limit_s;
	bool locals, self; /* for a dump: whether to read the local variables and `self` of each frame */
};

#endif
