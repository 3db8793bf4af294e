/* The flame graph (render/flame_page.h) of a profile, or of two profiles that are compared. */
#include <inttypes.h>
#include <math.h>

#include "render/flame_page.h"
#include "report/format.h"
#include "report/merged_tree.h"

/* What the page is made from. */
struct sides {
	const struct profile *profiles[MERGED_SIDES]; /* the second is NULL if nothing is compared */
	const struct merged_tree *tree;
};

static const char *state_name(const void *context, size_t state)
{
	(void)context;
	return sample_state_name((int)state);
}

static struct flame_function function_of(const void *context, size_t i)
{
	const struct sides *sides = context;
	const struct profile_function *function = sides->tree->functions[i];

	return (struct flame_function){function->kind, function->name, function->path, function->absolute_path,
				       function->first_line};
}

static struct flame_node node_of(const void *context, size_t i)
{
	const struct sides *sides = context;
	const struct merged_node *node = &sides->tree->nodes[i];

	_Static_assert(CALL_TREE_GROUP == FLAME_GROUP, "both numbers for a group must be equal");
	return (struct flame_node){node->parent, node->function, node->line, node->group};
}

static uint64_t weight_of(const void *context, size_t side, size_t node, size_t state)
{
	const struct sides *sides = context;

	return sides->tree->nodes[node].self[side][state];
}

static uint64_t samples_of(const void *context, size_t side, size_t node)
{
	const struct sides *sides = context;

	return sides->tree->nodes[node].samples[side];
}

static void write_counts(FILE *stream, const struct profile_counts *counts)
{
	fprintf(stream, "\"samples\":%" PRIu64, counts->samples);
	for (int i = 0; i <= VERDICT_UNREADABLE; i++)
		fprintf(stream, ",\"%s\":%" PRIu64, validate_verdict_name(i), counts->verdicts[i]);
	fprintf(stream, ",\"late\":%" PRIu64, counts->late);
}

/* The rate is in millihertz: an integer looks the same in every locale. */
static void write_profile(const void *context, size_t side, FILE *stream)
{
	const struct sides *sides = context;
	const struct profile *profile = sides->profiles[side];
	const double rate = isfinite(profile->rate) && fabs(profile->rate) < 1e9 ? profile->rate : 0;

	fprintf(stream, "{\"start\":%lld,\"duration_ns\":%" PRIu64 ",\"rate_millihertz\":%lld,\"cut\":%s,",
		(long long)profile->start.tv_sec, profile->duration_ns, llround(rate * 1000),
		profile->cut ? "true" : "false");
	fprintf(stream, "\"processes\":%zu,\"threads\":%zu,", profile->nr_processes, profile->nr_threads);
	flame_page_write_text("mode", profile->mode, stream);
	flame_page_write_text("tool", profile->tool, stream);
	write_counts(stream, &profile->counts);
	fputc('}', stream);
}

static bool write_merged(struct sides *sides, const struct format_options *options, const struct call_tree *after,
			 const struct call_tree *before, FILE *stream)
{
	struct merged_tree *tree = merged_tree_create(after, before);
	const struct flame_page page = {
	    .title = options->title,
	    .remark = options->remark,
	    .by = options->by,
	    .nr_sides = before ? MERGED_SIDES : 1,
	    .nr_states = SAMPLE_STATES,
	    .nr_functions = tree ? tree->nr_functions : 0,
	    .nr_nodes = tree ? tree->count : 0,
	    .context = sides,
	    .state = state_name,
	    .function = function_of,
	    .node = node_of,
	    .weight = weight_of,
	    .samples = samples_of,
	    .write_side = write_profile,
	};
	bool written;

	sides->tree = tree;
	written = tree && flame_page_write(&page, stream);
	merged_tree_destroy(tree);
	return written;
}

bool format_flamegraph(const struct profile *profile, const struct format_options *options, FILE *stream)
{
	struct sides sides = {.profiles = {profile, options->before}};
	struct call_tree *after = call_tree_for(profile, options), *before = NULL;
	bool written = false;

	if (options->before)
		before = call_tree_for(options->before, options);
	if (after && (before || !options->before))
		written = write_merged(&sides, options, after, before, stream);
	call_tree_destroy(before);
	call_tree_destroy(after);
	return written;
}
