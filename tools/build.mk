# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# The command zcoll, and the example that make run trains.

CALIBRATE_ISA := $(if $(findstring x86_64,$(shell $(CC) -dumpmachine)),x86_64,other)
ZCOLL_OBJS := $(patsubst %,$(B)/tools/%.o,zcoll cmd_calibrate cmd_help cmd_info cmd_run \
	cmd_aggregate cmd_allreduce cmd_perf perf_check perf_cost perf_counters perf_json \
	perf_measure perf_overlap perf_percentile perf_report pattern reference launch \
	rank relay array npy session progress parse msg suggest \
	$(addprefix plan/,cmd_plan make show check cost select options patience read rounds words svg) \
	$(addprefix calibrate/,wire measure fold isa_$(CALIBRATE_ISA)))
include tools/sim/build.mk
DIGITS_OBJS := $(patsubst %,$(B)/tools/examples/%.o,digits digits_data digits_net digits_train)
OBJS += $(ZCOLL_OBJS) $(DIGITS_OBJS)

# From the build folder they find the library built beside them; once installed,
# the loader finds the installed one
TOOLS_LIBS := $(B)/lib/libzcoll.so.0 -Wl,-rpath,'$$ORIGIN/../lib' -lm

$(B)/tools/zcoll: LDLIBS := $(TOOLS_LIBS) -ljansson -luring
$(B)/tools/zcoll: $(ZCOLL_OBJS) $(B)/engine/libzcengine.a $(B)/engine/libzcplan.a $(B)/lib/libzcoll.so.0
	$(link)

$(B)/tools/digits: LDLIBS := $(TOOLS_LIBS)
$(B)/tools/digits: $(DIGITS_OBJS) $(B)/lib/libzcoll.so.0
	$(link)

tools: $(B)/tools/zcoll $(B)/tools/digits ## build the command and its examples

.PHONY: tools
