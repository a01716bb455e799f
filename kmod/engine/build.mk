# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The fold loops in user space: one archive, for tests and measurements.

include kmod/engine/flags.mk

ENGINE_ISAS := $(fold-isas) $(if $(findstring x86_64,$(shell $(CC) -dumpmachine)),$(fold-isas-x86_64))
ENGINE_OBJS := $(patsubst %,$(B)/kmod/engine/fold_%.o,$(ENGINE_ISAS))
OBJS += $(ENGINE_OBJS)

$(foreach isa,$(ENGINE_ISAS),\
	$(eval CFLAGS_fold_$(isa).o := $(fold-flags) $(fold-flags-$(isa))))
$(ENGINE_OBJS): kmod/engine/flags.mk

$(B)/engine/libzcengine.a: $(ENGINE_OBJS)
	$(archive)
