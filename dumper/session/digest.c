#include "session/digest.h"

#include "store/known_files.h"

const char *session_digest(struct module *module)
{
	if (!module->digest && module->fd >= 0)
		module->digest = known_files_digest(module->fd, module->build_id);
	return module->digest;
}
