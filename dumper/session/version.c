#include "session/version.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "store/find.h"
#include "target/core_version.h"
#include "target/live.h"
#include "target/ruby_file.h"

/* A NUL-terminated string of the target. */
static void read_string(struct memory *memory, uint64_t address, char *buffer, size_t size)
{
	size_t length = 0;

	if (address != 0)
		while (length < size - 1 && memory_read(memory, address + length, buffer + length, 1) &&
		       buffer[length] != '\0')
			length++;
	buffer[length] = '\0';
}

/* A process that has no version where Ruby has it. */
static struct error *none_in_process(const struct session *session)
{
	const struct roots *roots = &session->module_roots;
	pid_t pid = session->target->pid;
	char first;

	if (target_is_ending(session->target))
		return error_create(EXIT_FAILED, "process %d is ending", pid);
	if (memory_read(session->memory, roots->version ? roots->version : roots->description, &first, 1))
		return error_no_ruby(
		    "process %d is not a Ruby process: %s contains other data in the place of Ruby's version", pid,
		    session->module->path);
	return error_create(
	    EXIT_FAILED,
	    "the version of the Ruby in process %d cannot be read, because %s is not mapped: the process is just "
	    "starting, or has just called exec; try again",
	    pid, session->module->path);
}

static struct error *contradiction(const char *given, const char *told, const char *by)
{
	return error_create(
	    EXIT_FAILED,
	    "the core is from Ruby %s (%s), but --ruby-version gives %s; omit --ruby-version, or give the layout "
	    "instead: --offsets FILE",
	    told, by, given);
}

/* What a layout of the build that ran says of its version. */
static bool by_layout(const struct session *session, char *ret, size_t size)
{
	const struct layout_wish wish = {.arch = SESSION_ARCH, .build_id = session->module->build_id};
	struct layout_found found;
	bool is_known = layout_find_kept(&wish, 0, &found);

	if (is_known)
		snprintf(ret, size, "%s", found.layout->version);
	layout_found_clear(&found);
	return is_known;
}

/* Whether Ruby has said it of itself: the name of a file, and a text on the heap, are hints, and the user knows better.
 */
static bool is_its_own(const struct core_version *told)
{
	return told->source == VERSION_IN_MEMORY && !told->on_heap;
}

/* What can be said of a core without Ruby's own constants. */
static struct error *settle_without_file(struct session *session, const char *given)
{
	struct core_version told;

	if (by_layout(session, session->version, sizeof(session->version))) {
		session->version_source = VERSION_OF_LAYOUT;
		if (given && strcmp(given, session->version) != 0)
			return contradiction(given, session->version, "according to the layout of this build");
	} else if (!session->offsets && core_version_find(session->module, &told) &&
		   (!given || is_its_own(&told) || strcmp(given, told.version) == 0)) {
		session->version_source = told.source;
		session->version_is_hint = told.on_heap && !given;
		snprintf(session->version, sizeof(session->version), "%s", told.version);
		snprintf(session->description, sizeof(session->description), "%s", told.description);
		if (given && strcmp(given, session->version) != 0)
			return contradiction(given, session->version, "according to Ruby's own data");
	} else if (given) {
		session->version_source = VERSION_GIVEN;
		snprintf(session->version, sizeof(session->version), "%s", given);
	}
	return NULL;
}

struct error *session_settle_version(struct session *session, const char *given)
{
	const struct roots *roots = &session->module_roots;

	session->version_source = VERSION_OF_RUBY;
	read_string(session->memory, roots->version, session->version, sizeof(session->version));
	read_string(session->memory, roots->description, session->description, sizeof(session->description));
	if (session->version[0] == '\0')
		ruby_file_version(session->description, session->version, sizeof(session->version));
	if (session->target->operations->runs)
		return isdigit((unsigned char)session->version[0]) ? NULL : none_in_process(session);
	if (session->version[0] == '\0')
		return settle_without_file(session, given);
	return given && strcmp(given, session->version) != 0
		   ? contradiction(given, session->version, "according to Ruby's own constants")
		   : NULL;
}
