# SPDX-License-Identifier: GPL-2.0
#
# Tests of the command: on the host (no device needed), and (dev_*) with the device.

TOOLT := $(B)/selftests/tools
TOOLT_PROGS := $(addprefix $(TOOLT)/,npy_test reference_test parse_test sim_test npytool)
OBJS += $(addsuffix .o,$(TOOLT_PROGS)) $(addprefix $(TOOLT)/,spoil.o solo.o)

$(TOOLT)/npy_test: $(B)/tools/npy.o
$(TOOLT)/reference_test: $(B)/tools/pattern.o $(B)/tools/reference.o
$(TOOLT)/parse_test: $(addprefix $(B)/tools/,parse.o rank.o msg.o)
$(TOOLT)/sim_test: $(SIM_OBJS) $(B)/engine/libzcplan.a
$(TOOLT)/sim_test.o: override CPPFLAGS += -Itools/sim -Ikmod/engine
$(TOOLT)/npytool: $(B)/tools/pattern.o $(B)/tools/reference.o
$(TOOLT_PROGS): LDLIBS = $(LIB_LIBS)
$(TOOLT_PROGS): %: %.o $(B)/lib/libzcoll.a
	$(link)

$(TOOLT)/spoil.o $(TOOLT)/solo.o: override CFLAGS += -fPIC
$(TOOLT)/spoil.so $(TOOLT)/solo.so: LDLIBS = -shared -ldl
$(TOOLT)/spoil.so $(TOOLT)/solo.so: %.so: %.o
	$(link)

HOST_TESTS += $(filter %_test,$(TOOLT_PROGS)) selftests/tools/run.sh selftests/tools/cli.sh \
	selftests/tools/sim.sh \
	selftests/tools/calibrate.sh selftests/tools/plan_select.sh \
	selftests/tools/plan_test.sh
DEV_TESTS += selftests/tools/dev_allreduce.sh selftests/tools/dev_perf.sh \
	selftests/tools/dev_digits.sh selftests/tools/dev_nodes.sh
selftests: $(TOOLT_PROGS) $(addprefix $(TOOLT)/,spoil.so solo.so) tools
