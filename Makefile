# SPDX-License-Identifier: GPL-2.0-or-later
# The commands of README.md. Everything else is meson's: see meson.build.

PREFIX ?= /usr/local

all: build/build.ninja
	ninja -C build

build/build.ninja:
	meson setup build --buildtype=release --prefix=$(PREFIX)

# Every build and every test; the last line counts them.
check:
	tools/setup
	tools/check

# What the cache does, against the host kernel, in a minute.
demo:
	tools/setup
	$(MAKE) all
	tools/demo

# The build may have been made by another command, without a prefix.
install: all
	meson configure build -Dprefix=$(PREFIX)
	ninja -C build
	meson install -C build --no-rebuild

clean:
	rm -rf build build-asan build-tsan build-clang

.PHONY: all check demo install clean
