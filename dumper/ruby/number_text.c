#include "ruby/number_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The most significant digits of a double that are needed to tell it from all others. */
#define DIGITS_MAX 17

/* numeric.c, flo_to_s, v2_0_0_0 to v4_0_5 and head: 1e15 and larger round numbers, and those below 0.0001, have an exponent. */
#define POINT_MAX 16
#define POINT_MIN (-4)

/* internal/bignum.h, v1_9_3_0 to v4_0_5 and head: a BDIGIT is an unsigned int. */
#define BIGIT_BITS 32

/*
 * internal/bignum.h, BIGNUM_SIGN_BIT, BIGNUM_EMBED_LEN_SHIFT and BIGNUM_EMBED_LEN_NUMBITS, v2_1_0 to v4_0_5 and head: user
 * flags of the object. The sign's bit is set in a number that is not negative. The length has 3 bits up to 3.4, where the
 * other bits are not used, and 9 bits since 4.0.
 */
#define SIGN_FLAG      2u
#define EMBED_SHIFT    3
#define EMBED_LEN_MASK 0x1ffu

/* How many decimal digits are split off at once, and 10 to that power. */
#define CHUNK_DIGITS 9
#define CHUNK	     UINT64_C(1000000000)

/* As many 32-bit digits as NUMBER_DIGITS decimal digits need. */
#define BIGITS_MAX 64u

double number_of_flonum(uint64_t value)
{
	/* internal/numeric.h, rb_float_flonum_value, v2_0_0_0 to v4_0_5 and head. */
	const uint64_t bits = (value & ~UINT64_C(3)) | (2 - (value >> 63));
	const uint64_t turned = bits >> 3 | bits << 61;
	double ret;

	if (value == UINT64_C(0x8000000000000002))
		return 0;
	memcpy(&ret, &turned, sizeof(ret));
	return ret;
}

/* The fewest digits that tell a finite number from all others. Returns where its point is: 1 for 1.5. */
static int shortest(double number, char digits[DIGITS_MAX + 1])
{
	char buffer[64];
	int count = 1;
	size_t length = 1;

	do
		snprintf(buffer, sizeof(buffer), "%.*e", count - 1, number);
	while (strtod(buffer, NULL) != number && ++count <= DIGITS_MAX);
	digits[0] = buffer[0];
	for (const char *c = buffer + 1; *c != 'e' && length < DIGITS_MAX; c++)
		if (*c != '.')
			digits[length++] = *c;
	while (length > 1 && digits[length - 1] == '0')
		length--;
	digits[length] = '\0';
	return atoi(strchr(buffer, 'e') + 1) + 1;
}

void number_add_float(double number, struct text *text)
{
	char digits[DIGITS_MAX + 1];
	int point, count;

	if (isnan(number)) {
		text_format(text, "NaN");
		return;
	}
	text_format(text, "%s", signbit(number) ? "-" : "");
	if (isinf(number)) {
		text_format(text, "Infinity");
		return;
	}
	point = number == 0 ? 1 : shortest(fabs(number), digits);
	if (number == 0)
		strcpy(digits, "0");
	count = (int)strlen(digits);
	if (point > 0 && (point < count || point < POINT_MAX))
		text_format(text, "%.*s%.*s.%s", point, digits, point > count ? point - count : 0, "0000000000000000",
			    point < count ? digits + point : "0");
	else if (point <= 0 && point > POINT_MIN)
		text_format(text, "0.%.*s%s", -point, "0000", digits);
	else
		text_format(text, "%c.%se%+03d", digits[0], count > 1 ? digits + 1 : "0", point - 1);
}

void number_add_float_object(struct access *access, uint64_t object, struct text *text)
{
	/* internal/numeric.h, struct RFloat, v1_9_3_0 to v4_0_5 and head: a RBasic, and the number. */
	const uint64_t word = access_word(access, object + access_sizeof(access, S_basic));
	double number;

	if (access->failed)
		return;
	memcpy(&number, &word, sizeof(number));
	number_add_float(number, text);
}

/* Divides a number by CHUNK, and returns the remainder. */
static uint64_t divide(uint32_t *bigits, size_t count)
{
	uint64_t rest = 0;

	while (count-- > 0) {
		rest = rest << BIGIT_BITS | bigits[count];
		bigits[count] = (uint32_t)(rest / CHUNK);
		rest %= CHUNK;
	}
	return rest;
}

static void add_decimal(uint32_t *bigits, size_t count, struct text *text)
{
	/* A chunk has nearly 30 bits. */
	uint64_t chunks[BIGITS_MAX * BIGIT_BITS / (BIGIT_BITS - 3) + 1];
	size_t nr_chunks = 0;

	while (count > 0 && bigits[count - 1] == 0)
		count--;
	while (count > 0) {
		chunks[nr_chunks++] = divide(bigits, count);
		while (count > 0 && bigits[count - 1] == 0)
			count--;
	}
	text_format(text, "%" PRIu64, nr_chunks > 0 ? chunks[--nr_chunks] : 0);
	while (nr_chunks > 0)
		text_format(text, "%0*" PRIu64, CHUNK_DIGITS, chunks[--nr_chunks]);
}

void number_add_bignum(struct access *access, uint64_t object, uint64_t flags, struct text *text)
{
	const struct layout *layout = access->layout;
	const uint64_t user = flags >> access_enum(access, E_RUBY_FL_USHIFT);
	const struct layout_number *embed = &layout->enumerators[E_BIGNUM_EMBED_FLAG];
	uint64_t count, address;
	uint32_t bigits[BIGITS_MAX];

	if (!embed->present || !layout_has(layout, F_bignum_len) || !layout_has(layout, F_bignum_digits)) {
		access_fail(access, object);
		return;
	}
	if (flags & (uint64_t)embed->value) {
		count = user >> EMBED_SHIFT & EMBED_LEN_MASK;
		/* internal/bignum.h, struct RBignum: a union of the digits and of a struct that begins with a length. */
		address = access_address(access, object, F_bignum_len);
	} else {
		count = access_member(access, object, F_bignum_len);
		address = access_member(access, object, F_bignum_digits);
	}
	if (access->failed)
		return;
	if (count > BIGITS_MAX) {
		text_format(text, "(Integer of %" PRIu64 " bits)",
			    count > UINT64_MAX / BIGIT_BITS ? UINT64_MAX : count * BIGIT_BITS);
		return;
	}
	if (!access_bytes(access, address, bigits, count * sizeof(*bigits)))
		return;
	text_format(text, "%s", user & SIGN_FLAG ? "" : "-");
	add_decimal(bigits, count, text);
}
