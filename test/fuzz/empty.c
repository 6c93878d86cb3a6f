/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Does nothing: whether it compiles and links says if clang has libFuzzer.
 */
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	return 0;
}
