// SPDX-License-Identifier: GPL-2.0
/*
 * The text form of plans: what is written is read again as the same plan, byte for
 * byte, and whatever else is read is refused with a word about where. Built with
 * sanitizers, since the input may come from anywhere.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zcoll_plan.h>

#include "../../kmod/engine/plan.h"
#include "../lib/tap.h"

static char error[ZCOLL_TEXT_MAX];

/* ---- a plan that has everything ---- */

static const char chain[] =
"{\"name\": \"chain\", \"collective\": \"allreduce\", \"nodes\": 4, \"segments\": 1, \"steps\": [\n"
"{\"kind\": \"send\", \"flags\": [\"first\"], \"who\": {\"last\": 0}, \"peer\": {\"add\": 1}, \"match\": 1},\n"
"{\"kind\": \"fold\", \"flags\": [\"first\"], \"who\": {\"first\": 1}, \"peer\": {\"add\": -1}},\n"
"{\"kind\": \"send\", \"who\": {\"first\": 1, \"last\": 2}, \"peer\": {\"add\": 1}, \"match\": 1,\n"
" \"after\": [{\"step\": 1, \"slice\": 0}]},\n"
"{\"kind\": \"final\", \"who\": {\"first\": 3}, \"after\": [{\"step\": 1, \"all\": true}]}]}\n";

/* Every key and every name of the text form */
static const char rich[] =
"{\"version\": 1, \"name\": \"rich\", \"collective\": \"reduce\", \"nodes\": 8, \"members\": 6,\n"
" \"segments\": 12, \"scratch\": 5, \"acc\": 3, \"flags\": [\"ordered\", \"agreed\"], \"levels\": [2, 4],\n"
" \"steps\": [\n"
"{\"step\": 0, \"kind\": \"gather\", \"repeat\": 2, \"flags\": [\"flip\"],\n"
" \"who\": {\"origin\": 3, \"first\": 1, \"last\": 6, \"every\": 4, \"lo\": 1, \"hi\": 2},\n"
" \"segments\": {\"of\": \"self\", \"at\": -2, \"each\": 3, \"count\": 4, \"width\": 2, \"blocks\": 3}},\n"
"{\"step\": 1, \"kind\": \"send\", \"repeat\": 3, \"flags\": [\"input\"], \"peer\": {\"add\": 1},\n"
" \"digit\": {\"stride\": 2, \"radix\": 4}, \"segments\": {\"of\": \"peer\"}, \"match\": 2,\n"
" \"after\": [null, {\"step\": 0, \"turn\": -1}, {\"step\": 4, \"slice\": 7}]},\n"
"{\"step\": 2, \"kind\": \"fold\", \"repeat\": 3, \"flags\": [\"store\"], \"peer\": {\"to\": 0},\n"
" \"dst\": {\"scratch\": 1, \"each\": -1, \"of\": \"peer\"}},\n"
"{\"step\": 3, \"kind\": \"fold\", \"src\": {\"scratch\": 0, \"of\": \"self\"}},\n"
"{\"step\": 4, \"kind\": \"deliver\", \"peer\": {\"xor\": 3}, \"after\": [{\"step\": 3, \"all\": true}]},\n"
"{\"step\": 5, \"kind\": \"fold\", \"flags\": [\"first\", \"result\"], \"peer\": {\"xor\": 1}},\n"
"{\"step\": 6, \"kind\": \"fold\", \"flags\": [\"store\", \"open\"], \"repeat\": 2, \"peer\": {\"add\": 1, \"each\": 2},\n"
" \"dst\": {\"scratch\": 0}},\n"
"{\"step\": 7, \"kind\": \"final\"},\n"
"{\"step\": 8, \"kind\": \"send\", \"flags\": [\"open\"], \"repeat\": 2, \"peer\": {\"add\": -1, \"each\": -2},\n"
" \"match\": 6}]}\n";

static struct zcoll_plan *parse(const void *text, size_t len)
{
	struct zcoll_plan *plan;

	*error = 0;
	return zcoll_plan_parse(text, len, &plan, error, sizeof(error)) ? NULL : plan;
}

/* Text and back, and the bytes themselves and back */
static bool round_trip(const struct zcoll_plan *plan)
{
	char *text = zcoll_plan_format(plan);
	struct zcoll_plan *one = text ? parse(text, strlen(text)) : NULL;
	struct zcoll_plan *two = parse(plan, plan->size);
	bool same = one && two && !memcmp(one, plan, plan->size) &&
		    !memcmp(two, plan, plan->size);

	if (!same)
		printf("# %s: %s\n%s\n", plan->name, error, text ? text : "");
	zcoll_plan_free(one);
	zcoll_plan_free(two);
	free(text);
	return same;
}

static bool text_round_trip(const char *text)
{
	struct zcoll_plan *plan = parse(text, strlen(text));
	bool same = plan && round_trip(plan);

	if (!plan)
		printf("# %s\n", error);
	zcoll_plan_free(plan);
	return same;
}

/* ---- generators ---- */

static bool algorithm_round_trip(const char *algo, unsigned int *made)
{
	static const uint32_t big[] = { 64, 100, 130, 257, 1000 };
	struct zcoll_plan_spec spec = { .size = sizeof(spec), .algo = algo };
	struct zcoll_plan *plan;
	bool same = true;
	unsigned int i;

	for (spec.collective = 1; spec.collective < ZCOLL_NR_COLLECTIVES; spec.collective++)
		for (i = 1; i <= 33 + sizeof(big) / sizeof(big[0]); i++) {
			spec.nodes = i <= 33 ? i : big[i - 34];
			spec.flags = i & 1 ? ZCOLL_PLAN_AGREED : 0;
			if (zcoll_plan_make(&spec, &plan, error, sizeof(error)))
				continue;
			same = same && round_trip(plan);
			zcoll_plan_free(plan);
			(*made)++;
		}
	return same;
}

static void test_generators(void)
{
	unsigned int i, made;
	const char *algo;

	for (i = 0; (algo = zcoll_plan_algorithm(i)); i++) {
		made = 0;
		ok(algorithm_round_trip(algo, &made) && made,
		   "%s: all plans are the same when written and read", algo);
	}
}

/* ---- chance ---- */

static uint64_t seed = 1;

/* splitmix64, Steele et al., Fast Splittable Pseudorandom Number Generators, 2014 */
static uint64_t chance(void)
{
	uint64_t z = seed += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* A few bytes of the plan become something else, mostly small, and the id is right again */
static void spoil_plan(struct zcoll_plan *plan)
{
	uint8_t *byte = (uint8_t *)plan;
	size_t from = offsetof(struct zcoll_plan, nodes);
	int i, n = 1 + chance() % 3;

	for (i = 0; i < n; i++)
		byte[from + chance() % (plan->size - from)] = chance() & 1 ? chance() % 6 : chance();
	plan->id = zc_plan_id(plan);
}

/* No field is lost: every plan that is read as bytes is the same after a trip as text */
static void test_chance_fields(const char *text)
{
	struct zcoll_plan *plan = parse(text, strlen(text));
	struct zcoll_plan *copy = malloc(plan->size), *read;
	unsigned int i, accepted = 0;
	bool same = true;

	for (i = 0; i < 10000 && same; i++) {
		memcpy(copy, plan, plan->size);
		spoil_plan(copy);
		read = parse(copy, copy->size);
		accepted += !!read;
		same = !read || round_trip(read);
		zcoll_plan_free(read);
	}
	ok(same && accepted > 500, "%s: spoilt plans are refused or stay the same (%u of %u stay)",
	   plan->name, accepted, i);
	free(copy);
	zcoll_plan_free(plan);
}

static void test_chance_text(const char *text)
{
	size_t len = strlen(text), n;
	struct zcoll_plan *plan;
	unsigned int i, accepted = 0;
	bool same = true;
	char *copy = malloc(len);

	for (i = 0; i < 10000 && same; i++) {
		memcpy(copy, text, len);
		for (n = 1 + chance() % 3; n; n--)
			copy[chance() % len] = chance() & 1 ? text[chance() % len] :
							      (char)chance();
		plan = parse(copy, len);
		accepted += !!plan;
		same = plan ? round_trip(plan) : *error;
		zcoll_plan_free(plan);
	}
	ok(same, "spoilt texts are refused with a message, or are plans (%u of %u)", accepted, i);
	free(copy);
}

/* Exactly as long as its part of the text, so that a read beyond it is found */
static void test_cut_off(const char *text)
{
	size_t len;
	bool refused = true;

	for (len = 0; len < strlen(text) - 2; len++) {
		char *part = malloc(len + !len);
		struct zcoll_plan *plan;

		memcpy(part, text, len);
		plan = parse(part, len);
		refused = refused && !plan && *error;
		zcoll_plan_free(plan);
		free(part);
	}
	ok(refused, "a text that is cut off anywhere is refused");
}

static void test_cut_off_binary(void)
{
	struct zcoll_plan *plan = parse(rich, strlen(rich)), *read;
	size_t len;
	bool refused = true;

	for (len = 0; len < plan->size; len++) {
		char *part = malloc(len + !len);

		memcpy(part, plan, len);
		read = parse(part, len);
		refused = refused && !read && *error;
		zcoll_plan_free(read);
		free(part);
	}
	ok(refused, "a plan that is cut off anywhere is refused");
	zcoll_plan_free(plan);
}

/* ---- what is refused ---- */

/* @from in the chain becomes @to: that is refused with @err and a message with @part */
static const struct {
	const char *from;
	const char *to;
	int err;
	const char *part;
} malformed[] = {
	{ "\"add\": 1", "\"ad\": 1", EINVAL, "/steps/0/peer/ad: there is no such key" },
	{ "\"match\": 1", "\"mach\": 1", EINVAL, "/steps/0/mach: there is no such key" },
	{ "\"nodes\"", "\"node\"", EINVAL, "/nodes: missing" },
	{ "\"nodes\": 4", "\"nodes\": -4", EINVAL, "/nodes: not a whole number from 0" },
	{ "\"nodes\": 4", "\"nodes\": 4.5", EINVAL, "/nodes: not a whole number" },
	{ "\"nodes\": 4", "\"nodes\": \"4\"", EINVAL, "/nodes: not a whole number" },
	{ "\"nodes\": 4", "\"nodes\": 4294967297", EINVAL, "/nodes: not a whole number" },
	{ "\"nodes\": 4", "\"nodes\": 99999999999999999999", EINVAL, "line 1, column" },
	{ "\"nodes\": 4", "\"nodes\": 4, \"nodes\": 5", EINVAL, "duplicate" },
	{ "\"nodes\": 4", "\"nodes\": 65537", E2BIG, "more than 65536 nodes" },
	{ "\"nodes\": 4", "\"nodes\": 4, \"id\": \"00\"", EBADMSG, "leave it out" },
	{ "\"nodes\": 4", "\"nodes\": 4, \"id\": 7", EINVAL, "/id: not a text" },
	{ "\"nodes\": 4", "\"nodes\": 4, \"version\": 2", EINVAL, "version 1" },
	{ "\"nodes\": 4", "\"nodes\": 4, \"levels\": [2, 2, 1, 1, 1]", EINVAL, "/levels:" },
	{ "\"nodes\": 4", "\"nodes\": 4, \"levels\": [2, 3]", EINVAL, "product of levels" },
	{ "\"nodes\": 4", "\"nodes\": 4, \"levels\": [2, 4294967298]", EINVAL, "/levels:" },
	{ "\"nodes\": 4", "\"nodes\": 4, \"levels\": 4", EINVAL, "/levels:" },
	{ "\"allreduce\"", "\"alreduce\"", EINVAL, "'alreduce' is no collective" },
	{ "\"allreduce\"", "17", EINVAL, "/collective: not a text" },
	{ "\"chain\"", "\"a chain\"", EINVAL, "without spaces" },
	{ "\"chain\"", "\"12345678901234567890123456789012\"", EINVAL, "more than 31 bytes" },
	{ "\"steps\": [", "\"stairs\": [", EINVAL, "/steps: not a list" },
	{ "\"kind\": \"send\"", "\"kind\": \"sent\"", EINVAL,
	  "/steps/0/kind: 'sent' is none of gather, send, fold, deliver, final" },
	{ "\"kind\": \"send\", ", "", EINVAL, "/steps/0/kind: missing" },
	{ "\"kind\": \"send\"", "\"kind\": \"send\", \"step\": 3", EINVAL, "this is step 0" },
	{ "\"kind\": \"final\"", "\"kind\": \"final\", \"repeat\": 0", EINVAL, "step 3: field repeat" },
	{ "[\"first\"]", "[\"frist\"]", EINVAL, "/steps/0/flags: 'frist' is none of first" },
	{ "[\"first\"]", "\"first\"", EINVAL, "/steps/0/flags: not a list" },
	{ "[\"first\"]", "[7]", EINVAL, "/steps/0/flags: not a list" },
	{ "{\"add\": 1}", "7", EINVAL, "/steps/0/peer: not an object" },
	{ "{\"add\": 1}", "{}", EINVAL, "/steps/0/peer: needs one of add, xor, to" },
	{ "{\"add\": 1}", "{\"add\": 1, \"to\": 2}", EINVAL, "needs one of add, xor, to" },
	{ "\"slice\": 0", "\"slice\": 0, \"turn\": 0", EINVAL, "needs one of slice, turn, all" },
	{ "\"all\": true", "\"all\": 0", EINVAL, "/steps/3/after/0/all" },
	{ "\"step\": 1, \"slice\"", "\"slice\"", EINVAL, "/steps/2/after/0/step: missing" },
	{ "\"step\": 1, \"slice\"", "\"step\": 65536, \"slice\"", EINVAL, "/steps/2/after/0/step" },
	{ "\"step\": 1, \"slice\"", "\"step\": 9, \"slice\"", EINVAL, "step 2: field after.step" },
	{ "[{\"step\": 1, \"slice\": 0}]", "[null, null, null, null]", EINVAL, "at most 3" },
	{ "[{\"step\": 1, \"slice\": 0}]", "{}", EINVAL, "at most 3" },
	{ "\"kind\": \"final\"", "\"kind\": \"final\", \"src\": {\"of\": \"self\"}", EINVAL,
	  "/steps/3/src/scratch: missing" },
	{ "\"kind\": \"final\"", "\"kind\": \"final\", \"segments\": {\"of\": \"all\"}", EINVAL,
	  "/steps/3/segments/of: 'all' is none of zero, self, peer" },
	{ "\"kind\": \"final\"", "\"kind\": \"final\", \"\\u001b[31m\": 1", EINVAL, "/steps/3/?[31m" },
	{ "{\"name\"", "[{\"name\"", EINVAL, "neither JSON" },
	{ "\"steps\"", "\"x\": \"\\u0000\", \"steps\"", EINVAL, "line 1, column" },
	{ "]}\n", "]} x", EINVAL, "end of file expected" },
};

static char *replaced(const char *text, const char *from, const char *to)
{
	const char *at = strstr(text, from);
	char *result = malloc(strlen(text) + strlen(to) + 1);

	if (!at)
		return strcpy(result, "");
	sprintf(result, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
	return result;
}

static void test_malformed(void)
{
	struct zcoll_plan *plan;
	size_t i;

	for (i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
		char *text = replaced(chain, malformed[i].from, malformed[i].to);
		int err = zcoll_plan_parse(text, strlen(text), &plan, error, sizeof(error));

		if (!ok(err == -malformed[i].err && !plan && strstr(error, malformed[i].part),
			"refused: %s", malformed[i].part))
			printf("# %d, \"%s\"\n", err, error);
		free(text);
	}
}

/* ---- limits ---- */

static int parse_repeated(const char *head, const char *item, unsigned int n, const char *tail)
{
	char *text = malloc(strlen(head) + n * strlen(item) + strlen(tail) + 1), *at = text;
	struct zcoll_plan *plan;
	int err;

	at = stpcpy(at, head);
	while (n--)
		at = stpcpy(at, item);
	at = stpcpy(at, tail);
	err = zcoll_plan_parse(text, at - text, &plan, error, sizeof(error));
	free(text);
	zcoll_plan_free(plan);
	return err;
}

static void test_limits(void)
{
	static const char head[] = "{\"name\": \"x\", \"collective\": \"reduce\", \"nodes\": 1, \"steps\": [";
	static const char final[] = "{\"kind\": \"final\", \"flags\": [\"first\"]}";
	static const char more[] = "{\"kind\": \"final\", \"flags\": [\"first\"]},";
	char end[64];
	struct zcoll_plan *plan;

	snprintf(end, sizeof(end), "%s]}", final);
	is(parse_repeated(head, more, 1023, end), 0, "1024 steps are read");
	is(parse_repeated(head, more, 1024, end), -E2BIG, "1025 steps are too many");
	has(error, "1025 steps; a plan has at most 1024", "and the message says so");
	is(parse_repeated(head, "[", 100000, "]}"), -EINVAL, "deep nesting is refused");
	is(parse_repeated(head, " ", 1 << 20, "]}"), -E2BIG, "a text of more than 1 MiB is refused");
	is(parse_repeated("   \n\t{", "", 0, "}"), -EINVAL, "blanks before a text are no binary");
	is(zcoll_plan_parse("", 0, &plan, error, sizeof(error)), -EINVAL, "nothing is no plan");
	is(zcoll_plan_parse("{", 1, &plan, NULL, 0), -EINVAL, "no buffer for the message is needed");
	is(zcoll_plan_parse("{", 1, &plan, error, 4), -EINVAL, "a short one");
	is(strlen(error), 3, "is filled");
}

static void test_format_refuses(void)
{
	struct zcoll_plan *plan = parse(chain, strlen(chain));
	char *text;

	plan->steps[0].kind = 99;
	plan->id = zc_plan_id(plan);
	text = zcoll_plan_format(plan);
	ok(!text && errno == EINVAL, "a plan that could not be read is not written");
	plan->steps[0].kind = ZCOLL_STEP_SEND;
	text = zcoll_plan_format(plan);
	ok(!text && errno == EINVAL, "a plan with another id is not written");
	zcoll_plan_free(plan);
}

int main(void)
{
	puts("TAP version 13");
	ok(text_round_trip(chain), "a small plan is the same when written and read");
	ok(text_round_trip(rich), "a plan with all there is, too");
	test_generators();
	test_chance_fields(chain);
	test_chance_fields(rich);
	test_chance_text(chain);
	test_chance_text(rich);
	test_cut_off(rich);
	test_cut_off_binary();
	test_malformed();
	test_limits();
	test_format_refuses();
	return tap_end();
}
