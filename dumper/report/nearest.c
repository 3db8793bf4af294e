#include "report/nearest.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/releases.h"

/* The first such process. Adds their number to `count`. */
static const struct profile_process *find(const struct profile *profile, size_t *count)
{
	const struct profile_process *first = NULL;

	for (size_t i = 0; profile && i < profile->nr_processes; i++) {
		if (!profile->processes[i].layout_releases)
			continue;
		first = first ? first : &profile->processes[i];
		++*count;
	}
	return first;
}

bool nearest_remark(const struct profile *profile, const struct profile *before, char **ret)
{
	size_t count = 0, length;
	const struct profile_process *mine = find(profile, &count), *theirs = find(before, &count);
	const struct profile_process *first = mine ? mine : theirs;
	char words[RELEASES_WORDS];
	FILE *stream;

	*ret = NULL;
	if (!first)
		return true;
	stream = open_memstream(ret, &length);
	if (!stream)
		return false;
	fprintf(stream, "process %d", first->pid);
	if (count > 1)
		fprintf(stream, " and %zu more", count - 1);
	fprintf(stream, ": layout of %s, ", releases_words(first->layout_releases, words));
	if (first->ruby_version)
		fprintf(stream, "which is nearest to %s, but was not made for this release", first->ruby_version);
	else
		fprintf(stream, "which was not made for the release of the process");
	if (fclose(stream) == 0)
		return true;
	free(*ret);
	*ret = NULL;
	return false;
}
