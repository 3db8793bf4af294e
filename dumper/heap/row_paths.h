/*
 * The paths of the rows of a histogram: how the objects of each class are kept alive (class_paths.h).
 */
#ifndef RBDUMP_ROW_PATHS_H
#define RBDUMP_ROW_PATHS_H

#include "heap/histogram.h"
#include "heap/options.h"
#include "session/session.h"

/*
 * Looks at the references of the heap (graph_look.h), and adds the paths with the most objects to the rows. In a
 * comparison, a path that both histograms have becomes one path of the row. Fails if graph_look_begin() fails, or if
 * there is not enough memory.
 */
struct error *row_paths_add(const struct heap_options *options, struct session *session, struct histogram *histogram);

#endif
