#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# plan_test.sh - zcoll plan: make, show, check; what is refused; pictures, pages and
# completion; needs no device
# shellcheck disable=SC2317 # functions called by t
# shellcheck source=selftests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

docs=$top/Documentation
plan() { "$zcoll" plan "$@"; }

# block N FILE: the text of the N-th block between ``` and ``` of a page
block() { awk -v n="$1" '/^```/ { on = !on; if (on) i++; next } on && i == n' "$2"; }

algorithms="ring pairwise recursive-doubling halving-doubling circulant binomial knomial
	double-tree bruck hierarchical aggregator"

# --------------------------------------------------------------------- make

makes_each() {
	for algo in $algorithms; do
		plan make "$algo" -N 8 >"$algo.json" || return 1
	done
	plan make local -N 1 >local.json
}

same_as_binary() {
	for algo in $algorithms; do
		plan make "$algo" -N 8 --binary >bin && plan show bin --json >text &&
			cmp text "$algo.json" || return 1
	done
}

makes_options() {
	plan make knomial -N 27 --radix 3 --coll reduce | plan check - >/dev/null &&
		plan make hierarchical -N 32 --levels 4,8 | plan check - >/dev/null &&
		plan make ring -N 6 --agreed | plan check - | grep -q "agreed .* yes"
}

levels_both_ways() { cmp <(plan make hierarchical -N 32 --levels 4,8) <(plan make hierarchical -N 32 --levels 4x8); }

# One object for each step, on a line of its own
one_line_a_step() {
	grep -c '^		{"step": ' ring.json >lines
	is "$(sed -n '/"steps"/,$p' ring.json | grep -o '"step": [0-9]*, "kind"' | wc -l)" "$(cat lines)"
}

# -------------------------------------------------------------------- check

checks_each() {
	for algo in $algorithms; do
		plan check "$algo.json" >out && grep -q " is right$" out || return 1
	done
}

rounds_of() { plan check "$1" | sed -n 's/^  rounds *//p'; }
shown_rounds_of() { plan show "$1" | sed -n 's/^rounds: //p'; }

rounds_are_the_same() {
	for algo in $algorithms; do
		is "$(rounds_of "$algo.json")" "$(shown_rounds_of "$algo.json")" || return 1
	done
}

# A fold that no longer waits: both its own error text and exit status
counterexample() {
	block 4 "$docs/plans.md" | sed 's/{"step": 3, "slice": 0}, //' >wrong.json
	fails "step 4" plan check wrong.json && [ ! -s out ]
}

counterexample_json() {
	run plan check wrong.json --json
	is 1 "$status" && grep -q '"right": false' out && grep -q '"error": ".*step 4' out
}

json_facts() {
	run plan check ring.json --json
	is 0 "$status" && grep -q '"right": true' out && grep -q '"rounds": 14' out
}

# --------------------------------------------------------------------- show

# as_in WORDS COMMAND...
prints() {
	local words=$1
	shift
	run "$@"
	is 0 "$status" && grep -qF -e "$words" out && return
	echo "no '$words' in:"
	cat out
	return 1
}

shows_node() {
	prints "node 3: rounds: 14" plan show ring.json --node 3 &&
		is 14 "$(grep -c ' send ' <(sed -n '/^node/,$p' out))"
}

# In the table of rounds, each message of the ring goes to the next node
shows_peers() {
	plan show ring.json | sed -n '/^  round/,$p' | grep -oE '[0-9]+>[0-9]+' | sort -u >pairs
	is "0>1 1>2 2>3 3>4 4>5 5>6 6>7 7>0" "$(tr '\n' ' ' <pairs | sed 's/ $//')"
}

fits_terminal() {
	for algo in $algorithms; do
		plan show "$algo.json" | sed '1,/^rounds/d'
	done >all
	[ "$(wc -L <all)" -le 120 ]
}

shows_large() { prints "not shown, there are too many turns" plan show - < <(plan make ring -N 4096); }

# A plan that never ends is no plan, but can be looked at
shows_loop() {
	block 4 "$docs/plans.md" | sed 's/\("kind": "fold".*\)}/\1, "after": [{"step": 2, "slice": 0}]}/' >loop.json
	prints "it never ends" plan show loop.json
}

# ---------------------------------------------------------------------- svg

is_xml() { python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$1"; }

draws_each() {
	for algo in $algorithms; do
		plan show "$algo.json" --svg pic.svg && is_xml pic.svg || return 1
	done
}

draws_all_messages() {
	plan show ring.json --svg pic.svg
	is "$((8 * 14))" "$(grep -c '^<path class="re.*d="M[0-9]*,[0-9]* L' pic.svg)"
}

draws_summary() {
	plan make circulant -N 64 | plan show - --svg pic.svg && is_xml pic.svg &&
		! grep -q 'class="life"' pic.svg && grep -q '64 messages: 0&gt;' pic.svg
}

# Labels of a round that are at the same height keep apart
labels_apart() {
	plan make pairwise -N 8 | plan show - --svg pic.svg
	sed -nE 's/^<text class="label" x="([0-9]+)" y="([0-9]+)".*/\2 \1/p' pic.svg | sort -n -k1 -k2 |
		awk '$1 == y && $2 - x < 8 { exit 1 } { y = $1; x = $2; n++ } END { if (!n) exit 1 }'
}
draws_to_stdout() { plan show ring.json --svg - | cmp - <(plan show ring.json --svg p.svg && cat p.svg); }
names_are_escaped() {
	sed '/"id"/d; s/"name": "[^"]*"/"name": "<\&>"/' ring.json >odd.json
	plan show odd.json --svg pic.svg && is_xml pic.svg && grep -q '&lt;&amp;&gt;: allreduce' pic.svg
}

# -------------------------------------------------------------------- pages

page_example_is_made() { cmp <(block 1 "$docs/plans.md") <(plan make ring -N 4); }
page_shows_it() {
	plan make ring -N 4 | plan show - >shown
	cmp <(block 2 "$docs/plans.md") shown
}
page_picture() { plan make ring -N 4 | plan show - --svg pic.svg && cmp "$docs/ring.svg" pic.svg; }
page_hand_made() { block 4 "$docs/plans.md" >chain.json && plan check chain.json >facts && cmp <(block 5 "$docs/plans.md") facts; }
# The linear all-reduce; with one step as the match of two sends of a node it is refused
page_linear() {
	block 6 "$docs/plans.md" >linear.json && plan check linear.json || return 1
	sed 's/"match": 8/"match": 7/; s/"step": 7\(.*\)"first": 1, "last": 1/"step": 7\1"first": 1/; /"step": 8,/d
		s/\("step": 7.*\),$/\1/' linear.json >shared.json
	fails "steps 5 and 6 of node 0 both name step 7 as their match" plan check shared.json &&
		fails "zcoll plan check" plan cost shared.json
}

# The table of errors is that of the header
page_errors() {
	sed -n '/DOC: Errors of plans/,/\*\//p' "$top/include/uapi/linux/zcoll.h" |
		grep -oE '^ \* -E[A-Z0-9]+' | sed 's/ \* -//' >header
	cmp header <(grep -oE '^\| E[A-Z0-9]+' "$docs/plans.md" | sed 's/| //')
}

page_keys() {
	for key in $(sed -nE 's/.*(OF_STEP\(|\{ )"([a-z]+)",.*/\2/p; s/^\tOF_PLAN\(([a-z]+),.*/\1/p' \
		"$top/lib/plan/json_form.c") $(grep -oE '"(peer|kind|dst|src|after|flags|levels|id|of)"' \
		"$top/lib/plan/json_parse.c" | tr -d '"' | sort -u); do
		grep -qE "^\|.*\`$key\`" "$docs/plans.md" || { echo "no $key"; return 1; }
	done
}

manual_formats() {
	LC_ALL=C.UTF-8 groff -man -Tutf8 -ww -P-c "$docs/man/zcoll-plan.1" >page 2>err
	is 0 $? && is "" "$(cat err)" || return 1
	for page in make parse check select; do
		LC_ALL=C.UTF-8 groff -mdoc -Tutf8 -ww -P-c "$docs/man/zcoll_plan_$page.3" >page 2>err
		is 0 $? && is "" "$(cat err)" || return 1
	done
}

options_of() { sed -nE 's/.*\{ "([a-z_-]+)", (no|required)_argument.*/--\1/p' "$top"/tools/plan/*.c | sort -u; }

# Each option that a subcommand knows is in the help text and in the manual
options_are_told() {
	sed 's/\\-/-/g' "$docs/man/zcoll-plan.1" >page
	"$zcoll" help plan >help
	for option in $(options_of); do
		grep -qF -e " $option" help && grep -qF -e "$option" page || { echo "no $option"; return 1; }
	done
}

help_is_one() { cmp <("$zcoll" help plan) <(plan --help) && cmp <(plan --help) <(plan make --help); }
help_fits() { "$zcoll" help plan | wc -L | { read -r width && [ "$width" -le 88 ]; }; }
help_names_algorithms() {
	for algo in $algorithms local; do
		"$zcoll" help plan | grep -qw -e "$algo" || return 1
	done
}

# --------------------------------------------------------------- completion

# completed WORDS...: what the last word may become
completed() {
	(
		PATH=$build/tools:$PATH
		# shellcheck source=/dev/null
		. "$top/tools/completion/zcoll"
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
		_zcoll
		echo "${COMPREPLY[*]}"
	)
}

completes() {
	is "show" "$(completed zcoll plan sh)" && is "ring" "$(completed zcoll plan make ri)" &&
		is "reduce-scatter reduce" "$(completed zcoll plan make ring --coll red)" &&
		is "--levels" "$(completed zcoll plan make --lev)" &&
		is "ring.json" "$(completed zcoll plan check rin)" &&
		is "--fabric" "$(completed zcoll plan select --f)" &&
		is "" "$(completed zcoll sim sweep --algo)"
}

# ------------------------------------------------------------------ refused

bad_file() { fails "x.json: line 1, column 9" plan show x.json; }
full_disk() {
	"$@" >/dev/full 2>err
	is 1 $? && said "cannot write standard output"
}

t "make: all algorithms" makes_each
t "make: --binary and JSON are the same plan" same_as_binary
t "make: --radix, --levels and --agreed" makes_options
t "make: --levels 4x8 is --levels 4,8" levels_both_ways
t "make: one line for each step" one_line_a_step
t "make: an algorithm is required" refused "which algorithm?" plan make
t "make: a misspelled algorithm gets a suggestion" refused "did you mean 'bruck'?" plan make bruk -N 4
t "make: an unknown algorithm is told which there are" refused "there are ring, pairwise" plan make something -N 4
t "make: -N is required" refused "-N is missing" plan make ring
t "make: -N 0 is refused" refused "-N 0: not a number from 1 to 65536" plan make ring -N 0
t "make: a misspelled collective gets a suggestion" refused "did you mean 'allreduce'?" plan make ring -N 4 --coll all-reduce
t "make: an unknown collective is told which there are" refused "there are allreduce, reduce-scatter" plan make ring -N 4 --coll gossip
t "make: bad levels are refused" refused "--levels 4,,2: not up to 4 group sizes" plan make hierarchical -N 8 --levels 4,,2
t "make: five levels are refused" refused "--levels 2,2,2,2,2" plan make hierarchical -N 32 --levels 2,2,2,2,2
t "make: levels that do not make up N fail" fails "" plan make hierarchical -N 32 --levels 4,7
t "make: one thing too many is refused" refused "unexpected argument 'x'" plan make ring x -N 4
t "make: a full disk is noticed" full_disk plan make ring -N 4
t "check: all algorithms are right" checks_each
t "check: as many rounds as show" rounds_are_the_same
t "check: a plan that is not right fails with a counterexample" counterexample
t "check: --json of a plan that is not right" counterexample_json
t "check: --json tells the facts" json_facts
t "check: --slots 1 is refused" refused "--slots 1: not a number from 2 to 64" plan check --slots 1 ring.json
t "show: what a node does" shows_node
t "show: who talks to whom" shows_peers
t "show: lines fit a terminal" fits_terminal
t "show: a plan too large to be shown says so" shows_large
t "show: a plan that never ends says so" shows_loop
t "show: a node that is not there is refused" refused "--node 8: the plan has nodes 0 to 7" plan show ring.json --node 8
t "show: the labels of a picture do not lie on each other" labels_apart
t "show: --svg with --json is refused" refused "only one of" plan show ring.json --json --svg x
t "show: a file is required" refused "which plan?" plan show
t "show: a missing file is named" fails "none.json: No such file" plan show none.json
t "show: a folder is refused" fails "/: Is a directory" plan show /
echo "nonsense" >x.json
t "show: what is no plan is refused" fails "x.json: neither JSON" plan show x.json
echo "{nonsense" >x.json
t "show: what is no JSON is refused, with line and column" bad_file
t "show: a full disk is noticed" full_disk plan show ring.json
t "svg: all algorithms are XML" draws_each
t "svg: an arrow for each message" draws_all_messages
t "svg: a summary for many nodes" draws_summary
t "svg: to standard output" draws_to_stdout
t "svg: names are escaped" names_are_escaped
t "svg: a full disk is named" fails "/dev/full: No space left" plan show ring.json --svg /dev/full
t "plans.md: the ring is what make prints" page_example_is_made
t "plans.md: it is shown as show does" page_shows_it
t "plans.md: its picture is what show draws" page_picture
t "plans.md: the plan made by hand is right, as told" page_hand_made
t "plans.md: the linear one is right; a match that is shared is refused" page_linear
t "plans.md: the errors are those of the header" page_errors
t "plans.md: all keys are told" page_keys
t "the manual pages format without a warning" manual_formats
t "help and manual name all options" options_are_told
t "help plan, plan --help and plan make --help are the same" help_is_one
t "help fits a terminal" help_fits
t "help names all algorithms" help_names_algorithms
t "completion: subcommands, algorithms, values, options, files" completes
t "a misspelled subcommand gets a suggestion" refused "did you mean 'check'?" plan chekc
t "an unknown subcommand is told which there are" refused "there are make, show, check, cost and select" plan frobnicate
t "no subcommand is refused" refused "make, show, check, cost or select?" plan
tap_end
