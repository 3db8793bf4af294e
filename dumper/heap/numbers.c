#include "heap/numbers.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

void number_text(uint64_t value, char ret[NUMBER])
{
	char digits[32];
	int length = snprintf(digits, sizeof(digits), "%" PRIu64, value), at = 0;

	for (int i = 0; i < length; i++) {
		if (i > 0 && (length - i) % 3 == 0)
			ret[at++] = ',';
		ret[at++] = digits[i];
	}
	ret[at] = '\0';
}

void number_bytes(uint64_t value, char ret[NUMBER])
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double scaled = (double)value;
	size_t unit = 0;

	while (scaled >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		scaled /= 1024;
		unit++;
	}
	snprintf(ret, NUMBER, unit == 0 ? "%.0f %s" : "%.1f %s", scaled, units[unit]);
}
