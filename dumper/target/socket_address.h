/*
 * Writes the addresses of sockets as text: `127.0.0.1:80`, `[::1]:80`, the path of a Unix socket, or `@NAME` for a Unix
 * socket with an abstract name.
 */
#ifndef RBDUMP_SOCKET_ADDRESS_H
#define RBDUMP_SOCKET_ADDRESS_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/*
 * Appends an address. Appends nothing if the address is incomplete, or if it is neither an internet address nor the
 * address of a Unix socket.
 *   bytes, length  a struct sockaddr of any family, as a program passes it to the kernel. The bytes may be hostile
 */
void socket_address_add(struct text *text, const void *bytes, size_t length);

/*
 * Appends an internet address and a port. An IPv4 address that is mapped to IPv6 is written as ss(8) writes it:
 * `[::ffff:127.0.0.1]:80`.
 *   v6       true: `address` is an IPv6 address; false: the first 4 bytes of `address` are an IPv4 address
 *   address  in network byte order
 */
void socket_address_add_internet(struct text *text, bool v6, const uint8_t address[16], unsigned int port);

/*
 * Appends the name of a Unix socket. The first byte of an abstract name is NUL. Each NUL in an abstract name is written
 * as "@".
 */
void socket_address_add_unix(struct text *text, const char *name, size_t length);

#endif
