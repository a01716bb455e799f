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
