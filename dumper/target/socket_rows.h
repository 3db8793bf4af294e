/*
 * Reads the lines of the tables of sockets in /proc/PID/net (proc(5)). The tables tcp, udp, udplite, raw and icmp each
 * exist for IPv4 and for IPv6. The other tables are unix, netlink and packet.
 */
#ifndef RBDUMP_SOCKET_ROWS_H
#define RBDUMP_SOCKET_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/facts.h"

/* The TCP states that rbdump treats specially (include/net/tcp_states.h). */
#define SOCKET_ESTABLISHED 1
#define SOCKET_CLOSED	   7
#define SOCKET_LISTEN	   10

/* A line in the table of an internet protocol. */
struct socket_row {
	uint64_t inode;
	bool v6;
	uint8_t local[16], remote[16]; /* in network byte order; an IPv4 address is in the first 4 bytes */
	unsigned int local_port, remote_port, state;
	unsigned int send_queue, receive_queue;
};

/* Reads a line. Returns false if the line does not describe a socket: for example, the first line is a heading. */
bool socket_row_read(const char *line, bool v6, struct socket_row *ret);

/*
 * Adds the facts `local`, `remote`, `state`, `receive_queue` and `send_queue` (sockets.h).
 *   tcp  whether the protocol is TCP; with other protocols, the kernel's state "closed" means "unconnected"
 */
void socket_row_add(const struct socket_row *row, bool tcp, struct facts *facts);

/* Whether the two sockets are the two ends of one connection. */
bool socket_rows_meet(const struct socket_row *one, const struct socket_row *other);

/*
 * Each of these functions reads a line, and returns the inode of the socket that the line describes. Returns 0 if the
 * line does not describe a socket. If `facts` is not NULL, adds the facts that the line contains about the socket.
 */
uint64_t socket_row_unix(const char *line, struct facts *facts);
uint64_t socket_row_netlink(const char *line, struct facts *facts);
uint64_t socket_row_packet(const char *line, struct facts *facts);

/* Adds the facts `type` and `state` of a Unix socket, from the kernel's numbers for them. */
void socket_add_unix_state(unsigned int type, unsigned int state, struct facts *facts);

#endif
