/*
 * Finds a Unix socket by its inode, in the network namespace of a process, and gets its name, state, queues and peer from
 * the kernel with sock_diag(7).
 */
#ifndef RBDUMP_UNIX_SOCKETS_H
#define RBDUMP_UNIX_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/facts.h"

struct unix_sockets {
	int fd; /* a netlink socket in the network namespace of the process */
};

/*
 * Opens a netlink socket in the network namespace of a process. If this namespace is not rbdump's own, a thread of rbdump
 * enters the namespace, makes the socket, and ends. To enter the namespace, rbdump needs CAP_SYS_ADMIN. Returns false if
 * the socket cannot be opened.
 */
bool unix_sockets_open(pid_t pid, struct unix_sockets *ret);

/*
 * Finds a Unix socket by the inode in `facts`, and adds the facts of the socket (sockets.h). Adds nothing if the namespace
 * has no such socket.
 */
void unix_sockets_describe(const struct unix_sockets *sockets, struct facts *facts);

void unix_sockets_close(struct unix_sockets *sockets);

/*
 * Call this function if rbdump cannot use sock_diag(7). Reads facts about Unix sockets from the table
 * /proc/PID/net/unix, and adds them. The table does not contain the peers of the sockets. If the name of a socket
 * contains a newline, a part of the name can look like the line of another socket. So if the table has two lines for a
 * socket, the function adds no facts for this socket.
 *   wanted, count, until_ns  have the same meaning as for sockets_describe(). The function skips the elements of `wanted`
 *                            that are not Unix sockets
 */
void unix_sockets_read_table(pid_t pid, struct facts *const *wanted, size_t count, uint64_t until_ns);

#endif
