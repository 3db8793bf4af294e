/*
 * The fuzz target for recordings without a fuzzer: seeds, then as many mutations of them as are asked for, the same
 * ones each time.
 *
 *   drive_recordings [RUNS [SEED]]     runs them; if one does not hold, it is in the file drive_recordings.failed,
 *                                      beside the program
 *   drive_recordings --seeds FOLDER    writes the seeds, one a file, to FOLDER/recordings, which is there
 *   drive_recordings --replay FILE…    runs files, in each format, and says what was found
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mutate.h"
#include "recordings.h"
#include "records.h"

#define RUNS 4000u
/* So many reach all that they should. */
#define RUNS_MIN 500u
#define SEED	 UINT64_C(0x5eed)

/* A run that takes longer is in an endless loop. */
#define RUN_SECONDS 60

/* There are so many ways to write one. */
#define FORMATS 128u

static uint8_t input[RECORDS_MAX];
static volatile size_t input_length;
static char failed_path[4096];

/* Keeps the input: abort(2), sanitizers (with abort_on_error) and crashes come here. */
static void keep_input(int number)
{
	static const char note[] = "drive_recordings: what was run is kept: see --replay\n";
	int file = open(failed_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (file >= 0 && write(file, input, input_length) == (ssize_t)input_length)
		(void)!write(STDERR_FILENO, note, sizeof(note) - 1);
	signal(number, SIG_DFL);
	raise(number);
}

static void run(unsigned int format, struct recordings_outcome *ret)
{
	alarm(RUN_SECONDS);
	recordings_run(input, input_length, format, ret);
	alarm(0);
}

static void fail(const char *what)
{
	fprintf(stderr, "drive_recordings: %s\n", what);
	abort();
}

/* What is in the seeds is all there. */
static void check_seeds(void)
{
	static const struct recordings_outcome expected[RECORDS_SEEDS] = {
	    {.finished = true,
	     .nr_processes = 1,
	     .nr_threads = 4,
	     .nr_spans = 60,
	     .merged_processes = 1,
	     .merged_threads = 6},
	    {.finished = true,
	     .nr_processes = 3,
	     .nr_threads = 12,
	     .nr_spans = 180,
	     .merged_processes = 3,
	     .merged_threads = 18},
	    {.nr_processes = 1, .nr_threads = 4, .nr_spans = 60, .merged_processes = 1, .merged_threads = 6},
	};

	for (size_t i = 0; i < RECORDS_SEEDS; i++) {
		struct recordings_outcome outcome;

		input_length = records_seed(i, input);
		for (unsigned int format = 0; format < FORMATS; format++)
			run(format, &outcome);
		if (outcome.refused || outcome.damaged || outcome.finished != expected[i].finished ||
		    outcome.nr_processes != expected[i].nr_processes || outcome.nr_threads != expected[i].nr_threads ||
		    outcome.nr_spans != expected[i].nr_spans ||
		    outcome.merged_processes != expected[i].merged_processes ||
		    outcome.merged_threads != expected[i].merged_threads)
			fail("a seed is not what it should be");
	}
}

static int drive(uint64_t runs, uint64_t seed)
{
	uint64_t state = seed, refused = 0, damaged = 0, finished = 0, unfinished = 0, with_spans = 0;
	struct timespec begin, end;

	signal(SIGABRT, keep_input);
	signal(SIGSEGV, keep_input);
	signal(SIGALRM, keep_input);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	check_seeds();
	for (uint64_t i = 0; i < runs; i++) {
		struct recordings_outcome outcome;

		input_length = records_seed(mutate_random(&state) % RECORDS_SEEDS, input);
		input_length = records_mutate(input, input_length, sizeof(input), &state);
		run((unsigned int)(mutate_random(&state) >> 32), &outcome);
		refused += outcome.refused;
		damaged += outcome.damaged;
		finished += outcome.finished;
		unfinished += !outcome.refused && !outcome.damaged && !outcome.finished;
		with_spans += outcome.damaged && outcome.nr_spans > 0;
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%llu runs from seed %#llx in %.1f s: %llu refused, %llu damaged (%llu of them after some spans), %llu "
	       "finished, %llu not\n",
	       (unsigned long long)runs, (unsigned long long)seed,
	       (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9,
	       (unsigned long long)refused, (unsigned long long)damaged, (unsigned long long)with_spans,
	       (unsigned long long)finished, (unsigned long long)unfinished);
	if (runs >= RUNS_MIN &&
	    (refused == 0 || with_spans == 0 || with_spans == damaged || finished == 0 || unfinished == 0))
		fail("never reached: one of these");
	return EXIT_SUCCESS;
}

static int write_seeds(const char *folder)
{
	for (size_t i = 0; i < RECORDS_SEEDS; i++) {
		char path[4096];
		FILE *file;

		snprintf(path, sizeof(path), "%s/recordings/%zu", folder, i);
		input_length = records_seed(i, input);
		file = fopen(path, "we");
		if (!file || fwrite(input, 1, input_length, file) != input_length || fclose(file) != 0) {
			fprintf(stderr, "drive_recordings: %s: %s\n", path, strerror(errno));
			return EXIT_FAILURE;
		}
	}
	return EXIT_SUCCESS;
}

static int replay(char **paths)
{
	for (; *paths; paths++) {
		struct recordings_outcome outcome = {0};
		FILE *file = fopen(*paths, "re");

		if (!file) {
			fprintf(stderr, "drive_recordings: %s: %s\n", *paths, strerror(errno));
			return EXIT_FAILURE;
		}
		input_length = fread(input, 1, sizeof(input), file);
		fclose(file);
		for (unsigned int format = 0; format < FORMATS; format++)
			run(format, &outcome);
		printf("%s: %s, %zu processes, %zu threads, %zu spans\n", *paths,
		       outcome.refused	  ? "refused"
		       : outcome.damaged  ? "damaged"
		       : outcome.finished ? "finished"
					  : "not finished",
		       outcome.nr_processes, outcome.nr_threads, outcome.nr_spans);
	}
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : SEED;

	snprintf(failed_path, sizeof(failed_path), "%s.failed", argv[0]);
	if (argc == 3 && strcmp(argv[1], "--seeds") == 0)
		return write_seeds(argv[2]);
	if (argc > 2 && strcmp(argv[1], "--replay") == 0)
		return replay(argv + 2);
	return drive(argc > 1 ? strtoull(argv[1], NULL, 10) : RUNS, seed != 0 ? seed : SEED);
}
