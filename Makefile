# SPDX-License-Identifier: GPL-2.0-only
#
# zcoll: the module, the library, the command, and what tests them.
#
# One make builds everything outside the kernel: the build.mk of each folder
# adds its objects here. The module is built by the kernel's Kbuild, the driver
# tests by kselftest's lib.mk. Nothing is written outside the build folder.

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:

VERSION := 0.1.0

# ---------------------------------------------------------------- what to set

O          ?= $(or $(ZCOLL_BUILD),build)
PREFIX     ?= /usr/local
BINDIR     ?= $(PREFIX)/bin
LIBDIR     ?= $(PREFIX)/lib/$(shell $(CC) -print-multiarch)
INCLUDEDIR ?= $(PREFIX)/include
MANDIR     ?= $(PREFIX)/share/man
DATADIR    ?= $(PREFIX)/share
SYSCONFDIR ?= /etc
# The running kernel's headers if they are there: the link "build" may dangle
KDIR       ?= $(patsubst %/Makefile,%,$(wildcard /lib/modules/$(shell uname -r)/build/Makefile))

ifeq ($(origin CC),default)
CC := gcc
endif
CFLAGS ?= -O2 -g
override CFLAGS += -std=gnu11 -Wall -Wextra -Wmissing-prototypes -Wstrict-prototypes
override CPPFLAGS += -D_GNU_SOURCE -Iinclude -Iinclude/uapi

# -------------------------------------------------------------- common ground

B := $(abspath $(O))
export ZCOLL_BUILD := $(B)
# To other makes, the kernel's above all, O= would mean something else
MAKEOVERRIDES := $(filter-out O=%,$(MAKEOVERRIDES))

ifeq ($(V),1)
Q :=
E := @:
else
Q := @
E := @printf '  %-8s%s\n'
MAKEFLAGS += --no-print-directory
endif

# Compile; CFLAGS_name.o adds to one object, as in Kbuild
define compile
	$(E) CC $(@:$(B)/%=%)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(CFLAGS_$(@F)) -MMD -MP -c -o $@ $<
endef

# Link all prerequisites; LDLIBS is the target's own
define link
	$(E) LD $(@:$(B)/%=%)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o %.a,$^) $(LDLIBS)
endef

# The same from sources, all at once, with sanitizers
define sanitized
	$(E) CCLD $(@:$(B)/%=%)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(CFLAGS_$(@F)) -O1 -fsanitize=address,undefined \
		-fno-sanitize-recover=undefined -o $@ $(filter %.c %.a,$^) $(LDLIBS)
endef

define archive
	$(E) AR $(@:$(B)/%=%)
	$(Q)mkdir -p $(@D)
	$(Q)rm -f $@ && $(AR) rcs $@ $(filter %.o,$^)
endef

$(B)/%.o: %.c
	$(compile)

OBJS :=	# all objects of all folders, for their dependency files

all: kmod lib tools ## build the module, the library and the command

HOST_TESTS :=	# programs and scripts that print TAP and need no module
DEV_TESTS :=	# those that need it, beside the driver's own in selftests/zcoll

include kmod/engine/build.mk
include lib/build.mk lib/mpi/build.mk
include tools/build.mk
include $(wildcard selftests/*/build.mk)
-include $(OBJS:.o=.d)

# ----------------------------------------------------------------- the module

# The kernel's Kbuild writes beside its sources, so it gets links to them. With
# no kernel to build for on this machine, it is the virtual machines' 6.1.
KFARM := $(B)/kmod/host

kmod: ## build zcoll.ko for KDIR, or for the virtual machines' 6.1 if unset
ifneq ($(KDIR),)
	$(Q)mkdir -p $(KFARM)
	$(Q)find $(KFARM) -type l -delete
	$(Q)cp -rs $(CURDIR)/Kbuild $(CURDIR)/kmod $(CURDIR)/include $(KFARM)
	$(Q)$(MAKE) -C $(KDIR) M=$(KFARM) modules
else
	$(Q)tools/vm/module 6.1
endif

# ------------------------------------------------------------------ selftests

selftests: $(B)/host-tests $(B)/dev-tests ## build the tests
	$(Q)selftests/get-kselftest
	$(Q)$(MAKE) $(if $(Q),-s) -C selftests/zcoll

$(B)/host-tests: $(HOST_TESTS)
$(B)/dev-tests: $(DEV_TESTS)
$(B)/host-tests $(B)/dev-tests: Makefile
	$(Q)mkdir -p $(@D)
	$(Q)printf '%s\n' $(filter-out Makefile,$^) >$@

# ------------------------------------------------------------- run and check

setup: ## install the host packages that are missing
	$(Q)tools/vm/setup

run: setup ## boot 6.1, all-reduce arrays and train a classifier on it
	$(Q)$(MAKE) lib tools
	$(Q)tools/examples/demo

check: ## all tests, on the host and on three kernels
	$(Q)tools/vm/setup --mpi
	$(Q)$(MAKE) lib tools selftests
	$(Q)selftests/check

check-long: ## longer seeds, all tests on all kernels
	$(Q)tools/vm/setup --mpi
	$(Q)$(MAKE) lib tools selftests
	$(Q)selftests/check --long

check-debug: ## all tests and fault injection on the debug kernel
	$(Q)tools/vm/setup --mpi
	$(Q)$(MAKE) lib tools selftests
	$(Q)selftests/check --debug

bench: ## compare with MPI on two rigs; NODES=2 (to 8): between nodes; NATIVE=1: here
	$(Q)tools/vm/setup --bench
	$(Q)$(MAKE) lib tools bench-programs
	$(Q)selftests/bench/bench $(NODES:%=nodes%) $(if $(NATIVE),native)

# -------------------------------------------------------------------- install

# zcoll.pc names folders, so it is made anew when these change
$(B)/lib/zcoll.pc: $(B)/folders
$(B)/folders: FORCE
	$(Q)mkdir -p $(@D)
	$(Q)echo '$(PREFIX) $(LIBDIR)' | cmp -s - $@ || echo '$(PREFIX) $(LIBDIR)' >$@
FORCE:

DKMS_SRC := $(DESTDIR)/usr/src/zcoll-$(VERSION)

# MODE:SOURCE:DESTINATION; "link" makes a symbolic link with SOURCE as text
INSTALLED := \
	755:$(B)/tools/zcoll:$(BINDIR)/zcoll \
	644:include/zcoll.h:$(INCLUDEDIR)/zcoll.h \
	644:include/zcoll_comm.h:$(INCLUDEDIR)/zcoll_comm.h \
	644:include/zcoll_plan.h:$(INCLUDEDIR)/zcoll_plan.h \
	644:include/uapi/linux/zcoll.h:$(INCLUDEDIR)/linux/zcoll.h \
	644:include/uapi/linux/zcoll_plan.h:$(INCLUDEDIR)/linux/zcoll_plan.h \
	644:$(B)/lib/libzcoll.so.$(VERSION):$(LIBDIR)/libzcoll.so.$(VERSION) \
	link:libzcoll.so.$(VERSION):$(LIBDIR)/$(LIB_SONAME) \
	link:$(LIB_SONAME):$(LIBDIR)/libzcoll.so \
	644:$(B)/lib/libzcoll.a:$(LIBDIR)/libzcoll.a \
	644:$(B)/lib/zcoll.pc:$(LIBDIR)/pkgconfig/zcoll.pc \
	$(foreach m,$(MPIS),644:$(B)/lib/mpi/$m/libzcoll-mpi.so:$(LIBDIR)/zcoll/$m/libzcoll-mpi.so) \
	644:tools/completion/zcoll:$(DATADIR)/bash-completion/completions/zcoll \
	644:tools/install/60-zcoll.rules:$(SYSCONFDIR)/udev/rules.d/60-zcoll.rules \
	644:tools/install/sysusers.conf:$(SYSCONFDIR)/sysusers.d/zcoll.conf \
	$(foreach p,$(wildcard Documentation/man/*.[1-8]),644:$p:$(MANDIR)/man$(subst .,,$(suffix $p))/$(notdir $p))

# What loads the module at boot goes only with the module
ON_BOOT := 644:tools/install/modules-load.conf:$(SYSCONFDIR)/modules-load.d/zcoll.conf

install: lib tools $(if $(KDIR),install-kmod) ## install under DESTDIR and PREFIX
	$(Q)for f in $(INSTALLED) $(if $(KDIR),$(ON_BOOT)); do \
		mode=$${f%%:*} to=$(DESTDIR)$${f##*:} from=$${f#*:}; from=$${from%:*}; \
		$(if $(Q),printf '  INSTALL %s\n' "$$to";) \
		mkdir -p "$${to%/*}" || exit 1; \
		if [ $$mode = link ]; then ln -sf "$$from" "$$to"; \
		else install -m $$mode "$$from" "$$to"; fi || exit 1; \
	done
	$(if $(DESTDIR),,$(Q)ldconfig)
ifneq ($(KDIR),)
	$(if $(DESTDIR),,$(Q)tools/install/advice)
else
	@echo "All is installed but the module: there are no headers of the running kernel" \
		"(/lib/modules/$$(uname -r)/build)." && \
		echo "Install them, or give KDIR=DIR, and run make install again."
endif

install-kmod: kmod
	$(Q)$(MAKE) -C $(KDIR) M=$(KFARM) INSTALL_MOD_PATH=$(DESTDIR) INSTALL_MOD_DIR=extra \
		INSTALL_MOD_STRIP=1 modules_install

uninstall: ## remove what install put there
	$(Q)for f in $(INSTALLED) $(ON_BOOT); do rm -f "$(DESTDIR)$${f##*:}"; done
	$(Q)rm -f $(DESTDIR)/lib/modules/*/extra/zcoll.ko*
	$(if $(DESTDIR),,$(Q)ldconfig; depmod)

install-dkms: ## put the module's sources where dkms finds them
	$(Q)mkdir -p $(DKMS_SRC)
	$(Q)cp -r Kbuild kmod include LICENSES $(DKMS_SRC)
	$(Q)sed 's/@VERSION@/$(VERSION)/' tools/install/dkms.conf >$(DKMS_SRC)/dkms.conf
	@echo "Now: dkms add zcoll/$(VERSION) && dkms install zcoll/$(VERSION)"

clean: ## remove what was built, but not downloaded or built kernels
	$(Q)for f in $(B)/*; do case $${f##*/} in kernels|apt|src|kselftest) ;; *) rm -rf "$$f" ;; esac; done

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { split($$1, t, ":"); printf "  %-13s %s\n", t[1], $$2 }' $(MAKEFILE_LIST)
	@echo "Variables: V=1 shows commands; O=DIR builds elsewhere than in build/;" \
		"KDIR=DIR is the kernel" && echo "to build the module for; DESTDIR, PREFIX, LIBDIR," \
		"MANDIR, ... say where to install."

.PHONY: FORCE all kmod lib tools selftests setup run check check-long check-debug bench \
	install install-kmod install-dkms uninstall clean help
