/*
 * The file of a recording (doc/recording.md): zstd frames, of which each ends with a whole record, so that what was
 * written before rbdump, or the machine, died can be read. Unpacked, they are a line that names the format, and
 * records: a byte that says of what, the length of what follows as a varint, and so many bytes.
 *
 * Varints are little-endian base 128; signed ones are zigzag; a string is its length + 1 and its bytes, 0 if there is
 * none. Times are in microseconds since the beginning that the head tells. Ids of functions, frames, nodes and threads
 * are those of one process, and begin with 0 again after RECORD_RESET.
 */
#ifndef RBDUMP_RECORDING_FORMAT_H
#define RBDUMP_RECORDING_FORMAT_H

#define RECORDING_MAGIC "rbdump recording 1\n"

enum record {
	RECORD_HEAD = 'H',     /* JSON: of the whole */
	RECORD_PROCESS = 'P',  /* process, pid, parent, started, begin, command, ruby_version, ruby_description,
				  layout_releases;  again: replaces */
	RECORD_THREAD = 'T',   /* process, id, tid, ractor, main, name; again: replaces */
	RECORD_FUNCTION = 'F', /* process, kind, first line (signed), name, label, path, absolute path */
	RECORD_FRAMES = 'L',   /* process, then for each: function, line (signed) */
	RECORD_NODES = 'N',    /* process, then for each: how many before itself its parent is, frame */
	RECORD_RUNS = 'R',     /* process, then rows */
	RECORD_RESET = 'X',    /* process: what it had is not referred to any more */
	RECORD_COUNTS = 'C', /* process, time, samples, complete, truncated, torn, unreadable, late, skipped: so far */
	RECORD_END = 'E',    /* process, time, whether it is known how it ended, status */
	RECORD_FINISH = 'Z', /* time: the recording was finished */
};

/*
 * A row of RECORD_RUNS: how much after the end of the thread's last run it starts (signed), thread, weight, count, a
 * byte of state | verdict << 4, node; of a blocked one the system call + 1.
 */

/* The longest record that is read. */
#define RECORD_LENGTH_MAX (64u << 20)

/* The deepest stack that is read: twice what a sampler walks. */
#define RECORDING_DEPTH_MAX 131072u

/* What all recordings that are read together may have at most. doc/recording.md says the same numbers. */
#define RECORDING_PROCESSES_MAX 4194304u
#define RECORDING_THREADS_MAX	16777216u

#endif
