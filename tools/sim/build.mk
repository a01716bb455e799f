# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# The simulator: a subcommand of zcoll, and for its own test, an archive without it.

SIM_OBJS := $(patsubst %,$(B)/tools/sim/%.o,job memory message net node queue trace world)
SIM_CMD_OBJS := $(patsubst %,$(B)/tools/sim/%.o,campaign chart cmd_sim options report sweep)

$(SIM_OBJS) $(SIM_CMD_OBJS): override CPPFLAGS += -Ikmod/engine

ZCOLL_OBJS += $(SIM_OBJS) $(SIM_CMD_OBJS)
