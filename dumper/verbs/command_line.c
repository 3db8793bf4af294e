#include "verbs/command_line.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

/* Words that are longer are like no other; and how many letters may differ of one that is like another. */
enum { WORD_MAX = 32, LETTERS_THAT_DIFFER = 2 };

static void print_wrong(const struct command_line *line, const char *what, const char *why, const char *nearest)
{
	fputs("rbdump: ", stderr);
	text_print(what, stderr);
	fputs(why, stderr);
	if (nearest)
		fprintf(stderr, " (did you mean --%s?)", nearest);
	fprintf(stderr, "; see rbdump help %s\n", line->verb);
}

int command_line_wrong(const struct command_line *line, const char *what, const char *why)
{
	print_wrong(line, what, why, NULL);
	return EXIT_USAGE;
}

int command_line_not_pid(const struct command_line *line, const char *text)
{
	/* Empty: from a command that has found no process, as in rbdump "$(pgrep puma)". */
	return text[0] == '\0' ? command_line_wrong(line, "", "the process id is empty")
			       : command_line_wrong(line, text, " is not a process id");
}

int command_line_unexpected(const struct command_line *line, const char *argument)
{
	fputs("rbdump: unexpected argument: ", stderr);
	text_print(argument, stderr);
	fprintf(stderr, "; see rbdump help %s\n", line->verb);
	return EXIT_USAGE;
}

int command_line_next(const struct command_line *line, int argc, char **argv, const char *letters)
{
	const int option = getopt_long(argc, argv, letters, line->options, NULL);
	int pid;

	if (option != -1 || optind >= argc || strcmp(argv[optind - 1], "--") == 0 ||
	    !command_line_pid(argv[optind], &pid))
		return option;
	optarg = argv[optind++];
	return 'p';
}

int command_line_help(const char *help)
{
	return fputs(help, stdout) == EOF || fflush(stdout) == EOF ? EXIT_FAILED : EXIT_COMPLETE;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * How many letters must be added, dropped, replaced, or exchanged with their neighbour to make one word of another
 * (optimal string alignment).
 */
static size_t distance(const char *a, const char *b)
{
	const size_t length_a = strlen(a), length_b = strlen(b);
	size_t rows[WORD_MAX + 1][WORD_MAX + 1];

	if (length_a > WORD_MAX || length_b > WORD_MAX)
		return SIZE_MAX;
	for (size_t i = 0; i <= length_a; i++)
		rows[i][0] = i;
	for (size_t j = 0; j <= length_b; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= length_a; i++) {
		for (size_t j = 1; j <= length_b; j++) {
			size_t best = rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

			best = least(best, least(rows[i - 1][j], rows[i][j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				best = least(best, rows[i - 2][j - 2] + 1);
			rows[i][j] = best;
		}
	}
	return rows[length_a][length_b];
}

const char *command_line_nearest(const char *word, const char *const *words)
{
	/* Of a short word, not all letters may differ. */
	size_t least_distance = least(LETTERS_THAT_DIFFER, strlen(word) / 2) + 1;
	const char *nearest = NULL;

	for (; *words; words++) {
		size_t letters = distance(word, *words);

		if (letters < least_distance) {
			least_distance = letters;
			nearest = *words;
		}
	}
	return nearest;
}

/* The long option that is most like a word, of which "=" and what follows are no part: "jsno", "jsno=x". */
static const char *nearest_option(const struct command_line *line, const char *given)
{
	const char *names[64] = {NULL};
	char word[WORD_MAX + 1];

	snprintf(word, sizeof(word), "%.*s", (int)strcspn(given, "="), given);
	for (size_t i = 0; line->options[i].name && i + 1 < sizeof(names) / sizeof(names[0]); i++)
		names[i] = line->options[i].name;
	return command_line_nearest(word, names);
}

/* Says which options a word could be short for; false if it is short for none. */
static bool tell_ambiguous(const struct command_line *line, const char *given)
{
	size_t length = strcspn(given + 2, "=");
	bool told = false;

	for (const struct option *option = line->options; length > 0 && option->name; option++) {
		if (strncmp(option->name, given + 2, length) != 0)
			continue;
		if (!told) {
			fputs("rbdump: ", stderr);
			text_print(given, stderr);
			fputs(" is ambiguous: ", stderr);
		}
		fprintf(stderr, "%s--%s", told ? ", " : "", option->name);
		told = true;
	}
	if (told)
		fprintf(stderr, "; see rbdump help %s\n", line->verb);
	return told;
}

static int wrong_word(const struct command_line *line, const char *given)
{
	/* A word that is short for one option only would have been taken for it. */
	if (!tell_ambiguous(line, given))
		print_wrong(line, given, " is not an option", nearest_option(line, given + 2));
	return EXIT_USAGE;
}

/* `next` is the word that getopt_long() goes on with: the same one, unless this was its last letter. */
static int wrong_letter(const struct command_line *line, char letter, const char *next)
{
	const char word[] = {'-', letter, '\0'};
	const char *nearest = next && strncmp(next, word, 2) == 0 ? nearest_option(line, next + 1) : NULL;

	print_wrong(line, nearest ? next : word, " is not an option", nearest);
	return EXIT_USAGE;
}

int command_line_other(const struct command_line *line, int option, char **argv)
{
	char name[WORD_MAX + 1];

	if (option == 'h')
		return command_line_help(line->help);
	if (option == ':')
		return command_line_wrong(line, argv[optind - 1], " needs an argument");
	if (optopt == 0)
		return wrong_word(line, argv[optind - 1]);
	/* An option that the verb knows has been given an argument ("--json=x"): optopt is its value, of any size. */
	for (size_t i = 0; line->options[i].name; i++) {
		if (line->options[i].val == optopt) {
			snprintf(name, sizeof(name), "--%s", line->options[i].name);
			return command_line_wrong(line, name, " takes no argument");
		}
	}
	return wrong_letter(line, (char)optopt, argv[optind]);
}

bool command_line_number(const char *text, double min, double max, double *ret)
{
	char *end;

	errno = 0;
	*ret = strtod(text, &end);
	return end != text && *end == '\0' && errno == 0 && isfinite(*ret) && *ret >= min && *ret <= max;
}

bool command_line_whole(const char *text, double max, double *ret)
{
	return isdigit((unsigned char)text[0]) && command_line_number(text, 1, max, ret) && floor(*ret) == *ret;
}

bool command_line_pid(const char *text, int *ret)
{
	double number;

	if (!command_line_whole(text, INT_MAX, &number))
		return false;
	*ret = (int)number;
	return true;
}

bool command_line_address(const char *text, uint64_t *ret)
{
	char *end;

	if (text[0] != '0' || (text[1] | 0x20) != 'x')
		return false;
	errno = 0;
	*ret = strtoull(text, &end, 16);
	return errno == 0 && end > text + 2 && *end == '\0' && *ret != 0;
}
