#include "target/socket_address.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

void socket_address_add_internet(struct text *text, bool v6, const uint8_t address[16], unsigned int port)
{
	char words[INET6_ADDRSTRLEN];

	if (!inet_ntop(v6 ? AF_INET6 : AF_INET, address, words, sizeof(words)))
		return;
	text_format(text, v6 ? "[%s]:%u" : "%s:%u", words, port);
}

void socket_address_add_unix(struct text *text, const char *name, size_t length)
{
	const bool abstract = length > 0 && name[0] == '\0';
	size_t at = 0;

	/* A path ends at its first NUL; an abstract name can contain any bytes. */
	if (!abstract)
		length = strnlen(name, length);
	while (at < length) {
		size_t part = strnlen(name + at, length - at);

		text_add(text, name + at, part);
		at += part;
		if (at < length) {
			text_add(text, "@", 1);
			at++;
		}
	}
}

void socket_address_add(struct text *text, const void *bytes, size_t length)
{
	sa_family_t family;

	if (length < sizeof(family))
		return;
	memcpy(&family, bytes, sizeof(family));
	if (family == AF_INET && length >= sizeof(struct sockaddr_in)) {
		struct sockaddr_in address;
		uint8_t padded[16] = {0};

		memcpy(&address, bytes, sizeof(address));
		memcpy(padded, &address.sin_addr, sizeof(address.sin_addr));
		socket_address_add_internet(text, false, padded, ntohs(address.sin_port));
	} else if (family == AF_INET6 && length >= sizeof(struct sockaddr_in6)) {
		struct sockaddr_in6 address;

		memcpy(&address, bytes, sizeof(address));
		socket_address_add_internet(text, true, address.sin6_addr.s6_addr, ntohs(address.sin6_port));
	} else if (family == AF_UNIX && length > sizeof(family)) {
		if (length > sizeof(struct sockaddr_un))
			length = sizeof(struct sockaddr_un);
		socket_address_add_unix(text, (const char *)bytes + sizeof(family), length - sizeof(family));
	}
}
