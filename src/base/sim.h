/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What base/wait.c and base/clock.c share: who sleeps for simulated time.
 */
#ifndef TR_BASE_SIM_H
#define TR_BASE_SIM_H

#include "base/compiler.h"
#include "base/wait.h"

#include <urcu/list.h>

struct sim_sleeper {
	struct cds_list_head list;
	struct waitq *wq;
	uint64_t deadline_ns;
};

/*
 * Under simulated time: registers a sleeper whose count is bumped when the
 * clock is moved to its deadline or stopped, and returns 1; or 0 if the
 * deadline has passed. With the kernel's clock: -ENODEV, nothing registered.
 */
int sim_sleep_start(struct sim_sleeper *s) MUST_CHECK;
void sim_sleep_end(struct sim_sleeper *s);

/* Wakes all sleepers of wq, whether they are counted yet or not. */
void waitq_bump(struct waitq *wq);

#endif
