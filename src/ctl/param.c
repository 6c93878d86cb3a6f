/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Parameters by name. Happy path: the name is a knob of I/O modes or one of the
 * cache's parameters, in this order, and its module does the rest. Failure
 * modes: one line that names what is allowed; nothing has changed then.
 */
#include "ctl/param.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct parameter {
	const char *name, *unit;
	int64_t least, most;
} parameters[] = {
#define ROW_(name, unit, initial, least, most, sentence)                       \
	{ #name, unit, least, most },
	TR_PARAMETERS(ROW_)
#undef ROW_
};

static const struct parameter *find_parameter(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(parameters); i++)
		if (!strcmp(parameters[i].name, name))
			return &parameters[i];
	return NULL;
}

/* The export of a path, as MOUNT finds it. */
static int find_export(struct fs_server *fs, const char *path,
		       struct fs_export **out, char error[PARAM_ERROR_MAX])
{
	const char *rest = "";

	*out = path ? fs_export_by_path(fs, path, &rest) : NULL;
	if (!path || (*out && !rest[0]))
		return 0;
	snprintf(error, PARAM_ERROR_MAX, "nothing is exported as '%.100s'",
		 path);
	return -ENOENT;
}

static int no_such_name(const struct fs_export *x, const char *name,
			char error[PARAM_ERROR_MAX])
{
	if (x && find_parameter(name))
		snprintf(error, PARAM_ERROR_MAX,
			 "'%s' is the server's, not an export's", name);
	else
		snprintf(error, PARAM_ERROR_MAX,
			 "no parameter '%.60s': see tailrace-parameters(7)",
			 name);
	return -ENOENT;
}

/* ---- rows ---- */

static void knob_row(struct fs_server *fs, const struct fs_export *x,
		     enum io_knob knob, struct text *out)
{
	bool boolean = !strcmp(io_knob_allowed(knob), "Y or N");
	const struct io_knobs *own = x ? &x->knobs : &fs->knobs;
	char value[16], in_force[16];

	io_knob_format(knob, io_knob_get(own, NULL, knob), value,
		       sizeof(value));
	io_knob_format(knob,
		       io_knob_get(&fs->knobs, x ? &x->knobs : NULL, knob),
		       in_force, sizeof(in_force));
	text_printf(out, "%s %s %s%s%s\n", io_knob_name(knob), value,
		    boolean ? "bool" : "number", x ? " " : "",
		    x ? in_force : "");
}

static void parameter_row(struct fs_server *fs, const struct parameter *p,
			  struct text *out)
{
	int64_t value = 0;

	(void)!tr_cache_get(fs->options.cache, p->name, &value);
	text_printf(out, "%s %" PRId64 " %s\n", p->name, value, p->unit);
}

int param_get(struct fs_server *fs, const char *export, const char *name,
	      struct text *out, char error[PARAM_ERROR_MAX])
{
	const struct parameter *p;
	struct fs_export *x;
	int knob, ret;

	ret = find_export(fs, export, &x, error);
	if (ret)
		return ret;
	if (name) {
		knob = io_knob_find(name);
		p = find_parameter(name);
		if (knob >= 0)
			knob_row(fs, x, (enum io_knob)knob, out);
		else if (p && !x)
			parameter_row(fs, p, out);
		else
			return no_such_name(x, name, error);
		return 0;
	}
	for (knob = 0; knob < IO_NR_KNOBS; knob++)
		knob_row(fs, x, (enum io_knob)knob, out);
	for (size_t i = 0; !x && i < ARRAY_SIZE(parameters); i++)
		parameter_row(fs, &parameters[i], out);
	return 0;
}

/* ---- setting ---- */

static int set_knob(struct fs_server *fs, struct fs_export *x,
		    enum io_knob knob, const char *text, struct text *out,
		    char error[PARAM_ERROR_MAX])
{
	struct io_knobs *own = x ? &x->knobs : &fs->knobs;
	unsigned changed;
	int value, i, ret;

	ret = io_knob_parse(knob, text, x, &value);
	if (!ret)
		ret = io_knob_set(own, x ? &fs->knobs : NULL, knob, value,
				  &changed);
	if (ret) {
		snprintf(error, PARAM_ERROR_MAX, "%s is %s%s, not '%.60s'",
			 io_knob_name(knob), io_knob_allowed(knob),
			 x ? " or inherit" : "", text);
		return ret;
	}
	for (i = 0; out && i < IO_NR_KNOBS; i++)
		if (changed & (1u << i))
			knob_row(fs, x, (enum io_knob)i, out);
	return 0;
}

/* Digits and the suffix that goes with the unit. */
static int parse_value(const struct parameter *p, const char *text,
		       int64_t *out)
{
	static const struct {
		const char *suffix;
		bool time;
		int64_t scale;
	} scales[] = {
		{ "", false, 1 },	   { "", true, 1 },
		{ "K", false, 1ll << 10 }, { "M", false, 1ll << 20 },
		{ "G", false, 1ll << 30 }, { "T", false, 1ll << 40 },
		{ "ms", true, 1 },	   { "s", true, 1000 },
		{ "m", true, 60000 },
	};
	bool time = !strcmp(p->unit, "ms");
	char *end;
	long long n;

	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	errno = 0;
	n = strtoll(text, &end, 10);
	if (errno)
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(scales); i++) {
		if (scales[i].time != time)
			continue;
		if (time ? strcmp(end, scales[i].suffix)
			 : strcasecmp(end, scales[i].suffix))
			continue;
		return __builtin_mul_overflow(n, scales[i].scale, out) ? -EINVAL
								       : 0;
	}
	return -EINVAL;
}

static int set_parameter(struct fs_server *fs, const struct parameter *p,
			 const char *text, struct text *out,
			 char error[PARAM_ERROR_MAX])
{
	struct tr_cache *cache = fs->options.cache;
	int64_t old = 0, value = 0;
	int ret;

	(void)!tr_cache_get(cache, p->name, &old);
	ret = parse_value(p, text, &value);
	if (!ret)
		ret = tr_cache_set(cache, p->name, value);
	if (ret)
		snprintf(error, PARAM_ERROR_MAX,
			 "%s is %" PRId64 " to %" PRId64 " %s, not '%.60s'",
			 p->name, p->least, p->most, p->unit, text);
	else if (out && value != old)
		parameter_row(fs, p, out);
	return ret;
}

int param_set(struct fs_server *fs, const char *export, const char *name,
	      const char *value, struct text *out, char error[PARAM_ERROR_MAX])
{
	const struct parameter *p = find_parameter(name);
	struct fs_export *x;
	int knob, ret;

	ret = find_export(fs, export, &x, error);
	if (ret)
		return ret;
	knob = io_knob_find(name);
	if (knob >= 0)
		return set_knob(fs, x, (enum io_knob)knob, value, out, error);
	if (!p || x)
		return no_such_name(x, name, error);
	return set_parameter(fs, p, value, out, error);
}
