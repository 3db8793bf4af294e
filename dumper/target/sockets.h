/*
 * Addresses, states and peers of sockets of a live process: from sock_diag(7) for Unix sockets, and from the tables in
 * /proc/PID/net for all others. The tables are those of the process's network namespace.
 */
#ifndef RBDUMP_SOCKETS_H
#define RBDUMP_SOCKETS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/facts.h"

/*
 * Describes sockets. Adds these facts to each, as far as they are known and apply:
 *
 *   local, remote  addresses with ports; the name of a Unix socket
 *   state          as ss(8) shows it, but in whole words: "listen", "established", "close-wait", "unconnected"; of a Unix
 *                  socket: "listen", "connected" or "unconnected"
 *   receive_queue, send_queue  in bytes. For a socket that listens: receive_queue is the number of connections that
 *                  wait, and send_queue (only for a Unix socket) is the maximum of this number
 *   type           of a Unix or packet socket: "stream", "datagram", "seqpacket", "raw"
 *   peer           of a Unix socket, or of a TCP connection inside the network namespace: the inode of the socket at
 *                  the other end
 *   family, port   of a netlink socket
 *   ethernet_protocol, interface  of a packet socket
 *   missing        why there are no such facts: "out-of-time", "not-listed" (the socket is neither bound nor
 *                  connected, or it belongs to another network namespace), "refused" (the tables may not be read)
 *
 *   wanted, count  the facts of the sockets from descriptor_describe(); `inode` is set. Several can belong to the same
 *                  socket
 *   until_ns       when to stop, a time of monotonic_ns()
 */
void sockets_describe(pid_t pid, struct facts *const *wanted, size_t count, uint64_t until_ns);

#endif
