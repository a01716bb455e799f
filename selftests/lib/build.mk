# SPDX-License-Identifier: GPL-2.0
#
# Tests of the library: on the host with a mock of the device, and (dev_*) with
# the device.

LIBT := $(B)/selftests/lib
LIBT_MOCK := $(LIBT)/calls $(LIBT)/collectives $(LIBT)/planner $(LIBT)/ranges \
	$(LIBT)/nodes $(LIBT)/settings
LIBT_HOST := $(LIBT)/env $(LIBT)/names $(LIBT_MOCK) $(LIBT)/store
LIBT_DEV := $(LIBT)/dev_calls $(LIBT)/dev_collectives $(LIBT)/dev_plans $(LIBT)/dev_ring \
	$(LIBT)/dev_errors $(LIBT)/dev_heap $(LIBT)/dev_idle $(LIBT)/dev_mail \
	$(LIBT)/dev_mail_results $(LIBT)/dev_nodes

OBJS += $(patsubst %,%.o,$(LIBT_HOST) $(LIBT_DEV)) $(LIBT)/mock.o $(LIBT)/ranks.o $(LIBT)/party.o

$(LIBT_HOST) $(LIBT_DEV): LDLIBS = $(LIB_LIBS)
$(LIBT_HOST) $(LIBT_DEV): %: %.o $(B)/lib/libzcoll.a
	$(link)

$(LIBT)/collectives.o $(LIBT)/planner.o $(LIBT)/settings.o: override CPPFLAGS += -Ilib
$(LIBT_MOCK): $(LIBT)/mock.o
$(LIBT_MOCK): LDLIBS += -Wl,--wrap=open,--wrap=ioctl,--wrap=io_uring_submit
$(LIBT)/store $(LIBT)/nodes $(LIBT)/settings $(LIBT)/dev_nodes: $(LIBT)/party.o
$(LIBT_DEV): $(LIBT)/ranks.o
$(LIBT)/dev_collectives $(LIBT)/dev_mail_results: $(LIBT)/against.o $(LIBT)/oracle.o $(B)/engine/libzcengine.a $(B)/engine/libzcplan.a

# What collectives on several nodes must give: the engine carries plans out. Built from the
# sources, with sanitizers; for other tests there is $(LIBT)/oracle.o.
ORACLE_SRCS := selftests/lib/oracle_test.c selftests/lib/oracle.c kmod/engine/fold_ref.c \
	$(patsubst %,kmod/engine/%.c,$(engine-objs))

$(LIBT)/oracle.o: override CPPFLAGS += -Ikmod/engine
OBJS += $(LIBT)/oracle.o $(LIBT)/against.o
$(LIBT)/oracle_test: override CPPFLAGS += -Ikmod/engine
$(LIBT)/oracle_test: LDLIBS = $(LIB_LIBS)
CFLAGS_oracle_test = $(fold-flags)
$(LIBT)/oracle_test: $(ORACLE_SRCS) $(B)/lib/libzcoll.a \
		$(wildcard kmod/engine/*.h) selftests/lib/oracle.h
	$(sanitized)

HOST_TESTS += $(LIBT)/oracle_test
selftests: $(LIBT)/oracle_test

# What a newcomer compiles first
$(LIBT)/hello: tools/examples/hello.c $(B)/lib/libzcoll.so
	$(E) LD $(@:$(B)/%=%)
	$(Q)$(CC) -Iinclude -Iinclude/uapi -Wall -Wextra -o $@ $< -L$(B)/lib -lzcoll \
		-Wl,-rpath,'$$ORIGIN/../../lib'

$(LIBT)/show_env: LDLIBS = $(LIB_LIBS)
$(LIBT)/show_env: $(LIBT)/show_env.o $(B)/lib/libzcoll.a
	$(link)
OBJS += $(LIBT)/show_env.o

$(LIBT)/show_nodes: LDLIBS = $(LIB_LIBS) \
	-Wl,--wrap=open,--wrap=ioctl,--wrap=io_uring_submit
$(LIBT)/show_nodes: $(LIBT)/show_nodes.o $(LIBT)/mock.o $(B)/lib/libzcoll.a
	$(link)
OBJS += $(LIBT)/show_nodes.o

# Found in place of libpmix
$(LIBT)/silent/libpmix.so.2: selftests/lib/silent_pmix.c
	$(E) LD $(@:$(B)/%=%)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -shared -fPIC -o $@ $<

HOST_TESTS += $(LIBT_HOST) selftests/lib/header.sh selftests/lib/symbols.sh \
	selftests/lib/launchers.sh
DEV_TESTS += $(LIBT_DEV)
selftests: $(LIBT)/hello $(LIBT)/show_env $(LIBT)/show_nodes $(LIBT)/silent/libpmix.so.2 \
	$(LIBT_HOST) $(LIBT_DEV) $(B)/lib/libzcoll.so
