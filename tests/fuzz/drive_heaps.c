/*
 * The fuzz target for heaps without a fuzzer: seeds, then as many mutations of them as are asked for, the same ones each
 * time.
 *
 *   drive_heaps [RUNS [SEED]]     runs them; if one does not hold, it is in the file drive_heaps.failed, beside the program
 *   drive_heaps --seeds FOLDER    writes the seeds, one a file, to FOLDER/heaps, which is there
 *   drive_heaps --replay FILE…    runs files, and says what was found
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "heap_seed.h"
#include "heaps.h"
#include "layouts.h"
#include "mutate.h"

#define RUNS 4000u
/* So many reach all that they should. */
#define RUNS_MIN 500u
#define SEED	 UINT64_C(0x5eed)

/* A run that takes longer is in an endless loop. */
#define RUN_SECONDS 60

static uint8_t input[HEAP_IMAGE_MAX];
static volatile size_t input_length;
static char failed_path[4096];
static struct heap_seed seed;

/* Keeps the input: abort(2), sanitizers (with abort_on_error) and crashes come here. */
static void keep_input(int number)
{
	static const char note[] = "drive_heaps: what was run is kept: see --replay\n";
	int file = open(failed_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (file >= 0 && write(file, input, input_length) == (ssize_t)input_length)
		(void)!write(STDERR_FILENO, note, sizeof(note) - 1);
	signal(number, SIG_DFL);
	raise(number);
}

static void run(struct heaps_outcome *ret)
{
	alarm(RUN_SECONDS);
	heaps_run(input, input_length, ret);
	alarm(0);
}

static void take_seed(void)
{
	memcpy(input, seed.image, seed.length);
	input_length = seed.length;
}

static void print_outcome(const char *name, const struct heaps_outcome *outcome)
{
	printf("%s: %s, %" PRIu64 " slots, %" PRIu64 " objects, %" PRIu64
	       " of them with a size; %zu lines with %" PRIu64 " references%s%s; %" PRIu64 " reads\n",
	       name, outcome->complete ? "complete" : "not complete", outcome->slots, outcome->objects, outcome->sized,
	       outcome->lines, outcome->references, outcome->found ? ", found" : "", outcome->printed ? ", a tree" : "",
	       outcome->reads);
}

/* Whether all that is in a seed was found. */
static bool is_right(const struct layout *layout, uint8_t command, const struct heaps_outcome *outcome)
{
	switch (command) {
	case HEAPS_COUNT:
		return outcome->complete && outcome->objects == seed.nr_objects && outcome->sized > seed.nr_objects / 2;
	case HEAPS_OBJSPACE:
		return outcome->lines == seed.nr_objects && outcome->references > 2 * seed.nr_objects && outcome->found;
	case HEAPS_DOMINATORS:
		return outcome->printed;
	default:
		/* Up to 3.2, the classes of the seeds have no names. */
		return outcome->printed == layout_has(layout, F_class_slot_classpath);
	}
}

/* Runs a seed through each command, also if the variables of Ruby must be searched for. */
static void check_seed(const struct layout *layout)
{
	for (unsigned int choice = 0; choice <= (HEAPS_RUNS | HEAPS_STRIPPED | HEAPS_COMMAND); choice++) {
		struct heaps_outcome outcome;

		take_seed();
		input[1] = (uint8_t)choice;
		run(&outcome);
		if (is_right(layout, choice & HEAPS_COMMAND, &outcome))
			continue;
		print_outcome(layout->version, &outcome);
		fprintf(stderr, "drive_heaps: a seed with %zu objects is not what it should be\n", seed.nr_objects);
		abort();
	}
}

struct counts {
	uint64_t complete, incomplete, lines, no_lines, found, trees, no_trees, reads_max;
};

static void count(struct counts *counts, uint8_t command, const struct heaps_outcome *outcome)
{
	if (command == HEAPS_COUNT)
		(*(outcome->complete ? &counts->complete : &counts->incomplete))++;
	else if (command == HEAPS_OBJSPACE)
		(*(outcome->lines > 0 ? &counts->lines : &counts->no_lines))++;
	else
		(*(outcome->printed ? &counts->trees : &counts->no_trees))++;
	counts->found += outcome->found;
	if (outcome->reads > counts->reads_max)
		counts->reads_max = outcome->reads;
}

static void run_once(struct counts *counts, uint64_t *state)
{
	struct heaps_outcome outcome;

	take_seed();
	mutate(input, input_length, seed.addresses.objects, seed.addresses.nr_objects, state);
	/* The layout is this one's: the objects are. */
	input[0] = seed.image[0];
	input[1] = (uint8_t)(mutate_random(state) >> 32);
	run(&outcome);
	count(counts, input[1] & HEAPS_COMMAND, &outcome);
}

/* Of many runs, some are of each kind. */
static bool all_reached(const struct counts *counts)
{
	return counts->complete > 0 && counts->incomplete > 0 && counts->lines > 0 && counts->no_lines > 0 &&
	       counts->found > 0 && counts->trees > 0 && counts->no_trees > 0;
}

static int drive(uint64_t runs, uint64_t state)
{
	struct counts counts = {0};
	struct timespec begin, end;

	signal(SIGABRT, keep_input);
	signal(SIGSEGV, keep_input);
	signal(SIGALRM, keep_input);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (size_t index = 0; index < layouts_count(); index++) {
		heap_seed_build(layouts_get(index), index, &seed);
		check_seed(layouts_get(index));
		for (uint64_t i = 0; i < runs / layouts_count(); i++)
			run_once(&counts, &state);
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%" PRIu64 " runs in %.1f s: counts: %" PRIu64 " complete, %" PRIu64 " not; lines: %" PRIu64
	       ", none: %" PRIu64 ", %" PRIu64 " with the object; trees: %" PRIu64 ", none: %" PRIu64
	       "; at most %" PRIu64 " reads\n",
	       runs, (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9, counts.complete,
	       counts.incomplete, counts.lines, counts.no_lines, counts.found, counts.trees, counts.no_trees,
	       counts.reads_max);
	if (runs < RUNS_MIN || all_reached(&counts))
		return EXIT_SUCCESS;
	fputs("drive_heaps: never reached: one of these\n", stderr);
	abort();
}

static int write_seeds(const char *folder)
{
	for (size_t index = 0; index < layouts_count(); index++) {
		char path[4096];
		FILE *file;

		heap_seed_build(layouts_get(index), index, &seed);
		/* Each command has the seeds of some layouts; the fuzzer mixes them. */
		seed.image[1] = (uint8_t)(index * HEAPS_OBJSPACE & HEAPS_COMMAND);
		snprintf(path, sizeof(path), "%s/heaps/%s", folder, layouts_get(index)->version);
		file = fopen(path, "we");
		if (!file || fwrite(seed.image, 1, seed.length, file) != seed.length || fclose(file) != 0) {
			fprintf(stderr, "drive_heaps: %s: %s\n", path, strerror(errno));
			return EXIT_FAILURE;
		}
	}
	return EXIT_SUCCESS;
}

static int replay(char **paths)
{
	for (; *paths; paths++) {
		FILE *file = fopen(*paths, "re");
		uint8_t choice;

		if (!file) {
			fprintf(stderr, "drive_heaps: %s: %s\n", *paths, strerror(errno));
			return EXIT_FAILURE;
		}
		input_length = fread(input, 1, sizeof(input), file);
		fclose(file);
		choice = input_length > 1 ? input[1] & (uint8_t)~HEAPS_COMMAND : 0;
		for (unsigned int command = 0; command <= HEAPS_COMMAND; command += HEAPS_OBJSPACE) {
			struct heaps_outcome outcome;

			input[1] = (uint8_t)(choice | command);
			run(&outcome);
			print_outcome(*paths, &outcome);
		}
	}
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	uint64_t state = argc > 2 ? strtoull(argv[2], NULL, 0) : SEED;

	snprintf(failed_path, sizeof(failed_path), "%s.failed", argv[0]);
	if (argc == 3 && strcmp(argv[1], "--seeds") == 0)
		return write_seeds(argv[2]);
	if (argc > 2 && strcmp(argv[1], "--replay") == 0)
		return replay(argv + 2);
	return drive(argc > 1 ? strtoull(argv[1], NULL, 10) : RUNS, state != 0 ? state : SEED);
}
