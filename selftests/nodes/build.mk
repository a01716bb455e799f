# SPDX-License-Identifier: GPL-2.0
#
# Tests on several nodes, in one machine or in several. They are run by selftests/nodes/run.

NODEST := $(B)/selftests/nodes
NODEST_PROGS := $(addprefix $(NODEST)/,grid flight faults)
NODEST_OBJS := $(addprefix $(NODEST)/,meet.o team.o trial.o recipe.o)
OBJS += $(NODEST_OBJS) $(addsuffix .o,$(NODEST_PROGS))

$(NODEST_OBJS) $(addsuffix .o,$(NODEST_PROGS)): override CPPFLAGS += -Iselftests/lib
$(NODEST_PROGS): LDLIBS = $(LIB_LIBS)
$(NODEST_PROGS): %: %.o $(NODEST_OBJS) $(LIBT)/oracle.o $(B)/lib/libzcoll.a \
		$(B)/engine/libzcplan.a $(B)/engine/libzcengine.a
	$(link)

selftests: $(NODEST_PROGS)
