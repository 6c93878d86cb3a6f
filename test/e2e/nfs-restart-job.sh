#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What nfs-restart.sh runs on the client: copies $SCRATCH/source and syncs.
set -eu
for i in 1 2 3 4 5 6 7 8; do
	echo "$i" >>"$SCRATCH/at"
	dd if="$SCRATCH/source/$i" of="$i" bs=47008 conv=fsync status=none
	cmp "$SCRATCH/source/$i" "$i"
done
