/*
 * The page of the flame graph, without its data: made of dumper/report/flamegraph/ by embed.py.
 */
#ifndef RBDUMP_FLAMEGRAPH_PAGE_H
#define RBDUMP_FLAMEGRAPH_PAGE_H

/* What comes before the JSON, and what comes behind it. */
extern const char flamegraph_page_head[], flamegraph_page_tail[];

#endif
