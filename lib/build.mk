# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# libzcoll: shared and static, of the same objects.

LIB_SONAME := libzcoll.so.0
LIB_PMIX := $(shell pkg-config --exists pmix 2>/dev/null && echo yes)

LIB_SRCS := bootstrap_env.c buffers.c call.c collectives.c command.c comm.c device.c key.c \
	idle.c loaded.c names.c planner.c request.c sequence.c settings.c text.c \
	time.c aggregator.c join.c join_nodes.c \
	$(patsubst %,mail/%.c,area call heap line pull) \
	$(patsubst %,boot/%.c,caller exchange failure frame gather guest meet nodes place proof receive server turn wire) \
	$(patsubst lib/%,%,$(wildcard lib/plan/*.c)) \
	$(if $(LIB_PMIX),boot/pmix.c boot/pmix_connect.c boot/pmix_calls.c boot/pmix_exchange.c,boot/nopmix.c)
LIB_OBJS := $(LIB_SRCS:%.c=$(B)/lib/%.o)
OBJS += $(LIB_OBJS)

# What the library needs, and who links libzcoll.a
LIB_LIBS := -luring -ljansson -lnettle -pthread -ldl -lm

# Of kmod/engine, what knows plans, and the loops; the library runs no engine
LIB_PLAN_OBJS := $(patsubst %,$(B)/kmod/engine/%.o,plan plan_valid plan_check plan_place prog) \
	$(ENGINE_OBJS)

$(LIB_OBJS): override CFLAGS += -fPIC -fvisibility=hidden
$(LIB_OBJS): override CPPFLAGS += -DZC_VERSION='"$(VERSION)"'
$(B)/lib/names.o: Makefile
$(patsubst %,$(B)/lib/boot/%.o,pmix pmix_connect pmix_calls pmix_exchange): override CPPFLAGS += -DZC_PMIX_LIB='"libpmix.so.2"' \
	$(shell pkg-config --cflags pmix 2>/dev/null)

lib: $(B)/lib/libzcoll.so $(B)/lib/libzcoll.a $(B)/lib/zcoll.pc ## build libzcoll

$(B)/lib/libzcoll.so.$(VERSION): $(LIB_OBJS) $(LIB_PLAN_OBJS) lib/libzcoll.map
	$(E) LD $(@:$(B)/%=%)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(LIB_SONAME) -Wl,-z,defs \
		-Wl,--version-script=lib/libzcoll.map -o $@ $(LIB_OBJS) \
		$(LIB_PLAN_OBJS) $(LIB_LIBS)

$(B)/lib/$(LIB_SONAME): $(B)/lib/libzcoll.so.$(VERSION)
	$(Q)ln -sf $(<F) $@

$(B)/lib/libzcoll.so: $(B)/lib/$(LIB_SONAME)
	$(Q)ln -sf $(<F) $@

$(B)/lib/libzcoll.a: $(LIB_OBJS) $(LIB_PLAN_OBJS)
	$(archive)

# Names the folders that the library will be installed in
$(B)/lib/zcoll.pc: lib/zcoll.pc.in Makefile
	$(E) GEN $(@:$(B)/%=%)
	$(Q)mkdir -p $(@D)
	$(Q)sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' \
		-e 's|@VERSION@|$(VERSION)|' $< > $@

.PHONY: lib
