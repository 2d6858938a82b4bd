# Makefile - builds, installs and tests wiscsort with PGXS.
#
#   make               build wiscsort.so for the server of PG_CONFIG
#   make install       install it there; make uninstall takes it away
#   make installcheck  pg_regress against the running server (PGHOST, PGPORT, ...)
#   make check         install what is missing, build, run every test on private servers
#   make check-core    PostgreSQL's own suites with every sort taken by WiscSort (test/core/run)
#   make check-matrix  all of this for PostgreSQL 15 to 19 (test/matrix; for maintainers)
#   make mutants       does a test notice each of the one-line faults of test/mutants? (an hour)
#   make demo          the main job against core (ROWS=10000000)
#   make dist          wiscsort-VERSION.tar.gz and .zip of the last commit
#
# A line a step is printed; V=1 shows the commands.  To build outside the source:
# make -f SOURCE/Makefile VPATH=SOURCE.
#
# libhwy (vqsort), libaio, liburing, libpmem and ICU's headers are optional; `make libraries` says
# which were found.  libpmem is loaded when it is first needed (src/os/pmem.c).

MODULE_big = wiscsort
EXTENSION = wiscsort
DATA = sql/wiscsort--0.1.sql sql/wiscsort--0.1--0.2.sql
PGFILEDESC = "wiscsort - external sorts on keys and pointers"

PG_CONFIG ?= pg_config
PKG_CONFIG ?= pkg-config
self := $(firstword $(MAKEFILE_LIST))
source := $(patsubst %/,%,$(or $(VPATH),$(dir $(self))))
ifneq ($(words $(wildcard $(source)/wiscsort.control) $(source)),2)
$(error The path of the source has a space, which GNU make cannot search: run make in the source directory)
endif
ifneq ($(source),.)
VPATH := $(source)
endif
ifneq ($(word 2,$(PG_CONFIG)),)
$(error PG_CONFIG has a space in it ($(PG_CONFIG)), which PGXS cannot use: give it a link without)
endif

ifneq ($(V),1)
.SILENT:
quiet := $(findstring s,$(filter-out --%,$(firstword -$(MAKEFLAGS))))
tell = $(if $(quiet),,$(info $()  $(1)  $(2)))
endif
again = $(MAKE) --no-print-directory -f '$(self)'
at_once = $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(shell nproc))

cleaning := clean distclean maintainer-clean
early := check check-core check-matrix demo dist mutants

# `make -j8 clean all`: one goal after the other, in a make each.
ifneq ($(and $(filter $(cleaning),$(MAKECMDGOALS)),$(filter-out $(cleaning),$(MAKECMDGOALS))),)

.NOTPARALLEL:
.PHONY: $(MAKECMDGOALS)
$(sort $(MAKECMDGOALS)):
	+$(again) $@

# The targets that must work before any server-dev package is there.
else ifneq ($(filter $(early),$(MAKECMDGOALS)),)

ifneq ($(source),.)
$(error make $(firstword $(filter $(early),$(MAKECMDGOALS))) is for the source directory: run it there)
endif

dist_version = $(shell sed -n '/^   "version"/s/.*: "\(.*\)".*/\1/p' META.json)

.PHONY: $(early)
check:
	.ci/deps check
	$(again) $(at_once) all
	.ci/install '$(PG_CONFIG)' $(MAKEOVERRIDES)
	test/run --pg-config '$(PG_CONFIG)' $(CHECK_OPTS)

check-core:
	.ci/deps check-core
	$(again) $(at_once) all
	.ci/install '$(PG_CONFIG)' $(MAKEOVERRIDES)
	test/core/run --pg-config '$(PG_CONFIG)' $(CHECK_OPTS)

check-matrix:
	test/matrix $(VERSIONS)

dist:
	$(if $(dist_version),,$(error META.json has no version))
	git archive --prefix=wiscsort-$(dist_version)/ -o wiscsort-$(dist_version).tar.gz HEAD
	git archive --prefix=wiscsort-$(dist_version)/ -o wiscsort-$(dist_version).zip HEAD

mutants:
	test/mutants/run --pg-config $(PG_CONFIG) $(CHECK_OPTS)

demo:
	.ci/deps demo
	$(again) all bench/gensort
	.ci/install '$(PG_CONFIG)' $(MAKEOVERRIDES)
	ROWS=$(or $(ROWS),10000000) bench/demo --pg-config '$(PG_CONFIG)'

else

# --- the server -----------------------------------------------------------------------------------

version := $(word 2,$(shell $(or $(PG_CONFIG),false) --version 2>/dev/null))
PGXS := $(shell $(or $(PG_CONFIG),false) --pgxs 2>/dev/null)
ifeq ($(version),)
$(error $(or $(PG_CONFIG),The empty PG_CONFIG) does not run: install postgresql-server-dev-15 (or -16, -17, \
-18, -19), or set PG_CONFIG to the pg_config of your server)
endif
ifeq ($(strip $(foreach v,15 16 17 18 19,$(filter $(v) $(v).% $(v)beta% $(v)rc% $(v)devel%,$(version)))),)
$(error $(PG_CONFIG) belongs to PostgreSQL $(version), and wiscsort supports 15, 16, 17, 18 and 19: set \
PG_CONFIG to the pg_config of such a server)
endif
ifneq ($(word 2,$(PGXS)),)
$(error The server has a space in its path ($(PGXS)), which PGXS cannot use)
endif
ifeq ($(wildcard $(PGXS)),)
$(error The development files of PostgreSQL $(version) are missing: install \
postgresql-server-dev-$(firstword $(subst ., ,$(version))), or set PG_CONFIG to the pg_config of your server)
endif

# --- what is built --------------------------------------------------------------------------------

in_source = $(patsubst $(source)/%,%,$(wildcard $(addprefix $(source)/,$(1))))
SOURCES := $(sort $(call in_source,src/*.c src/*/*.c src/exec/below/*.c))
OBJS := $(SOURCES:.c=.o)
UNIT_TESTS := $(basename $(sort $(call in_source,test/unit/test_*.c)))
REGRESS = setup types multi plans cursors executor joins merge threads heap heap_ties keys explain errors corner \
	edges inline limits ranges
REGRESS_OPTS = --inputdir=$(source)/test --outputdir=test/out --encoding=UTF8 --no-locale
REGRESS_PREP = test/out

ifneq ($(source),.)
ifneq ($(call in_source,src/*.o src/*/*.o src/exec/below/*.o .build/flags),)
$(error The source directory $(source) has a build in it: run make clean there first)
endif
endif

# Optional libraries.  Debian's libaio has no .pc file, hence the second probe.
found = $(shell $(PKG_CONFIG) --exists $(1) 2>/dev/null && echo yes)
header = $(shell printf '\043include <$(1)>\n' | $(or $(CC),cc) -E -x c - >/dev/null 2>&1 && echo yes)
HAVE_CXX := $(shell $(CXX) --version >/dev/null 2>&1 && echo yes)
WITH_LIBHWY ?= $(if $(HAVE_CXX),$(call found,libhwy libhwy-contrib))
WITH_LIBAIO ?= $(or $(call found,libaio),$(call header,libaio.h))
WITH_LIBURING ?= $(or $(call found,liburing),$(call header,liburing.h))
WITH_LIBPMEM ?= $(call found,libpmem)
WITH_ICU ?= $(or $(call found,icu-i18n),$(call header,unicode/ucol.h))

ifeq ($(WITH_LIBHWY),yes)
OBJS += src/index/vqsort.o
HWY_CXXFLAGS := $(shell $(PKG_CONFIG) --cflags libhwy libhwy-contrib)
SHLIB_LINK += $(shell $(PKG_CONFIG) --libs libhwy-contrib libhwy)
PG_CPPFLAGS += -DHAVE_LIBHWY
endif
ifeq ($(WITH_LIBAIO),yes)
PG_CPPFLAGS += -DHAVE_LIBAIO
SHLIB_LINK += -laio
endif
ifeq ($(WITH_LIBURING),yes)
PG_CPPFLAGS += -DHAVE_LIBURING
SHLIB_LINK += -luring
endif
ifeq ($(WITH_LIBPMEM),yes)
PG_CPPFLAGS += -DHAVE_LIBPMEM
endif
ifeq ($(WITH_ICU),yes)
PG_CPPFLAGS += -DHAVE_ICU $(shell $(PKG_CONFIG) --cflags icu-i18n 2>/dev/null)
endif
PG_CPPFLAGS += -I$(source)/src
SHLIB_LINK += -pthread
PG_CFLAGS += -pthread -fvisibility=hidden -Wall -Wextra -Wno-unused-parameter -MMD -MP $(WERROR) $(SANITIZE)
EXTRA_CLEAN = $(UNIT_TESTS) test/unit/*.d bench/gensort test/out .build \
	src/*.o src/*/*.o src/exec/below/*.o src/*.d src/*/*.d src/exec/below/*.d

# JIT cannot inline anything useful from here: no bitcode, no need for clang.
override with_llvm := no

include $(PGXS)

ifeq ($(shell command -v $(firstword $(CC)) || true),)
$(error PostgreSQL $(version) was built with $(firstword $(CC)), which is not here: install it, or set CC)
endif

# --- rebuilt when this changes --------------------------------------------------------------------

# $(call record,NAME,CONTENT): brings the file .build/NAME up to date, if its content is another.
record = $(if $(subst <$(strip $(2))>,,<$(strip $(file <.build/$(1)))>),$(file >.build/$(1),$(strip $(2))))
UNIT_CFLAGS = -O1 -g -Wall -Wextra -Werror -Wno-unused-parameter -Wno-sign-compare \
	-Wno-format-truncation -MMD -MP \
	-I$(source)/src -I$(includedir_server) $(CPPFLAGS) $(SANITIZE)
COMPILE_HWY = $(CXX) -O2 -g -fPIC -fno-exceptions -fno-rtti -Wall -Wextra -MMD -MP $(WERROR) $(SANITIZE) \
	$(HWY_CXXFLAGS)
server := PostgreSQL $(shell $(PG_CONFIG) --version) $(pkglibdir) $(includedir_server) $(PGXS)
compiler := $(shell $(CC) --version | head -n 1)

ifneq ($(filter-out $(cleaning),$(or $(MAKECMDGOALS),all)),)
$(shell mkdir -p .build)
$(call record,unit,$(server) $(compiler) $(CC) $(UNIT_CFLAGS))
endif
elsewhere := $(cleaning) unit libraries installcheck uninstall test/% bench/%
ifneq ($(filter-out $(elsewhere),$(or $(MAKECMDGOALS),all)),)
ifeq ($(WITH_LIBHWY),yes)
$(call record,hwy,$(shell $(CXX) --version | head -n 1) $(COMPILE_HWY) \
	$(shell $(PKG_CONFIG) --modversion libhwy))
endif
$(call record,flags,$(server) $(compiler) $(COMPILE.c))
$(call record,objects,$(OBJS) $(LDFLAGS) $(LDFLAGS_SL) $(SHLIB_LINK))
endif

# --- rules ----------------------------------------------------------------------------------------

ours := $(filter-out src/index/vqsort.o,$(OBJS))
$(ours): %.o: %.c .build/flags
	$(call tell,CC  ,$<)
	mkdir -p $(@D)
	$(COMPILE.c) -o $@ $<

src/index/vqsort.o: src/index/vqsort.cc .build/hwy
	$(call tell,CXX ,$<)
	mkdir -p $(@D)
	$(COMPILE_HWY) -c -o $@ $<

$(shlib): .build/objects
ifneq ($(V),1)
link := $(LINK.shared)
LINK.shared = $(call tell,LD  ,$@)$(link)
endif

# The pure parts, compiled without a server behind them.
.PHONY: unit libraries
unit: $(UNIT_TESTS)
$(UNIT_TESTS): %: %.c .build/unit
	$(call tell,CC  ,$<)
	mkdir -p $(@D)
	$(CC) $(UNIT_CFLAGS) -MF $@.d -MT $@ -o $@ $< -lm -lpthread \
		$(if $(filter yes,$(WITH_LIBAIO)),-laio) $(if $(filter yes,$(WITH_LIBURING)),-luring) \
		$(if $(filter yes,$(WITH_ICU)),-licui18n -licuuc)

bench/gensort: bench/gensort.c
	$(call tell,CC  ,$<)
	mkdir -p $(@D)
	$(CC) -O2 -Wall -Wextra -Werror -o $@ $<

test/out:
	mkdir -p $@

# Objects know their headers, and unit tests the sources they include.
-include $(OBJS:.o=.d) $(UNIT_TESTS:=.d)

.PHONY: where
installdirs: where
where: all
	$(call tell,INST,into $(DESTDIR)$(pkglibdir) and $(DESTDIR)$(datadir)/extension)

without_queue = without libaio and liburing, runs of rows are read one block after the other
without_icu = its headers. Text under its collations is sorted by keys that PostgreSQL makes
say = $(info $(1)$(if $(filter yes,$(2)),found$(3),missing: $(4)))
libraries:
	$(call say,libhwy:   ,$(WITH_LIBHWY), (sort kernel vqsort),the sort kernel is PostgreSQL's sort_template)
	$(call say,libaio:   ,$(WITH_LIBAIO), (many reads at once),$(without_queue))
	$(call say,liburing: ,$(WITH_LIBURING), (many reads at once),$(without_queue))
	$(call say,libpmem:  ,$(WITH_LIBPMEM),,tables on persistent memory are mapped as any other)
	$(call say,ICU:      ,$(WITH_ICU),,$(without_icu))
	@:

# Reported by the goal `all`, and by nothing that only needs it.
ifneq ($(filter all,$(or $(MAKECMDGOALS),all)),)
ifeq ($(quiet),)
all: libraries
endif
endif

endif
