# SPDX-License-Identifier: GPL-2.0
#
# The fold loops: their test, and their speed (fold_bench, by hand).

UNIT_B := $(B)/selftests/unit
OBJS += $(UNIT_B)/fold_test.o $(UNIT_B)/fold_bench.o

$(UNIT_B)/fold_test.o $(UNIT_B)/fold_bench.o: override CPPFLAGS += -Ikmod/engine
CFLAGS_fold_test.o := -ffp-contract=off

$(UNIT_B)/fold_test $(UNIT_B)/fold_bench: LDLIBS := -lm -pthread
$(UNIT_B)/fold_test $(UNIT_B)/fold_bench: %: %.o $(B)/engine/libzcengine.a
	$(link)

HOST_TESTS += $(UNIT_B)/fold_test
selftests: $(UNIT_B)/fold_test $(UNIT_B)/fold_bench

# Engines of all nodes in one process, for tests
ENGINE_HOST := $(patsubst %,selftests/unit/engine_%.c,host host_clock host_unit mem)

# Plans from hostile sources: the rules of their check one by one, and random ones.
# Built from the sources, with sanitizers, which the objects for others do not have.

PLAN_TESTS := $(UNIT_B)/plan_valid_test $(UNIT_B)/plan_fuzz
PLAN_CHECK_SRCS := $(patsubst %,kmod/engine/%.c,$(engine-objs))
$(UNIT_B)/plan_fuzz: $(ENGINE_HOST)

$(PLAN_TESTS): override CPPFLAGS += -Ikmod/engine -Iselftests/lib
$(PLAN_TESTS): $(UNIT_B)/%: selftests/unit/%.c $(PLAN_CHECK_SRCS) selftests/lib/plans.h \
		$(wildcard kmod/engine/*.h selftests/unit/engine_*.h) include/uapi/linux/zcoll_plan.h
	$(sanitized)

HOST_TESTS += $(PLAN_TESTS)
selftests: $(PLAN_TESTS)

# The checker of plans: plans by hand, their mutants carried out by the engine, and all that
# the library makes. The first two are built from the sources, with sanitizers.

PROOF_TESTS := $(UNIT_B)/plan_check_test $(UNIT_B)/plan_mutate_test
PROOF_SRCS := $(wildcard lib/plan/check*.c) $(PLAN_CHECK_SRCS)
$(UNIT_B)/plan_mutate_test: $(ENGINE_HOST) $(B)/lib/libzcoll.a

$(PROOF_TESTS): override CPPFLAGS += -Ikmod/engine
$(PROOF_TESTS): LDLIBS := -ljansson
$(PROOF_TESTS): $(UNIT_B)/%: selftests/unit/%.c $(PROOF_SRCS) $(wildcard lib/plan/check*.h) \
		$(wildcard kmod/engine/*.h selftests/unit/*.h) include/uapi/linux/zcoll_plan.h
	$(sanitized)

# The library's plans: all are proved, in a sweep; and what else is promised of them

MADE_TESTS := $(UNIT_B)/plan_sweep_test $(UNIT_B)/plan_make_test
OBJS += $(MADE_TESTS:%=%.o)
$(MADE_TESTS): %: %.o $(B)/lib/libzcoll.a
	$(link)

HOST_TESTS += $(PROOF_TESTS) $(MADE_TESTS)
selftests: $(PROOF_TESTS) $(MADE_TESTS)

# The text form of plans, read from anywhere: the library's plans, with sanitizers

JSON_TEST_SRCS := $(wildcard lib/plan/*.c) $(PLAN_CHECK_SRCS)

$(UNIT_B)/plan_json_test: LDLIBS := -ljansson -lm
$(UNIT_B)/plan_json_test: selftests/unit/plan_json_test.c $(JSON_TEST_SRCS) \
		$(wildcard lib/plan/*.h kmod/engine/*.h include/zcoll_plan.h) include/uapi/linux/zcoll_plan.h
	$(sanitized)

HOST_TESTS += $(UNIT_B)/plan_json_test
selftests: $(UNIT_B)/plan_json_test

# The engine: all nodes in one process, and one engine with peers that lie. Built from the
# sources, with sanitizers.

SOLO_TESTS := $(UNIT_B)/engine_rules_test $(UNIT_B)/engine_failure_test
ENGINE_TESTS := $(UNIT_B)/engine_test $(SOLO_TESTS)
$(SOLO_TESTS): selftests/unit/engine_solo.c
$(UNIT_B)/engine_test: $(ENGINE_HOST) $(B)/lib/libzcoll.a
$(UNIT_B)/engine_test: LDLIBS := -lm

$(ENGINE_TESTS): override CPPFLAGS += -Ikmod/engine
$(ENGINE_TESTS): $(UNIT_B)/%: selftests/unit/%.c selftests/unit/engine_plans.c \
		$(PLAN_CHECK_SRCS) $(wildcard kmod/engine/*.h selftests/unit/engine_*.h) \
		selftests/lib/tap.h include/uapi/linux/zcoll_plan.h
	$(sanitized)

HOST_TESTS += $(ENGINE_TESTS)
selftests: $(ENGINE_TESTS)

# Selection and cost: the library's plans, with sanitizers

$(UNIT_B)/plan_select_test: LDLIBS := -ljansson -lm
$(UNIT_B)/plan_select_test: selftests/unit/plan_select_test.c $(JSON_TEST_SRCS) \
		$(wildcard lib/plan/*.h kmod/engine/*.h include/zcoll_plan.h) include/uapi/linux/zcoll_plan.h
	$(sanitized)

HOST_TESTS += $(UNIT_B)/plan_select_test
selftests: $(UNIT_B)/plan_select_test

# The parser of what comes from other nodes, with sanitizers

$(UNIT_B)/wire_test: override CPPFLAGS += -Ikmod -Iselftests/lib
$(UNIT_B)/wire_test: selftests/unit/wire_test.c kmod/net/parse.c kmod/net/parse.h kmod/net/wire.h \
		kmod/desc.h $(wildcard kmod/engine/*.h) selftests/lib/tap.h \
		include/uapi/linux/zcoll.h
	$(sanitized)

HOST_TESTS += $(UNIT_B)/wire_test
selftests: $(UNIT_B)/wire_test
