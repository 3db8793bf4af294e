#include "dump/screen.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* What is written to the terminal at once, if a text is not longer. */
#define BUFFER (64u * 1024)

/* If the terminal does not tell how many lines it has. */
#define LINES_GUESSED 24

/* ECMA-48 and xterm: the cursor goes home; from the cursor to the end of the line, of the screen, is erased. */
#define HOME	    "\x1b[H"
#define ERASE_LINE  "\x1b[K"
#define ERASE_BELOW "\x1b[J"
#define RESET	    "\x1b[0m"
#define WRAP_OFF    "\x1b[?7l"
#define WRAP_ON	    "\x1b[?7h"

static bool begun;

/* How many lines a text can have. The cursor is in a line of its own below the text. */
static size_t room_of_terminal(void)
{
	struct winsize size;

	return (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : LINES_GUESSED) - 1;
}

static size_t lines_of_text(const char *text, size_t length)
{
	size_t lines = 0;

	for (size_t i = 0; i < length; i++)
		lines += text[i] == '\n';
	return lines;
}

/* Writes the first lines. Old text to the right of each is erased. */
static void put_lines(const char *text, size_t length, size_t count)
{
	for (const char *end; count > 0 && length > 0; count--) {
		end = memchr(text, '\n', length);
		if (!end)
			break;
		fwrite(text, 1, (size_t)(end - text), stdout);
		fputs(RESET ERASE_LINE "\n", stdout);
		length -= (size_t)(end + 1 - text);
		text = end + 1;
	}
}

bool screen_fits(const char *text, size_t length)
{
	return lines_of_text(text, length) <= room_of_terminal();
}

void screen_show(const char *text, size_t length)
{
	const size_t room = room_of_terminal(), lines = lines_of_text(text, length);
	const size_t shown = lines <= room ? lines : room > 0 ? room - 1 : 0;

	if (!begun) {
		/* All is written at once, and what the terminal shows now is left in its history. */
		setvbuf(stdout, NULL, _IOFBF, BUFFER);
		for (size_t i = 0; i < room; i++)
			fputc('\n', stdout);
		begun = true;
	}
	fputs(WRAP_OFF HOME, stdout);
	put_lines(text, length, shown);
	if (shown < lines)
		printf("(%zu more lines)" ERASE_LINE "\n", lines - shown);
	/* The terminal is as it was, even if rbdump ends before the next text. */
	fputs(ERASE_BELOW WRAP_ON, stdout);
}
