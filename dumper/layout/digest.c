#include "layout/digest.h"

#include <nettle/sha2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_BYTES  (INT64_C(2) << 30)
#define CHUNK	   (256 << 10)
#define HASH_BYTES 32

bool digest_of_file(int fd, char ret[DIGEST_LENGTH + 1])
{
	uint8_t hash[HASH_BYTES], *chunk = malloc(CHUNK);
	struct sha256_ctx context;
	ssize_t length = -1;
	off_t done = 0;

	sha256_init(&context);
	while (chunk && done <= MAX_BYTES && (length = pread(fd, chunk, CHUNK, done)) > 0) {
		sha256_update(&context, (size_t)length, chunk);
		done += length;
	}
	free(chunk);
	if (length != 0)
		return false;
	sha256_digest(&context, HASH_BYTES, hash);
	for (size_t i = 0; i < HASH_BYTES; i++)
		snprintf(ret + 2 * i, 3, "%02x", hash[i]);
	return true;
}
