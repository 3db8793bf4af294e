/*
 * The result of a look at a heap: counts and bytes, by class and type. If the process runs during the look, the look is
 * a pair of readings that are compared. Otherwise, the look is one reading.
 */
#ifndef RBDUMP_HISTOGRAM_H
#define RBDUMP_HISTOGRAM_H

#include <stdio.h>
#include <sys/types.h>

#include "heap/heap_count.h"

/* The maximum number of paths that are kept for one class. In a comparison of two looks, this number is doubled. */
#define HISTOGRAM_PATHS_MAX 200

/* The maximum number of sentences that graph_look_doubts() returns. */
#define HEAP_PATH_DOUBTS 5

/* How a heap was read. */
enum heap_mode {
	HEAP_UNPAUSED, /* the process ran while its heap was read */
	HEAP_STOPPED,  /* the process was stopped */
	HEAP_CORE,     /* the heap of a core */
};

/* What makes numbers uncertain. */
enum heap_doubt {
	HEAP_COLLECTED,	      /* unpaused: during every look, a collection began or was already marking */
	HEAP_UNTOLD,	      /* unpaused: this Ruby, or the layout, does not show when a collection begins */
	HEAP_BLIND,	      /* in some or all pages, it is not known which objects are dead */
	HEAP_MARKING,	      /* a collection is still marking, so it is not known yet which objects are dead */
	HEAP_TOO_MANY,	      /* more kinds than groups (census.h): the classes of some objects are not known */
	HEAP_PARTIAL,	      /* unpaused: the heap is too large to compare all of it */
	HEAP_THREADS_RUNNING, /* stopped: a thread could not be stopped */
	HEAP_INTERRUPTED,     /* the user has ended the reading */
	HEAP_DOUBTS
};

/* The name of a doubt in JSON. */
const char *histogram_doubt_name(enum heap_doubt doubt);

/*
 * histogram_doubt_text() returns a sentence about a doubt, for people. histogram_mode_text() returns how a heap was
 * read: "read while it ran", "stopped" or "core".
 */
const char *histogram_doubt_text(enum heap_doubt doubt);
const char *histogram_mode_text(enum heap_mode mode);

/* A way in which objects of a class are kept alive. */
struct heap_path {
	char *text; /* its steps (class_paths.h) */
	uint64_t objects;
	uint64_t before; /* how many objects have a path with these steps in the earlier histogram */
	/*
	 * The earlier histogram does not have this path. It has only the paths with the most objects, so this path may
	 * have been left out. In this case, `before` is the smaller of two numbers: the greatest possible number, and
	 * `objects`.
	 */
	bool before_not_known;
};

struct heap_row {
	char *name;	  /* of the class, or of the kind of internal objects */
	const char *type; /* for example "T_STRING"; "?": this Ruby has no type with this number */
	uint64_t objects, low, high;
	uint64_t slot_bytes, owned_bytes, inexact;
	uint64_t old, shady, pinned, dead;
	struct {
		uint64_t objects, slot_bytes, owned_bytes;
	} before; /* the numbers of this row in the earlier histogram */
	/*
	 * If the earlier histogram may lack paths of this row, this is the smallest number of objects of any path of this
	 * row in the earlier histogram. Otherwise 0.
	 */
	uint64_t least_before;
	/*
	 * The paths. The paths with the most objects come first; if the earlier histogram has paths, too, the paths that
	 * grew most come first. A row may have no paths.
	 */
	struct heap_path *paths;
	size_t nr_paths, paths_capacity;
};

struct histogram {
	pid_t pid;
	const char *core; /* the path of the core file; NULL if there is none */
	const char *version, *description;
	const char *layout_releases; /* the releases that the layout is for; NULL: it is for this release */
	enum heap_mode mode;
	double seconds;	    /* how long it took to read the heap */
	double pause_ms;    /* how long the process was stopped */
	unsigned int looks; /* unpaused: how many pairs of readings there were */
	/*
	 * Why the counts, or their ranges, are not certain; 0: they are certain. If the process was not stopped, a range
	 * that is not certain counts only objects that at least one of the two readings found.
	 */
	unsigned int doubts; /* bits, 1 << enum heap_doubt */
	bool incomplete;     /* part of the heap could not be read */
	struct heap_totals totals;
	struct heap_row *rows; /* first the row with the most bytes; if `has_before` is set, the one that grew most */
	size_t nr_rows, rows_capacity;
	bool no_ages, no_shady; /* this Ruby, or the layout, does not show which objects are old, or which are shady */
	bool has_before;	/* `before` of each row is set; the next three members describe the earlier histogram */
	pid_t pid_before;
	unsigned int doubts_before;
	bool incomplete_before;
	bool has_paths;	       /* rbdump has searched for paths */
	bool has_paths_before; /* the earlier histogram has paths, too: `before` of each path is set */
	/* Sentences that say why paths can be wrong or missing. */
	const char *path_doubts[HEAP_PATH_DOUBTS];
	size_t nr_path_doubts;
};

/*
 * Makes the rows from a census. Objects of the same type share a row if their classes have the same name. The names of
 * the classes are read during this call. So if a class was freed after its objects were counted, its row has the name
 * "(unreadable class)". If another class is already at the address of the freed class, the row has the name of that
 * other class.
 *   ruby      for the names of the classes
 *   old_stay  as for heap_count_range(): no old object was freed between the two readings
 * Returns false if there is not enough memory.
 */
bool histogram_make(const struct ruby *ruby, const struct heap_count *count, bool old_stay, struct histogram *ret);
void histogram_clear(struct histogram *histogram);

/*
 * Adds a row. The histogram owns the name of the row from now on. Returns false, and frees the name, if there is not enough
 * memory.
 */
bool histogram_add(struct histogram *histogram, const struct heap_row *row);

/* Adds the numbers of a row to those of another row. No sum is greater than SUM_MAX (heap/sums.h). */
void histogram_merge(struct heap_row *into, const struct heap_row *row);

/*
 * Adds numbers of objects to one path of a row. `text` contains the steps of this path. Makes the path if the row does not
 * have it. But if the row already has very many paths, makes no path, and adds nothing. Returns false if there is not
 * enough memory.
 *   text     malloc'ed; the caller must not use or free it after this call
 *   objects  how many objects are added
 *   before   how many objects of the earlier histogram are added
 */
bool histogram_add_path(struct heap_row *row, char *text, uint64_t objects, uint64_t before);

/*
 * Sorts the paths of all rows, and keeps the paths with the most objects. But if the earlier histogram has paths, too, keeps
 * the paths that have grown most, and also sorts the rows by the estimated growth of the bytes that their paths keep alive:
 * the row with the largest growth comes first. Garbage that was not freed yet has no paths, so it does not hide a leak.
 */
void histogram_sort_paths(struct histogram *histogram);

/*
 * How many more objects the paths of a row keep alive than in the earlier histogram. Paths that keep fewer objects alive
 * than before do not count.
 */
uint64_t histogram_kept_growth(const struct heap_row *row);

/* The length of the array for histogram_types(). It is greater than the number of types. */
#define HISTOGRAM_TYPES 64

/*
 * Adds up the rows of each type. `ret` receives one row for each type, with an empty name and without paths. The rows
 * with the most bytes come first. Returns the number of rows in `ret`.
 */
size_t histogram_types(const struct histogram *histogram, struct heap_row ret[HISTOGRAM_TYPES]);

/* Compares two rows (struct heap_row) by how many bytes they have grown: the row that grew more comes first. */
int histogram_compare_growth(const void *a, const void *b);

/* Compares two rows by name, and then by type. Returns a number as strcmp(3) does. */
int histogram_compare_names(const struct heap_row *a, const struct heap_row *b);

/*
 * Writes a histogram.
 *   rows  the maximum number of rows that are written; 0: all. If `rows` is not 0, a comparison omits the rows that
 *         have not changed. If rows are omitted, one more row is written, with their sum
 */
void histogram_text(const struct histogram *histogram, size_t rows, FILE *stream);

/* Writes a histogram as JSON. Returns false if there is not enough memory, or if the stream fails. */
bool histogram_json(const struct histogram *histogram, FILE *stream);

#endif
