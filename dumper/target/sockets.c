#include "target/sockets.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/addresses.h"
#include "base/array.h"
#include "base/clock.h"
#include "target/socket_rows.h"
#include "target/unix_sockets.h"

/* The most TCP connections among which the other end of a connection is looked for. */
#define ROWS_MAX 65536u

struct search {
	pid_t pid;
	struct facts *const *wanted;
	struct address_map by_inode; /* indexes in `wanted` */
	struct socket_row *rows;     /* all TCP connections */
	size_t nr_rows, rows_capacity;
	bool rows_cut;			  /* there are more */
	struct address_map rows_by_inode; /* of the wanted: indexes in `rows` */
	uint64_t until_ns;
	bool out_of_time, refused, no_memory;
};

/* A table of /proc/PID/net. */
struct table {
	const char *name;
	const char *protocol; /* how the kernel's names of its protocols begin (sock_prot in net/) */
	bool v6, tcp;
	uint64_t (*row)(const char *line, struct facts *facts); /* NULL: an internet protocol */
};

static const struct table tables[] = {
    {"tcp", "TCP", false, true, NULL},
    {"tcp6", "TCP", true, true, NULL},
    {"udp", "UDP", false, false, NULL},
    {"udp6", "UDP", true, false, NULL},
    {"udplite", "UDP", false, false, NULL},
    {"udplite6", "UDP", true, false, NULL},
    {"raw", "RAW", false, false, NULL},
    {"raw6", "RAW", true, false, NULL},
    {"icmp", "PING", false, false, NULL},
    {"icmp6", "PING", true, false, NULL},
    {"netlink", "NETLINK", false, false, socket_row_netlink},
    {"packet", "PACKET", false, false, socket_row_packet},
};

/* Of a Unix socket, which has the kernel's name UNIX, or UNIX-STREAM since Linux 5.15. */
static bool is_unix(const struct facts *facts)
{
	const char *protocol = facts_text(facts, "protocol");

	return protocol && strncmp(protocol, "UNIX", 4) == 0;
}

/* Whether a socket can be in a table: its protocol fits, or is not known. */
static bool may_be_in(const struct facts *facts, const char *protocol)
{
	const char *has = facts_text(facts, "protocol");

	return !has || strncmp(has, protocol, strlen(protocol)) == 0;
}

/* The first of the pairs that have an inode, or NULL; and how many there are. */
static const struct address_pair *pairs_of(const struct address_map *map, uint64_t inode, size_t *count)
{
	const size_t first = array_first(map->pairs, map->count, pair, pair->address >= inode);

	*count = 0;
	while (first + *count < map->count && map->pairs[first + *count].address == inode)
		(*count)++;
	return *count > 0 ? &map->pairs[first] : NULL;
}

static bool is_described(const struct facts *facts)
{
	return facts_find(facts, "state") || facts_find(facts, "type") || facts_find(facts, "port");
}

static void keep_row(struct search *search, const struct socket_row *row)
{
	if (search->nr_rows >= ROWS_MAX) {
		search->rows_cut = true;
	} else if (!array_make_room(search->rows, search->rows_capacity, search->nr_rows + 1)) {
		search->no_memory = true;
	} else {
		search->rows[search->nr_rows++] = *row;
	}
}

static void take_internet_line(struct search *search, const struct table *table, const char *line)
{
	const struct address_pair *pairs;
	struct socket_row row;
	size_t count;

	if (!socket_row_read(line, table->v6, &row) || row.inode == 0)
		return;
	if (table->tcp && row.state != SOCKET_LISTEN)
		keep_row(search, &row);
	pairs = pairs_of(&search->by_inode, row.inode, &count);
	for (size_t i = 0; i < count; i++) {
		struct facts *facts = search->wanted[pairs[i].other];

		if (is_described(facts))
			continue;
		socket_row_add(&row, table->tcp, facts);
		if (table->tcp && row.state != SOCKET_LISTEN && !search->no_memory && search->nr_rows > 0)
			search->no_memory |=
			    !address_map_add(&search->rows_by_inode, pairs[i].other, search->nr_rows - 1);
	}
}

static void take_line(struct search *search, const struct table *table, const char *line)
{
	const struct address_pair *pairs;
	size_t count;

	if (!table->row) {
		take_internet_line(search, table, line);
		return;
	}
	pairs = pairs_of(&search->by_inode, table->row(line, NULL), &count);
	for (size_t i = 0; i < count; i++)
		if (!is_described(search->wanted[pairs[i].other]))
			table->row(line, search->wanted[pairs[i].other]);
}

static void read_table(struct search *search, const struct table *table)
{
	char path[64], *line = NULL;
	size_t size = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/net/%s", search->pid, table->name);
	file = fopen(path, "re");
	if (!file) {
		/* A kernel without IPv6 or UDP-Lite has no such table. */
		search->refused |= errno != ENOENT;
		return;
	}
	while (!search->no_memory && !search->out_of_time && getline(&line, &size, file) > 0) {
		take_line(search, table, line);
		search->out_of_time = monotonic_ns() > search->until_ns;
	}
	free(line);
	fclose(file);
}

static bool is_wanted(const struct search *search, size_t count, const struct table *table)
{
	for (size_t i = 0; i < count; i++)
		if (!is_unix(search->wanted[i]) && may_be_in(search->wanted[i], table->protocol))
			return true;
	return false;
}

/* Finds the other end of each TCP connection among the connections of the same namespace. */
static void find_peers(struct search *search)
{
	for (size_t i = 0; i < search->rows_by_inode.count && !search->out_of_time; i++) {
		const struct address_pair *pair = &search->rows_by_inode.pairs[i];
		const struct socket_row *row = &search->rows[pair->other];

		for (size_t j = 0; j < search->nr_rows; j++)
			if (search->rows[j].state == SOCKET_ESTABLISHED && socket_rows_meet(row, &search->rows[j])) {
				facts_add_number(search->wanted[pair->address], "peer", (int64_t)search->rows[j].inode);
				break;
			}
		search->out_of_time = monotonic_ns() > search->until_ns;
	}
}

static void say_missing(const struct search *search, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!is_described(search->wanted[i]))
			facts_add_text(search->wanted[i], "missing",
				       search->out_of_time ? "out-of-time"
				       : search->refused   ? "refused"
							   : "not-listed");
}

void sockets_describe(pid_t pid, struct facts *const *wanted, size_t count, uint64_t until_ns)
{
	struct search search = {.pid = pid, .wanted = wanted, .until_ns = until_ns};
	struct unix_sockets sockets;
	bool any_unix = false;

	for (size_t i = 0; i < count && !search.no_memory; i++) {
		any_unix |= is_unix(wanted[i]);
		search.no_memory = !address_map_add(&search.by_inode, (uint64_t)facts_number(wanted[i], "inode", 0), i);
	}
	address_map_sort(&search.by_inode);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && !search.no_memory; i++)
		if (is_wanted(&search, count, &tables[i]))
			read_table(&search, &tables[i]);
	if (!search.no_memory)
		find_peers(&search);
	if (any_unix && unix_sockets_open(pid, &sockets)) {
		for (size_t i = 0; i < count && !search.out_of_time; i++) {
			if (is_unix(wanted[i]))
				unix_sockets_describe(&sockets, wanted[i]);
			search.out_of_time = monotonic_ns() > until_ns;
		}
		unix_sockets_close(&sockets);
	} else if (any_unix) {
		unix_sockets_read_table(pid, wanted, count, until_ns);
	}
	say_missing(&search, count);
	if (search.no_memory && count > 0)
		wanted[0]->failed = true;
	address_map_clear(&search.by_inode);
	address_map_clear(&search.rows_by_inode);
	free(search.rows);
}
