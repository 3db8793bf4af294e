#include "layout/version.h"

#include <stdio.h>
#include <string.h>

/* The longest text of a version: three numbers of at most four digits. */
#define MAX_TEXT 15

/*
 * Parses a number of at most four digits, without leading zeros, that ends at `end`. Returns what follows, or NULL.
 */
static const char *number(const char *text, char end, unsigned int *ret)
{
	size_t digits = strspn(text, "0123456789");

	if (digits < 1 || digits > 4 || text[digits] != end || (text[0] == '0' && digits > 1))
		return NULL;
	*ret = 0;
	for (size_t i = 0; i < digits; i++)
		*ret = *ret * 10 + (unsigned int)(text[i] - '0');
	return text + digits + (end != '\0');
}

bool version_parse(const char *text, struct version *ret)
{
	text = number(text, '.', &ret->major);
	text = text ? number(text, '.', &ret->minor) : NULL;
	return text && number(text, '\0', &ret->patch);
}

bool version_same_series(const struct version *a, const struct version *b)
{
	return a->major == b->major && a->minor == b->minor;
}

int version_compare(const struct version *a, const struct version *b)
{
	if (a->major != b->major)
		return a->major < b->major ? -1 : 1;
	if (a->minor != b->minor)
		return a->minor < b->minor ? -1 : 1;
	return a->patch < b->patch ? -1 : a->patch > b->patch;
}

bool version_parse_range(const char *text, struct version_range *ret)
{
	const char *space = strchr(text, ' ');
	char first[MAX_TEXT + 1];

	if (!space || space - text > MAX_TEXT)
		return false;
	snprintf(first, sizeof(first), "%.*s", (int)(space - text), text);
	return version_parse(first, &ret->first) && version_parse(space + 1, &ret->last) &&
	       version_same_series(&ret->first, &ret->last) && version_compare(&ret->first, &ret->last) <= 0;
}

bool version_patch_level(const char *description, unsigned int *ret)
{
	static const char word[] = "ruby ";
	const char *at = description;

	if (strncmp(at, word, strlen(word)) != 0)
		return false;
	at += strlen(word);
	at += strspn(at, "0123456789.");
	return *at == 'p' && number(at + 1, ' ', ret);
}

bool version_parse_levels(const char *text, struct version_levels *ret)
{
	text = number(text, ' ', &ret->first);
	return text && number(text, '\0', &ret->last) && ret->first <= ret->last;
}

bool version_in_range(const struct version *version, const struct version_range *range)
{
	return version_compare(version, &range->first) >= 0 && version_compare(version, &range->last) <= 0;
}
