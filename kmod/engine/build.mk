# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# The engine in user space: the fold loops in one archive, plans and the engine that
# carries them out in another, for the library, the simulator and the tests.

include kmod/engine/flags.mk

ENGINE_ISAS := $(fold-isas) $(if $(findstring x86_64,$(shell $(CC) -dumpmachine)),$(fold-isas-x86_64))
ENGINE_OBJS := $(patsubst %,$(B)/kmod/engine/fold_%.o,$(ENGINE_ISAS))
PLAN_OBJS := $(patsubst %,$(B)/kmod/engine/%.o,$(engine-objs))
OBJS += $(ENGINE_OBJS) $(PLAN_OBJS)

$(foreach isa,$(ENGINE_ISAS),\
	$(eval CFLAGS_fold_$(isa).o := $(fold-flags) $(fold-flags-$(isa))))
$(ENGINE_OBJS): kmod/engine/flags.mk
$(PLAN_OBJS) $(ENGINE_OBJS): override CFLAGS += -fPIC -fvisibility=hidden

$(B)/engine/libzcengine.a: $(ENGINE_OBJS)
	$(archive)

$(B)/engine/libzcplan.a: $(PLAN_OBJS)
	$(archive)
