#include "target/unix_sockets.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/thread.h"
#include "target/socket_address.h"
#include "target/socket_rows.h"

static int open_netlink(void)
{
	return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
}

/* Runs in a thread of its own: it leaves rbdump's network namespace. */
static void *open_inside(void *argument)
{
	const int namespace = *(const int *)argument;

	return (void *)(intptr_t)(setns(namespace, CLONE_NEWNET) == 0 ? open_netlink() : -1);
}

bool unix_sockets_open(pid_t pid, struct unix_sockets *ret)
{
	struct stat theirs, ours;
	struct error *error;
	void *opened = (void *)(intptr_t)-1;
	pthread_t thread;
	char path[64];
	int namespace;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	ret->fd = -1;
	namespace = open(path, O_RDONLY | O_CLOEXEC);
	if (namespace < 0)
		return false;
	if (fstat(namespace, &theirs) == 0 && stat("/proc/self/ns/net", &ours) == 0 && theirs.st_ino == ours.st_ino) {
		ret->fd = open_netlink();
	} else {
		error = thread_start(&thread, open_inside, &namespace);
		if (!error)
			pthread_join(thread, &opened);
		error_destroy(error);
		ret->fd = (int)(intptr_t)opened;
	}
	close(namespace);
	return ret->fd >= 0;
}

void unix_sockets_close(struct unix_sockets *sockets)
{
	close(sockets->fd);
}

static void add_name(const struct rtattr *attribute, struct facts *facts)
{
	struct text text = {0};

	socket_address_add_unix(&text, RTA_DATA(attribute), RTA_PAYLOAD(attribute));
	if (text.data)
		facts_add_text(facts, "local", text.data);
	facts->failed |= text.failed;
	text_clear(&text);
}

static void add_answer(const struct unix_diag_msg *message, size_t length, struct facts *facts)
{
	const struct rtattr *attribute = (const struct rtattr *)(message + 1);
	int left = (int)(length - sizeof(*message));

	socket_add_unix_state(message->udiag_type, message->udiag_state, facts);
	for (; RTA_OK(attribute, left); attribute = RTA_NEXT(attribute, left)) {
		const size_t size = RTA_PAYLOAD(attribute);

		if (attribute->rta_type == UNIX_DIAG_NAME) {
			add_name(attribute, facts);
		} else if (attribute->rta_type == UNIX_DIAG_PEER && size >= sizeof(uint32_t)) {
			uint32_t peer;

			memcpy(&peer, RTA_DATA(attribute), sizeof(peer));
			facts_add_number(facts, "peer", peer);
		} else if (attribute->rta_type == UNIX_DIAG_RQLEN && size >= sizeof(struct unix_diag_rqlen)) {
			struct unix_diag_rqlen queues;

			memcpy(&queues, RTA_DATA(attribute), sizeof(queues));
			facts_add_number(facts, "receive_queue", queues.udiag_rqueue);
			facts_add_number(facts, "send_queue", queues.udiag_wqueue);
		}
	}
}

void unix_sockets_describe(const struct unix_sockets *sockets, struct facts *facts)
{
	struct {
		struct nlmsghdr header;
		struct unix_diag_req request;
	} ask = {
	    .header = {.nlmsg_len = sizeof(ask), .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST},
	    .request = {.sdiag_family = AF_UNIX,
			.udiag_states = UINT32_MAX,
			.udiag_ino = (uint32_t)facts_number(facts, "inode", 0),
			.udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_PEER | UDIAG_SHOW_RQLEN,
			/* The socket's cookie is not known. */
			.udiag_cookie = {UINT32_MAX, UINT32_MAX}},
	};
	_Alignas(struct nlmsghdr) char answer[4096];
	const struct nlmsghdr *header = (const struct nlmsghdr *)answer;
	ssize_t length;

	if (send(sockets->fd, &ask, sizeof(ask), 0) != sizeof(ask))
		return;
	/* The kernel has answered before send() returns. */
	length = recv(sockets->fd, answer, sizeof(answer), MSG_DONTWAIT);
	if (length < (ssize_t)NLMSG_LENGTH(sizeof(struct unix_diag_msg)) || header->nlmsg_len > (size_t)length ||
	    header->nlmsg_len < NLMSG_LENGTH(sizeof(struct unix_diag_msg)) || header->nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return;
	add_answer(NLMSG_DATA(header), header->nlmsg_len - NLMSG_HDRLEN, facts);
}

/* The line of one socket; NULL if there is none, if there is more than one, or if there was not enough time. */
static char *find_line(FILE *file, uint64_t inode, uint64_t until_ns)
{
	char *line = NULL, *found = NULL;
	bool doubtful = false;
	size_t size = 0;

	rewind(file);
	while (!doubtful && getline(&line, &size, file) > 0) {
		const bool is_it = socket_row_unix(line, NULL) == inode;

		doubtful = (is_it && found) || monotonic_ns() > until_ns;
		if (is_it && !doubtful)
			found = strdup(line);
	}
	free(line);
	if (!doubtful)
		return found;
	free(found);
	return NULL;
}

void unix_sockets_read_table(pid_t pid, struct facts *const *wanted, size_t count, uint64_t until_ns)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/net/unix", pid);
	file = fopen(path, "re");
	for (size_t i = 0; file && i < count && monotonic_ns() <= until_ns; i++) {
		const char *protocol = facts_text(wanted[i], "protocol");
		char *line;

		if (!protocol || strncmp(protocol, "UNIX", 4) != 0)
			continue;
		line = find_line(file, (uint64_t)facts_number(wanted[i], "inode", 0), until_ns);
		if (line)
			socket_row_unix(line, wanted[i]);
		free(line);
	}
	if (file)
		fclose(file);
}
