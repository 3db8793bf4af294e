/*
 * The HTML page of the flame graph, without the data. The script dumper/render/flamegraph/embed.py makes the page from
 * the files in dumper/render/flamegraph/.
 */
#ifndef RBDUMP_FLAMEGRAPH_PAGE_H
#define RBDUMP_FLAMEGRAPH_PAGE_H

/* The text of the page before the JSON data. */
extern const char flamegraph_page_head[];

/* The text of the page after the JSON data. */
extern const char flamegraph_page_tail[];

#endif
