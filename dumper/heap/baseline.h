/*
 * Compares a histogram with an earlier histogram, which `rbdump heap --json` has written to a file.
 */
#ifndef RBDUMP_BASELINE_H
#define RBDUMP_BASELINE_H

#include "base/error.h"
#include "heap/histogram.h"

/*
 * Reads the file, and sets `before` of each row of the histogram. If the file has paths, also sets `before` of the paths of
 * each row. Adds a row for each class that only the earlier histogram has. Sorts the rows by their growth in bytes, the
 * largest growth first. Fails if the file cannot be read, if it was not written by `rbdump heap --json`, or if there is not
 * enough memory.
 */
struct error *baseline_compare(const char *file, struct histogram *histogram);

#endif
