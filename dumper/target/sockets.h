/*
 * Finds the addresses, states and peers of the sockets of a live process. For Unix sockets, asks sock_diag(7), or reads
 * the table /proc/PID/net/unix if rbdump cannot use sock_diag(7). For all other sockets, reads the other tables in
 * /proc/PID/net. These tables list the sockets of the process's network namespace.
 */
#ifndef RBDUMP_SOCKETS_H
#define RBDUMP_SOCKETS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/facts.h"

/*
 * Describes sockets. Adds the following facts to each socket, if they are known and apply to the socket:
 *
 *   local, remote  addresses with ports; for a Unix socket, `local` is the name of the socket
 *   state          as ss(8) shows it, but in whole words: "listen", "established", "close-wait", "unconnected"; for a
 *                  Unix socket: "listen", "connected" or "unconnected"
 *   receive_queue, send_queue  the number of bytes in the queue. For a socket that listens, receive_queue is the number
 *                  of connections that wait for accept(2). For a Unix socket that listens, send_queue is the maximum
 *                  of this number
 *   type           for a Unix socket: "stream", "datagram" or "seqpacket"; for a packet socket: "raw", "datagram" or
 *                  "packet"
 *   peer           the inode of the socket at the other end; only for a Unix socket, or for a TCP connection with both
 *                  ends in the process's network namespace
 *   family, port   for a netlink socket
 *   ethernet_protocol, interface  for a packet socket
 *   missing        why none of the facts above is known: "out-of-time", "not-listed" (the socket is neither bound nor
 *                  connected, or it belongs to another network namespace), or "refused" (the kernel does not let
 *                  rbdump read the tables)
 *
 *   wanted, count  for each socket, the facts that descriptor_describe() has found; they include `inode`. Several
 *                  elements of `wanted` can belong to the same socket
 *   until_ns       the time at which the search ends, even if it has not found all sockets (monotonic_ns())
 */
void sockets_describe(pid_t pid, struct facts *const *wanted, size_t count, uint64_t until_ns);

#endif
