# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The fold loops in user space: one archive, for tests and measurements.

include kmod/engine/flags.mk

ENGINE_OBJS := $(patsubst %,$(B)/kmod/engine/fold_%.o,$(fold-isas))
OBJS += $(ENGINE_OBJS)

$(foreach isa,$(fold-isas),$(eval CFLAGS_fold_$(isa).o := $(fold-flags) $(fold-flags-$(isa))))

$(B)/engine/libzcengine.a: $(ENGINE_OBJS)
	$(archive)
