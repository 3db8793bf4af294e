/*
 * Reads files that `rbdump heap --json` has written. A file can be damaged or hostile, so all its content is checked.
 */
#ifndef RBDUMP_HISTOGRAM_FILE_H
#define RBDUMP_HISTOGRAM_FILE_H

#include "base/error.h"
#include "heap/histogram.h"

struct json_t;

/*
 * Reads a file, and checks that it has an array of classes. The caller frees *ret with json_decref(). Fails if the file
 * cannot be read, or if `rbdump heap --json` has not written it.
 */
struct error *histogram_file_read(const char *file, struct json_t **ret);

/* Returns an error that says that a file was not written by `rbdump heap --json`. */
struct error *histogram_file_wrong(const char *file, const char *why);

/*
 * Returns the number that `key` has in a JSON object of the file; 0 if there is no such number. A number that is too large
 * for any heap is reduced to a limit.
 */
uint64_t histogram_file_count(const struct json_t *object, const char *key);

/* The doubts that the file contains, as bits: 1 << enum heap_doubt. */
unsigned int histogram_file_doubts(const struct json_t *root);

/* The pid of the process whose heap the file describes. */
pid_t histogram_file_pid(const struct json_t *root);

/*
 * Adds the paths of a class in the file to a row. Returns false if there is not enough memory.
 *   object  the element of the array of classes that contains the paths
 *   before  whether the file has the earlier of the two histograms
 */
bool histogram_file_add_paths(const struct json_t *object, bool before, struct heap_row *row);

/*
 * Makes a histogram from the content of a file. `root` owns the texts of the histogram, except the texts of its rows.
 *   file  for messages
 *   root  as read by histogram_file_read()
 * The caller always calls histogram_clear(). Fails if there is not enough memory, or if an element of the array of
 * classes is wrong.
 */
struct error *histogram_file_make(const char *file, const struct json_t *root, struct histogram *ret);

#endif
