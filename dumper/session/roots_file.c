#include "session/roots_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "session/digest.h"
#include "store/made.h"

static const char first_line[] = "rbdump-roots 1";

/* More than the longest file that is written. */
#define FILE_MAX 1024

/* Names for those who read the file; it is not looked up under which name a Ruby has them. */
static const char *const names[] = {"rb_cObject", "ruby_current_vm_ptr", "ruby_global_symbols"};

#define NAMES (sizeof(names) / sizeof(names[0]))

static uint64_t *root_of(struct roots *roots, size_t name)
{
	uint64_t *const all[NAMES] = {&roots->object_class, &roots->current_vm, &roots->global_symbols};

	return all[name];
}

/* Reads a file that is short; false if it is none such. */
static bool read_short(int fd, char buffer[FILE_MAX])
{
	ssize_t length = read(fd, buffer, FILE_MAX);

	if (length <= 0 || length == FILE_MAX)
		return false;
	buffer[length] = '\0';
	return !memchr(buffer, '\0', (size_t)length);
}

/* Takes a line off the text; NULL if there is none that is ended. */
static char *next_line(char **text)
{
	char *line = *text, *end = strchr(line, '\n');

	if (!end)
		return NULL;
	*end = '\0';
	*text = end + 1;
	return line;
}

/* Takes "WORD " off a line; NULL if it begins otherwise. */
static const char *after(const char *line, const char *word)
{
	size_t length = strlen(word);

	return line && strncmp(line, word, length) == 0 && line[length] == ' ' ? line + length + 1 : NULL;
}

/* An address as it is written: "0x", lower-case digits without zeros in front. */
static bool parse_address(const char *text, uint64_t *ret)
{
	char again[32];

	*ret = strtoull(text, NULL, 16);
	snprintf(again, sizeof(again), "0x%llx", (unsigned long long)*ret);
	return strcmp(text, again) == 0;
}

static bool is_variable(const struct module *module, uint64_t address)
{
	for (size_t i = 0; i < module->nr_data; i++)
		if (address % 8 == 0 && address >= module->data[i].start && address < module->data[i].end)
			return true;
	return false;
}

static bool parse(const struct module *module, char *text, struct roots *ret)
{
	const char *line = next_line(&text), *value;
	size_t count = 0, next = 0;
	char last_line[16];

	if (!line || strcmp(line, first_line) != 0)
		return false;
	value = after(next_line(&text), "build-id");
	if (!value || strcmp(value, module->build_id) != 0)
		return false;
	while ((value = after(line = next_line(&text), "symbol"))) {
		const char *address = NULL;
		uint64_t found;

		while (next < NAMES && !(address = after(value, names[next])))
			next++;
		if (!address || !parse_address(address, &found) || !is_variable(module, found + module->bias))
			return false;
		*root_of(ret, next++) = found + module->bias;
		count++;
	}
	snprintf(last_line, sizeof(last_line), "end %zu", count);
	return line && strcmp(line, last_line) == 0 && *text == '\0';
}

void roots_file_read(struct module *module, struct roots *ret)
{
	char text[FILE_MAX];
	int fd;

	*ret = (struct roots){0};
	if (!made_has(module->build_id))
		return;
	fd = made_open(module->build_id, session_digest(module), "roots", NULL);
	if (fd < 0)
		return;
	if (read_short(fd, text) && !parse(module, text, ret))
		*ret = (struct roots){0};
	close(fd);
}

struct content {
	const struct module *module;
	struct roots told, roots;
};

static bool write_roots(const void *context, FILE *file)
{
	const struct content *content = context;
	struct roots told = content->told, roots = content->roots;
	unsigned int count = 0;

	fprintf(file, "%s\nbuild-id %s\n", first_line, content->module->build_id);
	for (size_t i = 0; i < NAMES; i++) {
		uint64_t address = *root_of(&roots, i);

		if (address == 0 || *root_of(&told, i) != 0)
			continue;
		fprintf(file, "symbol %s 0x%llx\n", names[i], (unsigned long long)(address - content->module->bias));
		count++;
	}
	fprintf(file, "end %u\n", count);
	return fflush(file) == 0 && !ferror(file);
}

void roots_file_write(struct module *module, const struct roots *told, const struct roots *roots)
{
	const struct content content = {module, *told, *roots};

	if (module->build_id)
		free(made_keep(module->build_id, session_digest(module), "roots", write_roots, &content));
}
