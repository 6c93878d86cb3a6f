/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Goal: rows of a server become the document that they are, also those of a
 * newer server, and nonsense or a server that goes away is a failure. Method:
 * a socket pair on which the answer lies ready.
 */
#include "lib/test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cmd/doc.h"
#include "cmd/options.h"

static int read_answer(const char *answer, struct doc *doc)
{
	struct control c = { .command = "test", .silent = true };
	int fds[2], status;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_int_equal(write(fds[1], answer, strlen(answer)), strlen(answer));
	shutdown(fds[1], SHUT_WR);
	c.fd = fds[0];
	c.in = fdopen(fds[0], "r");
	status = doc_read(&c, doc);
	control_close(&c);
	close(fds[1]);
	return status;
}

static void becomes(const char *answer, const char *json)
{
	struct doc doc;
	char *text = NULL;
	size_t len = 0;
	FILE *f;

	assert_int_equal(read_answer(answer, &doc), EXIT_DONE);
	f = open_memstream(&text, &len);
	doc_json(&doc, f);
	fclose(f);
	assert_string_equal(text, json);
	free(text);
	doc_free(&doc);
}

static void documents(void **state)
{
	becomes("ok\n.\n", "{\"bdi\":[],\"wb\":[],\"exports\":[],"
			   "\"clients\":[]}\n");
	becomes("ok\n@one\na 1 count\nb Y bool\nc x\\040y text\n@wb 8:0\n"
		"state 20 hex\n@exports /a\\040b\nn 1 us\n@@ops READ\nn 2 us\n"
		"@@ops WRITE\n@exports /c\n@@ops READ\n@new\nz 3 new\n.\n",
		"{\"one\":{\"a\":1,\"b\":true,\"c\":\"x y\"},"
		"\"wb\":[{\"name\":\"8:0\",\"state\":\"0x14\"}],"
		"\"exports\":[{\"name\":\"/a b\",\"n\":1,\"ops\":["
		"{\"name\":\"READ\",\"n\":2},{\"name\":\"WRITE\"}]},"
		"{\"name\":\"/c\",\"ops\":[{\"name\":\"READ\"}]}],"
		"\"new\":{\"z\":3},\"bdi\":[],\"clients\":[]}\n");
}

static void failures(void **state)
{
	struct doc doc;

	assert_int_equal(read_answer("", &doc), EXIT_FAILED);
	assert_int_equal(read_answer("ok\n", &doc), EXIT_FAILED);
	assert_int_equal(read_answer("ok\n@one\na 1", &doc), EXIT_FAILED);
	assert_int_equal(read_answer("ok\n\n.\n", &doc), EXIT_FAILED);
	assert_int_equal(read_answer("ok\na 1\n.\n", &doc), EXIT_FAILED);
	assert_int_equal(read_answer("error 90 long\n", &doc), EXIT_FAILED);
	assert_int_equal(read_answer("error 22 no\\040such\n", &doc),
			 EXIT_USAGE);
	assert_int_equal(read_answer("what\n", &doc), EXIT_FAILED);
}

static void looking(void **state)
{
	const struct doc_row *x;
	struct doc doc;

	assert_int_equal(read_answer("ok\n@c\nn 1 us\n@x a\nn 2 us\n@@ops R\n"
				     "n 3 us\n@x b\nn 4 us\n.\n",
				     &doc),
			 EXIT_DONE);
	assert_int_equal(doc_number(&doc, doc_find(&doc, "c", NULL), "n"), 1);
	x = doc_find(&doc, "x", "a");
	assert_int_equal(doc_number(&doc, x, "n"), 2);
	assert_int_equal(doc_number(&doc, x, "m"), 0);
	x = doc_next(&doc, x, 2, "ops");
	assert_int_equal(doc_number(&doc, x, "n"), 3);
	assert_null(doc_next(&doc, x, 2, "ops"));
	assert_int_equal(doc_number(&doc, doc_find(&doc, "x", "b"), "n"), 4);
	assert_null(doc_find(&doc, "x", "c"));
	assert_int_equal(doc_number(&doc, NULL, "n"), 0);
	doc_free(&doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(documents),
		cmocka_unit_test(failures),
		cmocka_unit_test(looking),
	};

	return cmocka_run_group_tests(tests, leak_setup, leak_check);
}
