/*
 * Reads files that `rbdump heap --json` has written. A file can be damaged or hostile: all that it says is checked.
 */
#ifndef RBDUMP_HISTOGRAM_FILE_H
#define RBDUMP_HISTOGRAM_FILE_H

#include "base/error.h"
#include "heap/histogram.h"

struct json_t;

/*
 * Reads a file, and checks that it has an array of classes. The caller frees *ret with json_decref(). Fails if the file
 * cannot be read, or is not such a file.
 */
struct error *histogram_file_read(const char *file, struct json_t **ret);

/* Returns the error that a file was not written by `rbdump heap --json`. */
struct error *histogram_file_wrong(const char *file, const char *why);

/* A number of the file; 0 if the file does not have it. A number that is too large for any heap is reduced to a limit. */
uint64_t histogram_file_count(const struct json_t *object, const char *key);

/* The doubts of the file, as bits: 1 << enum heap_doubt. */
unsigned int histogram_file_doubts(const struct json_t *root);

/* The process that the file is about. */
pid_t histogram_file_pid(const struct json_t *root);

/*
 * Adds the paths of a class of the file to a row. Returns false if there is not enough memory.
 *   before  the file is the earlier one
 */
bool histogram_file_add_paths(const struct json_t *object, bool before, struct heap_row *row);

/*
 * Makes a histogram from the content of a file. The texts of the histogram, other than those of rows, belong to `root`.
 *   file  for messages
 *   root  as read by histogram_file_read()
 * The caller always calls histogram_clear(). Fails if there is not enough memory, or if an element of the classes is wrong.
 */
struct error *histogram_file_make(const char *file, const struct json_t *root, struct histogram *ret);

#endif
