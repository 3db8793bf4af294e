#include "report/cgroup_name.h"

#include <string.h>

/* A container's id has 64 hexadecimal digits, of which tools print the first 12. */
#define ID_DIGITS    64
#define SHORT_DIGITS 12

/* What LXC calls the cgroup of a container's processes, before the container's name (lxc.cgroup.dir, since 4.0). */
#define LXC_PAYLOAD "lxc.payload."

/* A part of a path, between slashes. */
struct part {
	const char *at;
	size_t length;
};

/* The last part before `*end`, which is moved to its beginning. False if there are no more. */
static bool part_before(const char *path, const char **end, struct part *ret)
{
	const char *to = *end, *from;

	while (to > path && to[-1] == '/')
		to--;
	for (from = to; from > path && from[-1] != '/'; from--)
		;
	*end = from;
	*ret = (struct part){from, (size_t)(to - from)};
	return to > from;
}

static bool ends_with(const struct part *part, const char *suffix)
{
	const size_t length = strlen(suffix);

	return part->length > length && memcmp(part->at + part->length - length, suffix, length) == 0;
}

/* The id of a container: `ID`, `docker-ID.scope`, `cri-containerd-ID.scope`, `libpod-ID.scope` and the like. */
static bool find_id(const struct part *part, struct part *ret)
{
	const char *dash = memrchr(part->at, '-', part->length), *at = dash ? dash + 1 : part->at;
	const size_t left = (size_t)(part->at + part->length - at);

	if (strspn(at, "0123456789abcdef") < ID_DIGITS || left < ID_DIGITS ||
	    !(left == ID_DIGITS || at[ID_DIGITS] == '.'))
		return false;
	*ret = (struct part){at, SHORT_DIGITS};
	return true;
}

static bool find_container(const struct part *part, struct part *ret)
{
	const size_t payload = strlen(LXC_PAYLOAD);

	if (find_id(part, ret))
		return true;
	if (part->length <= payload || memcmp(part->at, LXC_PAYLOAD, payload) != 0)
		return false;
	*ret = (struct part){part->at + payload, part->length - payload};
	return true;
}

static bool find_unit(const struct part *part, struct part *ret)
{
	*ret = *part;
	return ends_with(part, ".service") || ends_with(part, ".scope");
}

static bool find(const char *cgroup, bool (*is_one)(const struct part *part, struct part *ret), struct text *ret)
{
	const char *end = cgroup ? cgroup + strlen(cgroup) : NULL;
	struct part part, found;

	while (cgroup && part_before(cgroup, &end, &part))
		if (is_one(&part, &found)) {
			text_add(ret, found.at, found.length);
			return true;
		}
	return false;
}

bool cgroup_container(const char *cgroup, struct text *ret)
{
	return find(cgroup, find_container, ret);
}

bool cgroup_unit(const char *cgroup, struct text *ret)
{
	return find(cgroup, find_unit, ret);
}

bool cgroup_name(const char *cgroup, struct text *ret)
{
	return cgroup_container(cgroup, ret) || cgroup_unit(cgroup, ret);
}
