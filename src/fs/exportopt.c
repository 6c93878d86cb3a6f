/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Options of exports: a word without a value sets a flag, is accepted because
 * what it asks for is so anyway, or is refused with the reason; one with a
 * value goes to its row's function.
 *
 * Failure modes: unknown words, and values that do not parse, are -EINVAL with
 * the list of what is allowed. Nothing is half set.
 */
#include "fs/exportopt.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The id that Linux calls nobody. */
#define ANONYMOUS 65534u

const struct export_options export_options_default = {
	.sync = true,
	.secure = true,
	.root_squash = true,
	.anon_uid = ANONYMOUS,
	.anon_gid = ANONYMOUS,
};

#define FLAG(field) offsetof(struct export_options, field)
#define ACCEPTED SIZE_MAX

/* Words without a value. */
static const struct {
	const char *word;
	size_t field; /* a bool of struct export_options, or ACCEPTED */
	bool value;
} flags[] = {
	{ "ro", FLAG(writable), false },
	{ "rw", FLAG(writable), true },
	{ "sync", FLAG(sync), true },
	{ "async", FLAG(sync), false },
	{ "secure", FLAG(secure), true },
	{ "insecure", FLAG(secure), false },
	{ "root_squash", FLAG(root_squash), true },
	{ "no_root_squash", FLAG(root_squash), false },
	{ "all_squash", FLAG(all_squash), true },
	{ "no_all_squash", FLAG(all_squash), false },
	/* Handles carry a keyed checksum: no subtree has to be checked. */
	{ "subtree_check", ACCEPTED, false },
	{ "no_subtree_check", ACCEPTED, false },
	/* Writes of one moment share a device sync anyway. */
	{ "wdelay", ACCEPTED, false },
	{ "no_wdelay", ACCEPTED, false },
	/* File systems mounted below are never entered. */
	{ "hide", ACCEPTED, false },
	{ "auth_nlm", ACCEPTED, false },
	{ "secure_locks", ACCEPTED, false },
	{ "no_auth_nlm", ACCEPTED, false },
	{ "insecure_locks", ACCEPTED, false },
};

static const char allowed[] =
	"ro, rw, sync, async, secure, insecure, root_squash, no_root_squash, "
	"all_squash, no_all_squash, [no_]subtree_check, [no_]wdelay, hide, "
	"anonuid=, anongid=, fsid=, sec=sys, io_cache_read=, io_cache_write=, "
	"io_interlock=, disable_splice_read=, direct_misaligned_num_pages=, "
	"direct_misaligned_dontcache=";

/* Ids may be written -2, as of old. */
static int parse_id(const char *text, uint32_t *out)
{
	long long v;
	char *end;

	if (!isdigit((unsigned char)text[0]) && text[0] != '-')
		return -EINVAL;
	errno = 0;
	v = strtoll(text, &end, 10);
	if (errno || *end || v < -2 || v >= UINT32_MAX || v == -1)
		return -EINVAL;
	*out = (uint32_t)v;
	return 0;
}

static int parse_fsid(const char *text, uint64_t *out)
{
	char *end;

	if (!strcmp(text, "root")) {
		*out = UINT64_MAX;
		return 0;
	}
	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	*out = strtoull(text, &end, 0);
	/* 0 is exports(5)'s other word for root. */
	if (!*out)
		*out = UINT64_MAX;
	return errno || *end ? -EINVAL : 0;
}

static int set_knob(struct export_entry *e, enum io_knob knob,
		    const char *value, char *error, size_t len)
{
	int v;

	if (io_knob_parse(knob, value, true, &v)) {
		snprintf(error, len, "%s=%s: the value is %s, or inherit",
			 io_knob_name(knob), value, io_knob_allowed(knob));
		return -EINVAL;
	}
	if (e->io[knob] != IO_INHERIT && e->io[knob] != v) {
		snprintf(error, len,
			 "%s=%s differs from an earlier one: it holds for the "
			 "whole export",
			 io_knob_name(knob), value);
		return -EINVAL;
	}
	e->io[knob] = v;
	return 0;
}

static int set_value(struct export_options *o, struct export_entry *e,
		     const char *name, const char *value, char *error,
		     size_t len)
{
	int knob = io_knob_find(name), ret;
	const char *range;

	if (knob >= 0)
		return set_knob(e, (enum io_knob)knob, value, error, len);
	if (!strcmp(name, "anonuid")) {
		ret = parse_id(value, &o->anon_uid);
		range = "0 to 4294967294, or -2";
	} else if (!strcmp(name, "anongid")) {
		ret = parse_id(value, &o->anon_gid);
		range = "0 to 4294967294, or -2";
	} else if (!strcmp(name, "fsid")) {
		ret = parse_fsid(value, &e->fsid);
		range = "a number or root";
	} else if (!strcmp(name, "sec")) {
		ret = strcmp(value, "sys") ? -EINVAL : 0;
		range = "sys";
	} else {
		snprintf(error, len, "unknown option '%s=': allowed are %s",
			 name, allowed);
		return -EINVAL;
	}
	if (ret)
		snprintf(error, len, "%s=%s: the value is %s", name, value,
			 range);
	return ret;
}

int export_option_set(struct export_options *o, struct export_entry *e,
		      const char *word, char *error, size_t len)
{
	const char *value = strchr(word, '=');
	char name[64];
	size_t i;

	if (value && (size_t)(value - word) < sizeof(name)) {
		memcpy(name, word, (size_t)(value - word));
		name[value - word] = 0;
		return set_value(o, e, name, value + 1, error, len);
	}
	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		if (strcmp(flags[i].word, word))
			continue;
		if (flags[i].field != ACCEPTED)
			*(bool *)((char *)o + flags[i].field) = flags[i].value;
		return 0;
	}
	snprintf(error, len, "unknown option '%s': allowed are %s", word,
		 allowed);
	return -EINVAL;
}
