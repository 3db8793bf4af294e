#include "target/socket_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/text.h"
#include "target/socket_address.h"

#define WORD_DIGITS 8

/* The kernel prints each 32-bit word of an address, which is in network byte order, as a number of this machine. */
static bool read_address(const char *digits, bool v6, uint8_t ret[16])
{
	const size_t words = v6 ? 4 : 1;

	memset(ret, 0, 16);
	if (strlen(digits) != words * WORD_DIGITS)
		return false;
	for (size_t i = 0; i < words; i++) {
		char part[WORD_DIGITS + 1] = "";
		uint32_t word;

		memcpy(part, digits + i * WORD_DIGITS, WORD_DIGITS);
		word = (uint32_t)strtoul(part, NULL, 16);
		memcpy(ret + i * sizeof(word), &word, sizeof(word));
	}
	return true;
}

bool socket_row_read(const char *line, bool v6, struct socket_row *ret)
{
	char local[64], remote[64];

	/* net/ipv4/tcp_ipv4.c, get_tcp4_sock(); the others are alike. */
	*ret = (struct socket_row){.v6 = v6};
	return sscanf(line, "%*d: %63[0-9A-F]:%x %63[0-9A-F]:%x %x %x:%x %*x:%*x %*x %*u %*d %" SCNu64, local,
		      &ret->local_port, remote, &ret->remote_port, &ret->state, &ret->send_queue, &ret->receive_queue,
		      &ret->inode) == 8 &&
	       read_address(local, v6, ret->local) && read_address(remote, v6, ret->remote);
}

static bool is_zero(const uint8_t address[16])
{
	static const uint8_t zero[16];

	return memcmp(address, zero, sizeof(zero)) == 0;
}

static void add_address(const struct socket_row *row, const char *name, const uint8_t address[16], unsigned int port,
			struct facts *facts)
{
	struct text text = {0};

	socket_address_add_internet(&text, row->v6, address, port);
	if (text.data)
		facts_add_text(facts, name, text.data);
	facts->failed |= text.failed;
	text_clear(&text);
}

/* The names that ss(8) has, spelled as in RFC 793. */
static const char *state_name(unsigned int state, bool tcp)
{
	static const char *const names[] = {
	    [1] = "established", [2] = "syn-sent",  [3] = "syn-received", [4] = "fin-wait-1",
	    [5] = "fin-wait-2",	 [6] = "time-wait", [7] = "closed",	  [8] = "close-wait",
	    [9] = "last-ack",	 [10] = "listen",   [11] = "closing",	  [12] = "syn-received",
	};

	if (!tcp && state == SOCKET_CLOSED)
		return "unconnected";
	return state < sizeof(names) / sizeof(names[0]) ? names[state] : NULL;
}

void socket_row_add(const struct socket_row *row, bool tcp, struct facts *facts)
{
	const char *state = state_name(row->state, tcp);

	add_address(row, "local", row->local, row->local_port, facts);
	if (row->remote_port != 0 || !is_zero(row->remote))
		add_address(row, "remote", row->remote, row->remote_port, facts);
	if (state)
		facts_add_text(facts, "state", state);
	facts_add_number(facts, "receive_queue", row->receive_queue);
	/* These tables do not have the limit of the queue of a socket that listens. */
	if (row->state != SOCKET_LISTEN)
		facts_add_number(facts, "send_queue", row->send_queue);
}

/* An address as one of IPv6: IPv4 addresses are mapped (RFC 4291). */
static void as_v6(bool v6, const uint8_t address[16], uint8_t ret[16])
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	if (v6) {
		memcpy(ret, address, 16);
		return;
	}
	memcpy(ret, prefix, sizeof(prefix));
	memcpy(ret + sizeof(prefix), address, 4);
}

static bool same_address(const struct socket_row *one, const uint8_t *of_one, const struct socket_row *other,
			 const uint8_t *of_other)
{
	uint8_t a[16], b[16];

	as_v6(one->v6, of_one, a);
	as_v6(other->v6, of_other, b);
	return memcmp(a, b, sizeof(a)) == 0;
}

bool socket_rows_meet(const struct socket_row *one, const struct socket_row *other)
{
	return one->local_port == other->remote_port && one->remote_port == other->local_port &&
	       one->remote_port != 0 && same_address(one, one->local, other, other->remote) &&
	       same_address(one, one->remote, other, other->local);
}

void socket_add_unix_state(unsigned int type, unsigned int state, struct facts *facts)
{
	const char *name = type == SOCK_STREAM	    ? "stream"
			   : type == SOCK_DGRAM	    ? "datagram"
			   : type == SOCK_SEQPACKET ? "seqpacket"
						    : NULL;

	if (name)
		facts_add_text(facts, "type", name);
	facts_add_text(facts, "state",
		       state == SOCKET_LISTEN	     ? "listen"
		       : state == SOCKET_ESTABLISHED ? "connected"
						     : "unconnected");
}

uint64_t socket_row_unix(const char *line, struct facts *facts)
{
	unsigned int flags, type, state;
	uint64_t inode;
	int name = 0;
	size_t length;

	/* net/unix/af_unix.c, unix_seq_show(): its states are those of enum socket_state, 1: unconnected, 3: connected. */
	if (sscanf(line, "%*[0-9a-f]: %*x %*x %x %x %x %" SCNu64 "%n", &flags, &type, &state, &inode, &name) != 4)
		return 0;
	if (!facts)
		return inode;
	/* __SO_ACCEPTCON: it listens. */
	socket_add_unix_state(type, flags & 0x10000u ? SOCKET_LISTEN : state == 3 ? SOCKET_ESTABLISHED : 0, facts);
	length = strcspn(line + name, "\n");
	if (length > 1)
		facts_add_bytes(facts, "local", line + name + 1, length - 1);
	return inode;
}

uint64_t socket_row_netlink(const char *line, struct facts *facts)
{
	static const char *const names[] = {
	    "ROUTE",	  "UNUSED",
	    "USERSOCK",	  "FIREWALL",
	    "SOCK_DIAG",  "NFLOG",
	    "XFRM",	  "SELINUX",
	    "ISCSI",	  "AUDIT",
	    "FIB_LOOKUP", "CONNECTOR",
	    "NETFILTER",  "IP6_FW",
	    "DNRTMSG",	  "KOBJECT_UEVENT",
	    "GENERIC",	  [18] = "SCSITRANSPORT",
	    "ECRYPTFS",	  "RDMA",
	    "CRYPTO",	  "SMC",
	};
	unsigned int family, port;
	uint64_t inode;

	/* net/netlink/af_netlink.c, netlink_seq_show() */
	if (sscanf(line, "%*x %u %u %*x %*d %*d %*d %*d %*u %" SCNu64, &family, &port, &inode) != 3)
		return 0;
	if (!facts)
		return inode;
	if (family < sizeof(names) / sizeof(names[0]) && names[family])
		facts_add_text(facts, "family", names[family]);
	else
		facts_add_number(facts, "family_number", family);
	facts_add_number(facts, "port", port);
	return inode;
}

uint64_t socket_row_packet(const char *line, struct facts *facts)
{
	unsigned int type, protocol;
	int interface;
	uint64_t inode;

	/* net/packet/af_packet.c, packet_seq_show() */
	if (sscanf(line, "%*x %*d %u %x %d %*d %*u %*u %" SCNu64, &type, &protocol, &interface, &inode) != 4)
		return 0;
	if (!facts)
		return inode;
	facts_add_text(facts, "type", type == SOCK_RAW ? "raw" : type == SOCK_DGRAM ? "datagram" : "packet");
	facts_add_number(facts, "ethernet_protocol", protocol);
	facts_add_number(facts, "interface", interface);
	return inode;
}
