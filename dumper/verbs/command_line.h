/*
 * Functions for the command lines of all verbs: messages about wrong arguments, and the parsing of numbers.
 */
#ifndef RBDUMP_COMMAND_LINE_H
#define RBDUMP_COMMAND_LINE_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct command_line {
	const char *verb;	      /* "record" */
	const char *help;	      /* what --help prints */
	const struct option *options; /* the long options, as for getopt_long() */
};

/*
 * Prints to standard error what is wrong with the command line, and where to find help. Returns EXIT_USAGE.
 *   what  the wrong argument, or ""
 *   why   the rest of the message, which follows `what`
 */
int command_line_wrong(const struct command_line *line, const char *what, const char *why);

/* Prints to standard error that a text is not a process id. Returns EXIT_USAGE. */
int command_line_not_pid(const struct command_line *line, const char *text);

/*
 * Handles an option that the verb itself does not handle. The option -h prints the help. Any other option is an error,
 * and the message says why: the option is unknown or ambiguous, needs an argument, or takes no argument. If an option is
 * unknown, but similar to a known option, the message suggests the known option. For an ambiguous option, the message
 * lists all options that begin with the given text. Returns the exit status.
 *   option  the value that getopt_long() returned. The string of short options for getopt_long() must begin with ':',
 *           and opterr must be 0
 */
int command_line_other(const struct command_line *line, int option, char **argv);

/* Prints a help text to standard output. Returns the exit status. */
int command_line_help(const char *help);

/* Prints to standard error that the verb does not expect `argument`. Returns EXIT_USAGE. */
int command_line_unexpected(const struct command_line *line, const char *argument);

/*
 * Returns the word in `words` that is most similar to `word`, or NULL if no word is similar. The last element of
 * `words` is NULL.
 */
const char *command_line_nearest(const char *word, const char *const *words);

/* Parses a number from `min` to `max`. Returns false if the text is not such a number. */
bool command_line_number(const char *text, double min, double max, double *ret);

/*
 * Parses an integer from 1 to `max`. The text must begin with a digit. "1e3" is accepted as 1000. Returns false if the
 * text is not such an integer.
 */
bool command_line_whole(const char *text, double max, double *ret);

/*
 * For a verb that can start a command: like getopt_long(), but a process id in front of the command, without `--` before
 * it, is returned as the option 'p'. So `record 1951` does the same as `record -p 1951`.
 *   letters  the short options; begin with "+:", so that getopt_long() does not look at the command's own options
 */
int command_line_next(const struct command_line *line, int argc, char **argv, const char *letters);

/* Parses a process id. Returns false if the text is not a process id. */
bool command_line_pid(const char *text, int *ret);

/*
 * Parses an address of the form 0x7f0012345678. Returns false if the text is not such an address, or if the address is
 * 0.
 */
bool command_line_address(const char *text, uint64_t *ret);

#endif
