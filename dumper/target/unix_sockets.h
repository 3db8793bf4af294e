/*
 * Unix sockets of a network namespace, by sock_diag(7): name, state, queues and peer of a socket with a known inode.
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
 * Opens a netlink socket in the network namespace of a process. If that is not rbdump's own, a thread of rbdump enters
 * it, makes the socket, and ends; for that, rbdump needs CAP_SYS_ADMIN. Returns false if the kernel refuses.
 */
bool unix_sockets_open(pid_t pid, struct unix_sockets *ret);

/* Adds the facts of a Unix socket (sockets.h) by its inode. Adds nothing if the namespace has no such socket. */
void unix_sockets_describe(const struct unix_sockets *sockets, struct facts *facts);

void unix_sockets_close(struct unix_sockets *sockets);

/*
 * For use without sock_diag(7): adds the facts of Unix sockets from /proc/PID/net/unix. This table does not name the
 * peers. A name in this table can contain a newline, and thus look like the line of another socket. So if there are two
 * lines for a socket, adds no facts for this socket.
 *   wanted, count, until_ns  as for sockets_describe(). Sockets of other protocols are skipped
 */
void unix_sockets_read_table(pid_t pid, struct facts *const *wanted, size_t count, uint64_t until_ns);

#endif
