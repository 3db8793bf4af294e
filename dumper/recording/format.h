/*
 * The file format of a recording (doc/recording.md). The file consists of zstd frames. No record is split between two
 * zstd frames. If rbdump is killed or the machine crashes, all zstd frames that are complete in the file can still be
 * read. The decompressed data is a line that names the format, followed by records. A record consists of a byte for its
 * kind, the length of its payload as a varint, and the payload.
 *
 * Varints are little-endian base 128; signed varints are zigzag-encoded. A string is written as its length + 1,
 * followed by its bytes. A missing string is written as 0. RECORD_HEAD contains the start time of the recording. The
 * field `started` of RECORD_PROCESS is in clock ticks since boot. All other times are in microseconds since the start
 * time of the recording. Each process has its own ids for functions, stack frames, nodes, threads and wakers. The ids
 * start at 0. Node 0 is never written, so the first node that is written has the id 1. After the RECORD_RESET of a
 * process, the ids of this process start again in the same way.
 */
#ifndef RBDUMP_RECORDING_FORMAT_H
#define RBDUMP_RECORDING_FORMAT_H

#define RECORDING_MAGIC "rbdump recording 1\n"

enum record {
	RECORD_HEAD = 'H', /* JSON about the whole recording */
	/*
	 * fields: process, pid, parent, started, begin, command, ruby_version, ruby_description, layout_releases,
	 * cgroup, mode. A later record about the same process replaces this record.
	 */
	RECORD_PROCESS = 'P',
	/*
	 * fields: process, id, tid, ractor, main, name, serial. A later record about the same thread replaces this
	 * record.
	 */
	RECORD_THREAD = 'T',
	RECORD_FUNCTION = 'F', /* fields: process, kind, first line (signed), name, label, path, absolute path */
	RECORD_FRAMES = 'L',   /* fields: process; then for each stack frame: its function and its line (signed) */
	RECORD_NODES = 'N',    /* fields: process; then for each node: its id minus its parent's id, and its frame */
	RECORD_WAKER = 'W',    /* fields: process, the waker's pid, the waker's tid, the name of the waker's process */
	RECORD_SPANS = 'R',    /* fields: process; then rows (see below) */
	RECORD_RESET = 'X',    /* fields: process. After this record, the process's ids start again (see above). */
	/* fields: process, time, counts so far (samples, complete, truncated, torn, unreadable, late, missed,
	   skipped) */
	RECORD_COUNTS = 'C',
	/* fields: process, time, whether the exit status is known, exit status (as waitpid() reports it) */
	RECORD_END = 'E',
	RECORD_FINISH = 'Z', /* field: time at which the recording was finished */
};

/*
 * A row of RECORD_SPANS has these fields: the span's start minus the end of the thread's previous span (signed),
 * thread, weight, count, a byte (state | verdict << 4), node. If the state is SAMPLE_BLOCKED, the row has one more
 * number: 1 + the number of the system call, or 0 if the system call is not known. If the bit RECORDING_WAKER is set in
 * the byte with the state, the row ends with one more number: the id of the waker (the thread that ended the wait). If
 * the bit RECORDING_ESTIMATED is set in the byte with the state, the stack was not copied during this span, but was
 * chosen from stacks that were copied at other times (sampling/time_line.h).
 */
#define RECORDING_WAKER	    0x40u
#define RECORDING_ESTIMATED 0x80u

/* The longest record that a reader accepts, in bytes. */
#define RECORD_LENGTH_MAX (64u << 20)

/*
 * The deepest stack that a reader accepts, in frames. A sampler never reads more than RECORDING_DEPTH_MAX / 2 Ruby
 * frames of a stack.
 */
#define RECORDING_DEPTH_MAX 131072u

/* The highest number of processes that a reader accepts in each recording (see doc/recording.md). */
#define RECORDING_PROCESSES_MAX 4194304u

/*
 * The highest number of threads that a reader accepts, in all recordings that are read together (see doc/recording.md).
 */
#define RECORDING_THREADS_MAX 16777216u

#endif
