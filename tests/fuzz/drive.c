/*
 * The fuzz target without a fuzzer: seeds, then as many mutations of them as are asked for, the same ones each time. At
 * the end everything must have been reached that bytes can do to a stack, through each layout.
 *
 *   drive [RUNS [SEED]]       runs them; if one does not hold, it is in the file drive.failed, beside the program
 *   drive --seeds FOLDER      writes the seeds, one a file, to FOLDER/stacks and FOLDER/layouts, which are there
 *   drive --replay FILE…      runs files, and says what was found
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "layouts.h"
#include "locks.h"
#include "mutate.h"
#include "program.h"
#include "target.h"
#include "trace/wait_graph.h"

#define RUNS 200000u
#define SEED UINT64_C(0x5eed)

/* A run that takes longer is in an endless loop. */
#define RUN_SECONDS 60

/* What is fuzzed, for whoever finds it broken. */
static uint8_t input[2 * IMAGE_MAX];
static volatile size_t input_length;
static char failed_path[4096];

/* Of the layout that is being fuzzed. */
static struct program seeds[PROGRAM_MOMENTS];

static void fail(const char *what)
{
	fprintf(stderr, "drive: %s\n", what);
	abort();
}

/* Keeps the input: abort(2), sanitizers (with abort_on_error) and crashes come here. */
static void keep_input(int number)
{
	static const char note[] = "drive: what was run is kept: see --replay\n";
	int file = open(failed_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (file >= 0 && write(file, input, input_length) == (ssize_t)input_length)
		(void)!write(STDERR_FILENO, note, sizeof(note) - 1);
	signal(number, SIG_DFL);
	raise(number);
}

static void build_seeds(size_t index)
{
	for (size_t i = 0; i < PROGRAM_MOMENTS; i++) {
		program_build(layouts_get(index), index, i, &seeds[i]);
		if (seeds[i].length != seeds[0].length)
			fail("the heap is not the same at every moment");
	}
}

static void run(const uint8_t *image, size_t length, struct outcome *ret)
{
	if (image != input)
		memcpy(input, image, length);
	input_length = length;
	alarm(RUN_SECONDS);
	target_run(input, length, ret);
	alarm(0);
}

static void check_seed(size_t index, const struct program *seed)
{
	const char *version = layouts_get(index)->version;
	static struct outcome outcome;
	size_t moment = (size_t)(seed - seeds);

	run(seed->image, seed->length, &outcome);
	if (outcome.thread != REASON_NONE || !outcome.walked) {
		fprintf(stderr, "drive: %s, moment %zu: not complete: %s\n", version, moment,
			outcome.walked ? validate_reason_name(outcome.thread) : "no stack");
		abort();
	}
	if (outcome.deadlock != locks_are_complete(layouts_get(index))) {
		fprintf(stderr, "drive: %s, moment %zu: %s deadlock\n", version, moment, outcome.deadlock ? "a" : "no");
		abort();
	}
	for (size_t i = 0; i < seed->nr_names; i++) {
		char line[256];

		snprintf(line, sizeof(line), "%s\n", seed->names[i]);
		if (strstr(outcome.names, line))
			continue;
		fprintf(stderr, "drive: %s, moment %zu: no %sin:\n%s", version, moment, line, outcome.names);
		abort();
	}
}

/* ---- mutations */

struct counts {
	uint64_t complete, none, refused, facts, reads_max;
	uint64_t torn, torn_complete; /* mixes that were not changed besides */
	uint64_t waits[WAIT_SLEEP + 1], deadlocks;
	uint64_t reasons[REASONS], kinds[FRAME_UNREADABLE + 1], call_sites[CALL_SITE_CONTRADICTS + 1];
};

static void count_bits(uint64_t *counts, size_t size, uint32_t bits)
{
	for (size_t i = 0; i < size; i++)
		counts[i] += bits >> i & 1;
}

static void count(struct counts *counts, const struct outcome *outcome)
{
	if (outcome->walked && outcome->thread == REASON_NONE)
		counts->complete++;
	else if (outcome->none)
		counts->none++;
	else
		counts->refused++;
	count_bits(counts->reasons, REASONS, outcome->reasons);
	count_bits(counts->kinds, FRAME_UNREADABLE + 1, outcome->kinds);
	count_bits(counts->waits, WAIT_SLEEP + 1, outcome->waits);
	counts->deadlocks += outcome->deadlock;
	count_bits(counts->call_sites, CALL_SITE_CONTRADICTS + 1, outcome->call_sites);
	if (outcome->reads > counts->reads_max)
		counts->reads_max = outcome->reads;
}

static void run_once(uint64_t *state, struct counts *counts)
{
	static struct outcome outcome;
	const struct program *seed = &seeds[mutate_random(state) % PROGRAM_MOMENTS];
	uint64_t way = mutate_random(state) >> 32 & 15;

	if (way == 0) {
		/* Facts: the layout's byte stays among those that mean them. */
		memcpy(input, seed->image, 64);
		for (size_t i = 0; i < 64; i += 8) {
			uint64_t word = mutate_random(state) >> mutate_random(state) % 64;

			memcpy(input + i, &word, sizeof(word));
		}
		input[0] = (uint8_t)(IMAGE_FACTS + seed->image[0]);
		run(input, 64, &outcome);
		counts->facts++;
		return;
	}
	memcpy(input, seed->image, seed->length);
	if (way < 4) {
		const struct program *other = &seeds[mutate_random(state) % PROGRAM_MOMENTS];

		mutate_tear(seed->image, other->image, seed->length, state, input);
	}
	if (way != 1)
		mutate(input, seed->length, seed->objects, seed->nr_objects, state);
	/* The layout is this one's: the objects are. */
	input[0] = seed->image[0];
	run(input, seed->length, &outcome);
	count(counts, &outcome);
	if (way == 1) {
		counts->torn++;
		counts->torn_complete += outcome.thread == REASON_NONE;
	}
}

static void require_reached(uint64_t count, const char *what, const char *version)
{
	if (count > 0)
		return;
	fprintf(stderr, "drive: %s: never reached: %s\n", version, what);
	abort();
}

/* All that bytes alone can do. The others are those of a live process, or of whoever samples. */
static void check_reached(const struct counts *counts, const char *version)
{
	static const enum reason reachable[] = {
	    REASON_EC_UNREADABLE,     REASON_EC_FOREIGN, REASON_STACK_SIZE,	  REASON_CFP_OUTSIDE,
	    REASON_CFP_MISALIGNED,    REASON_TOO_DEEP,	 REASON_FRAME_UNREADABLE, REASON_EP_OUTSIDE,
	    REASON_ENV_UNREADABLE,    REASON_FRAME_KIND, REASON_NOT_CODE,	  REASON_CODE_UNREADABLE,
	    REASON_METHOD_UNREADABLE, REASON_NO_METHOD,	 REASON_METHOD_OTHER,	  REASON_NO_NAME,
	};
	static const char *const kinds[] = {
	    [FRAME_RUBY] = "Ruby code",
	    [FRAME_CFUNC] = "a C function",
	    [FRAME_HIDDEN] = "a hidden frame",
	    [FRAME_UNREADABLE] = "a frame that is refused",
	};
	static const char *const call_sites[] = {
	    [CALL_SITE_UNDECIDED] = "a call that decides nothing",
	    [CALL_SITE_AGREES] = "a call that agrees",
	    [CALL_SITE_CONTRADICTS] = "a call that contradicts",
	};

	require_reached(counts->complete, "complete", version);
	require_reached(counts->none, "no stack", version);
	for (size_t i = 0; i < sizeof(reachable) / sizeof(reachable[0]); i++)
		require_reached(counts->reasons[reachable[i]], validate_reason_name(reachable[i]), version);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		require_reached(counts->kinds[i], kinds[i], version);
	for (size_t i = 0; i < sizeof(call_sites) / sizeof(call_sites[0]); i++)
		require_reached(counts->call_sites[i], call_sites[i], version);
	for (int i = WAIT_MUTEX; i <= WAIT_JOIN; i++)
		require_reached(counts->waits[i], wait_kind_name((enum wait_kind)i), version);
	require_reached(counts->deadlocks, "a deadlock", version);
	require_reached(counts->waits[WAIT_MUTEX] - counts->deadlocks, "a Mutex without a deadlock", version);
}

static void print_counts(const struct counts *counts, const char *version)
{
	printf("%s: %llu complete, %llu without a stack, %llu neither (of %llu torn mixes, %llu), %llu of facts; at "
	       "most %llu reads\n   ",
	       version, (unsigned long long)counts->complete, (unsigned long long)counts->none,
	       (unsigned long long)counts->refused, (unsigned long long)counts->torn,
	       (unsigned long long)(counts->torn - counts->torn_complete), (unsigned long long)counts->facts,
	       (unsigned long long)counts->reads_max);
	for (size_t i = REASON_NONE + 1; i < REASONS; i++)
		if (counts->reasons[i] > 0)
			printf(" %s %llu", validate_reason_name((enum reason)i),
			       (unsigned long long)counts->reasons[i]);
	printf("; calls agree %llu, contradict %llu\n", (unsigned long long)counts->call_sites[CALL_SITE_AGREES],
	       (unsigned long long)counts->call_sites[CALL_SITE_CONTRADICTS]);
}

/* ---- layout files */

/* Writes a layout file and an image behind it to `input`. */
static void put_layout(const char *text, const struct program *seed)
{
	size_t length = strlen(text) + 1;

	if (length + seed->length > sizeof(input))
		fail("a layout file is too long");
	memcpy(input, text, length);
	memcpy(input + length, seed->image, seed->length);
	input_length = length + seed->length;
}

/*
 * Each enumerator in turn is what none may be that is shifted by, over stacks that contradict themselves: those are
 * read furthest. Chance does not come to each of them.
 */
static void drive_enumerators(size_t index, uint64_t *state)
{
	enum { TORN = 3, TRIES = 10000 };
	static const char kind[] = "\nenumerator ";
	static const char *const values[] = {"200", "-1"};
	static struct program torn[TORN];
	static struct outcome outcome;
	size_t nr_torn = 0;

	for (int tries = 0; nr_torn < TORN; tries++) {
		const struct program *seed = &seeds[mutate_random(state) % PROGRAM_MOMENTS];

		if (tries == TRIES)
			fail("no stack contradicts itself");
		torn[nr_torn].length = seed->length;
		mutate_tear(seed->image, seeds[mutate_random(state) % PROGRAM_MOMENTS].image, seed->length, state,
			    torn[nr_torn].image);
		run(torn[nr_torn].image, seed->length, &outcome);
		nr_torn += outcome.call_sites >> CALL_SITE_CONTRADICTS & 1;
	}
	for (const char *line = strstr(layouts_text(index), kind); line; line = strstr(line + 1, kind)) {
		const char *end = line + strcspn(line + 1, "\n") + 1, *value = memrchr(line, ' ', (size_t)(end - line));

		for (size_t i = 0; i < 2 * TORN; i++) {
			static char text[IMAGE_MAX];
			int before = (int)(value + 1 - layouts_text(index));

			snprintf(text, sizeof(text), "%.*s%s%s", before, layouts_text(index), values[i % 2], end);
			put_layout(text, &torn[i / 2]);
			alarm(RUN_SECONDS);
			target_run_layout(input, input_length, &outcome);
			alarm(0);
		}
	}
}

/* Changed layouts, with seeds that were made through the right one. */
static void drive_layouts(size_t index, uint64_t runs, uint64_t *state)
{
	static struct outcome outcome;
	static char text[IMAGE_MAX];
	static uint8_t torn[IMAGE_MAX];
	uint64_t accepted = 0, walked = 0, complete = 0;
	size_t at;

	put_layout(layouts_text(index), &seeds[0]);
	if (!target_run_layout(input, input_length, &outcome) || outcome.thread != REASON_NONE || !outcome.walked)
		fail("a layout without its digest is another");
	for (uint64_t i = 0; i < runs; i++) {
		snprintf(text, sizeof(text) - MUTATE_LAYOUT_ROOM, "%s", layouts_text(index));
		mutate_layout(text, state);
		put_layout(text, &seeds[mutate_random(state) % PROGRAM_MOMENTS]);
		/* Whatever reads further where a stack contradicts itself does so in a torn one. */
		at = strlen(text) + 1;
		mutate_tear(input + at, seeds[mutate_random(state) % PROGRAM_MOMENTS].image, seeds[0].length, state,
			    torn);
		memcpy(input + at, torn, seeds[0].length);
		alarm(RUN_SECONDS);
		if (target_run_layout(input, input_length, &outcome))
			accepted++;
		alarm(0);
		walked += outcome.walked;
		complete += outcome.walked && outcome.thread == REASON_NONE;
	}
	printf("    %llu changed layouts: %llu accepted, by %llu of them a stack was found, by %llu a complete one\n",
	       (unsigned long long)runs, (unsigned long long)accepted, (unsigned long long)walked,
	       (unsigned long long)complete);
	if (accepted == 0 || accepted == runs || walked == 0 || complete == walked)
		fail("changed layouts are all the same");
}

static int drive(uint64_t runs, uint64_t seed)
{
	struct timespec begin, end;
	uint64_t state = seed;

	signal(SIGABRT, keep_input);
	signal(SIGSEGV, keep_input);
	signal(SIGALRM, keep_input);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (size_t index = 0; index < layouts_count(); index++) {
		struct counts counts = {0};

		build_seeds(index);
		for (size_t i = 0; i < PROGRAM_MOMENTS; i++)
			check_seed(index, &seeds[i]);
		for (uint64_t i = 0; i < runs / layouts_count(); i++)
			run_once(&state, &counts);
		print_counts(&counts, layouts_get(index)->version);
		check_reached(&counts, layouts_get(index)->version);
		drive_enumerators(index, &state);
		drive_layouts(index, runs / layouts_count() / 16, &state);
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%llu runs from seed %#llx in %.1f s: all held\n", (unsigned long long)runs, (unsigned long long)seed,
	       (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9);
	return EXIT_SUCCESS;
}

/* ---- files */

static void write_file(const char *folder, const char *kind, size_t index, size_t moment, const void *bytes,
		       size_t length)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s/%s-%zu", folder, kind, layouts_get(index)->version, moment);
	file = fopen(path, "we");
	if (file && fwrite(bytes, 1, length, file) == length && fclose(file) == 0)
		return;
	fprintf(stderr, "drive: %s: %s\n", path, strerror(errno));
	exit(EXIT_FAILURE);
}

static int write_seeds(const char *folder)
{
	for (size_t index = 0; index < layouts_count(); index++) {
		build_seeds(index);
		for (size_t i = 0; i < PROGRAM_MOMENTS; i++) {
			write_file(folder, "stacks", index, i, seeds[i].image, seeds[i].length);
			put_layout(layouts_text(index), &seeds[i]);
			write_file(folder, "layouts", index, i, input, input_length);
		}
	}
	return EXIT_SUCCESS;
}

static int replay(char **paths)
{
	for (; *paths; paths++) {
		static struct outcome outcome;
		FILE *file = fopen(*paths, "re");
		size_t length;

		if (!file) {
			fprintf(stderr, "drive: %s: %s\n", *paths, strerror(errno));
			return EXIT_FAILURE;
		}
		length = fread(input, 1, sizeof(input), file);
		fclose(file);
		/* A layout file begins with its name: as an image, that would be a stack of 0x6462 bytes. */
		if (length > 0 && input[0] == 'r')
			target_run_layout(input, length, &outcome);
		else
			run(input, length, &outcome);
		printf("%s: %s, %llu reads, %zu frames\n%s", *paths,
		       outcome.thread == REASON_NONE ? "complete" : validate_reason_name(outcome.thread),
		       (unsigned long long)outcome.reads, outcome.nr_frames, outcome.names);
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
