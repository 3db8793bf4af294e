#include "store/generate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gen/confined.h"
#include "gen/gen.h"
#include "gen/image.h"
#include "layout/digest.h"
#include "layout/write.h"
#include "store/made.h"
#include "trust/trust.h"

static bool write_layout(const void *content, FILE *file)
{
	return layout_write(content, file);
}

void layout_generate_keep(struct layout_found *found)
{
	if (found->source != LAYOUT_GENERATED || !found->layout->build_id || !found->digest || found->file)
		return;
	found->file = made_keep(found->layout->build_id, found->digest, "layout", write_layout, found->layout);
}

/*
 * Whether a layout was made only from the given file, or from a debug file that only root or the effective user can
 * have put there. A process may have its own debug files, in its own root folder, and the digest of its file does not
 * depend on them.
 */
static bool is_of_trusted(const char *path, const struct gen_report *report)
{
	if (strcmp(report->elf, path) != 0)
		return false;
	return report->debug ? trust_is_own(report->debug) : !report->alternate;
}

struct error *layout_generate(const struct layout_wish *wish, int fd, const char *path, const char *root,
			      struct layout_found *ret)
{
	struct gen_options options = {.sysroot = root, .fd = &fd};
	struct gen_report report = {0};
	char digest[DIGEST_LENGTH + 1];
	struct layout *layout;
	struct error *error;
	int copy;

	*ret = (struct layout_found){0};
	/* With a server, the process that reads has few limits. So root uses no server for a file that may be hostile. */
	options.no_server = geteuid() == 0 && (root[0] != '\0' || !trust_is_own(path));
	/* The file may change meanwhile. So a copy is read, and the digest is that of the copy. */
	copy = image_copy(fd);
	if (copy < 0)
		return error_create(EXIT_FAILED, "%s cannot be read: %s", path, strerror(errno));
	options.fd = &copy;
	error = gen_layout_confined(path, &options, &report, &layout);
	if (!error && wish->version && strcmp(layout->version, wish->version) != 0) {
		error = error_create(EXIT_NO_RUBY, "%s has the debug info of Ruby %s, but the target is Ruby %s", path,
				     layout->version, wish->version);
		layout_destroy(layout);
	}
	if (!error) {
		ret->layout = layout;
		ret->source = LAYOUT_GENERATED;
		if (is_of_trusted(path, &report) && digest_of_file(copy, digest))
			ret->digest = strdup(digest);
	}
	gen_report_deinit(&report);
	close(copy);
	return error;
}
