#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# plan_select.sh - zcoll plan select and cost: who decides, what is explained, what is
# refused; the published schema; needs no device
# shellcheck disable=SC2317 # functions called by t
# shellcheck source=selftests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

unset ZCOLL_PLAN ZCOLL_PLAN_ALLREDUCE ZCOLL_RULES ZCOLL_COSTS

select_plan() { "$zcoll" plan select "$@"; }
golden=2500,1500,1000,6

cat >rules.json <<'EOF'
{
  "$schema": "rules.schema.json",
  "zcoll_rules": 1,
  "collectives": {
    "allreduce": [
      { "comm_size_min": 2, "comm_size_max": 64, "rules": [
        { "msg_size_max": 4096, "alg": "recursive-doubling", "radix": 4 },
        { "msg_size_min": 4097, "alg": "ring", "slice": 32768, "comment": "wires are slow" }
      ] }
    ],
    "barrier": [ { "rules": [ { "alg": "hierarchical", "levels": [4, 3] } ] } ]
  }
}
EOF

# json PATH: a value of the JSON object in out
json() {
	python3 -c 'import json, sys
value = json.load(open("out"))
for key in sys.argv[1].split("."): value = value[int(key) if key.isdigit() else key]
print(value)' "$1"
}

# ------------------------------------------------------------------- select

explains() {
	run select_plan -N 12 --bytes 1M
	is 0 "$status" && grep -q "^allreduce of 1048576 bytes by 12 nodes: " out &&
		grep -q "^decided by cost: the least estimated time" out &&
		grep -q "^fabric built-in" out && grep -q "^yardstick " out &&
		grep -q " ring:slice=" out && grep -q "^to make it: zcoll plan make " out
}

# What is said makes the plan, which passes the check
command_works() {
	local coll command
	for coll in allreduce reduce-scatter allgather broadcast reduce barrier; do
		run select_plan -N 12 --bytes 1M --coll "$coll"
		is 0 "$status" || return 1
		command=$(sed -n 's/^to make it: zcoll //p' out)
		# shellcheck disable=SC2086 # words of a command
		"$zcoll" $command >plan.json && "$zcoll" plan check plan.json || return 1
		command=$(sed -n 's/^to simulate it: zcoll //p' out)
		# shellcheck disable=SC2086
		"$zcoll" $command >sim && grep -q '^time_ns: ' sim || return 1
	done
}

first_is_best() {
	run select_plan -N 100 --bytes 64K --json
	is 0 "$status" && is "$(json best.choice)" "$(json candidates.0.choice)" &&
		is cost "$(json by)" && python3 -c '
import json
times = [c["time_ns"] for c in json.load(open("out"))["candidates"] if not c["refused"]]
assert times == sorted(times) and len(times) > 5'
}

call_decides() {
	ZCOLL_PLAN=ring run select_plan -N 12 --choice circulant:radix=4 --json
	is call "$(json by)" && is circulant "$(json best.algo)"
}

environment_decides() {
	ZCOLL_PLAN=ring run select_plan -N 12 --rules rules.json --json
	is environment "$(json by)" && is ring "$(json best.algo)" && is "ZCOLL_PLAN=ring" "$(json why)"
}

rules_decide() {
	run select_plan -N 12 --bytes 4K --rules rules.json --json
	is rules "$(json by)" && is "rules.json: /collectives/allreduce/0/rules/0" "$(json why)" &&
		ZCOLL_RULES=rules.json run select_plan -N 12 --bytes 8K --json &&
		is ring "$(json best.algo)" && is 32768 "$(json best.slice)" &&
		run select_plan -N 65 --rules rules.json --json && is cost "$(json by)"
}

levels_of_rules() {
	run select_plan -N 12 --coll barrier --rules rules.json
	is 0 "$status" && grep -q "make hierarchical -N 12 --coll barrier --levels 4,3" out
}

fabric_matters() {
	run select_plan -N 16 --bytes 8 --fabric 100000,100,100,0.1 --json
	local far
	far=$(json best.choice)
	run select_plan -N 16 --bytes 8 --fabric 100,100000,100,0.1 --json
	is 0 "$status" && [ "$far" != "$(json best.choice)" ]
}

ordered_refuses() {
	run select_plan -N 12 --ordered
	is 0 "$status" && grep -q "circulant.* does not keep the fixed order" out
}

# What select tells of a plan that agrees is what the plan takes
agreed_costs() {
	local command ns
	run select_plan -N 12 --bytes 8 --agreed --json
	is 0 "$status" || return 1
	ns=$(json best.time_ns)
	command=$(json make)
	# shellcheck disable=SC2086 # words of a command
	"$zcoll" ${command#zcoll } >plan.json || return 1
	run "$zcoll" plan cost plan.json --bytes 8 --json
	python3 -c 'import sys; a, b = map(float, sys.argv[1:]); print(a, b)
sys.exit(abs(a / b - 1) > 0.1)' "$ns" "$(json time_ns)"
}

# No choice of radix 1 runs for ever
radix_1() {
	local algo
	for algo in recursive-doubling knomial circulant bruck aggregator; do
		fails "from 2 to 65536" timeout 10 "$zcoll" plan select -N 12 --choice "$algo:radix=1" &&
			ZCOLL_PLAN="$algo:radix=1" fails "from 2 to 65536" timeout 10 "$zcoll" plan select -N 12 &&
			refused "--radix" timeout 10 "$zcoll" plan make "$algo" -N 12 --radix 1 || return 1
	done
}

levels_both_ways() {
	"$zcoll" plan make hierarchical -N 12 --levels 4,3 >comma.json &&
		"$zcoll" plan make hierarchical -N 12 --levels 4x3 | cmp - comma.json &&
		run select_plan -N 12 --choice hierarchical:levels=4x3 && is 0 "$status" &&
		fails "such as levels=4x3" "$zcoll" plan select -N 12 --choice hierarchical:levels=4,3
}

# --------------------------------------------------------------------- cost

cost_golden() {
	"$zcoll" plan make bruck -N 16 --coll barrier >plan.json
	run "$zcoll" plan cost plan.json --bytes 0 --fabric "$golden" --json
	is 0 "$status" && is 22000.0 "$(json time_ns)" && is 4 "$(json rounds)"
}

cost_table() {
	"$zcoll" plan make ring -N 5 >plan.json
	run "$zcoll" plan cost - --bytes 5000 --fabric "$golden" <plan.json
	is 0 "$status" && grep -q "^rounds       8$" out && grep -q "^time         92.0 us$" out &&
		grep -q "^bytes sent   8000 of the node" out
}

# like_simulator PERCENT ARG...: zcoll plan cost gives what zcoll sim gives, for a plan
# that is made with ARG..., small and large
like_simulator() {
	local percent=$1 bytes simulated
	shift
	"$zcoll" plan make "$@" >plan.json || return 1
	for bytes in 1K 1M; do
		run "$zcoll" sim --plan plan.json --bytes "$bytes" --loggp 700,150,50,0.08,0.04 \
			--contention nic --slice 64K --slots 8 --inline 0 --checked 0 --json
		is 0 "$status" || return 1
		simulated=$(json time_ns)
		run "$zcoll" plan cost plan.json --bytes "$bytes" --slice 64K --json \
			--fabric 700,150,50,0.08,0.04
		is 0 "$status" || return 1
		python3 -c 'import sys
percent, simulated, cost = map(float, sys.argv[1:])
off = abs(cost / simulated - 1) * 100
print("off by", off, "%")
sys.exit(off > percent)' "$percent" "$simulated" "$(json time_ns)" || return 1
	done
}

# ------------------------------------------------------------------- schema

schema_is_right() {
	python3 -c 'import jsonschema' 2>/dev/null || { echo "# no python3-jsonschema"; return 0; }
	python3 - "$top/Documentation/rules.schema.json" <<-'EOF'
	import json, sys
	from jsonschema import Draft202012Validator as Validator
	schema = json.load(open(sys.argv[1]))
	Validator.check_schema(schema)
	rules = json.load(open("rules.json"))
	assert Validator(schema).is_valid(rules)
	def wrong(change):
	    copy = json.loads(json.dumps(rules))
	    change(copy)
	    assert not Validator(schema).is_valid(copy), copy
	rule = lambda r: r["collectives"]["allreduce"][0]["rules"][0]
	wrong(lambda r: r.pop("zcoll_rules"))
	wrong(lambda r: r.update(zcoll_rules=2))
	wrong(lambda r: r["collectives"].update(alltoall=[]))
	wrong(lambda r: r["collectives"]["allreduce"][0].pop("rules"))
	wrong(lambda r: rule(r).pop("alg"))
	wrong(lambda r: rule(r).update(alg="rnig"))
	wrong(lambda r: rule(r).update(slice=0))
	wrong(lambda r: rule(r).update(radix=1))
	wrong(lambda r: rule(r).update(levels=[1, 2, 3, 4, 5]))
	wrong(lambda r: rule(r).update(other=1))
	EOF
}

# The schema knows the algorithms that there are
schema_names_all() {
	# shellcheck disable=SC2016 # a program for python
	python3 -c 'import json, sys
print("\n".join(json.load(open(sys.argv[1]))["$defs"]["rule"]["properties"]["alg"]["enum"]))' \
		"$top/Documentation/rules.schema.json" | sort >in_schema
	run select_plan -N 4 --choice none
	sed -n 's/.*there are: //p' err | tr ' ' '\n' | sort >in_library
	is "$(cat in_library)" "$(cat in_schema)"
}

# --------------------------------------------------------------------- tests

t "explains a choice" explains
t "the command it tells makes a plan that is right, for each collective" command_works
t "the first candidate is the best, as JSON too" first_is_best
t "the call decides first" call_decides
t "then the environment" environment_decides
t "then the rules, where one fits" rules_decide
t "levels of a rule become those of the command" levels_of_rules
t "the fabric matters" fabric_matters
t "--ordered refuses what does not keep the order" ordered_refuses
t "--agreed is in the estimate" agreed_costs
t "radix 1 is refused, by choice, environment and make" radix_1
t "levels are written 4x3, for make also 4,3" levels_both_ways
t "bytes that are not whole elements" refused "--bytes 6 is not a multiple of --element 4" "$zcoll" plan select -N 2 --bytes 6
t "a choice that cannot be is named as it was typed" fails "choice ring:radix=3: has no radix" "$zcoll" plan select -N 12 --choice ring:radix=3
t "cost: LogGOPSim's 22000 ns" cost_golden
t "cost: a ring's rounds, bytes and time" cost_table
for algo in pairwise circulant bruck hierarchical; do
	t "cost is within 1 % of the simulator: $algo" like_simulator 1 $algo -N 33
done
t "cost is within 1 % of the simulator: a ring" like_simulator 1 ring -N 12
t "cost is within 1 % of the simulator: an all-gather" like_simulator 1 circulant -N 9 --coll allgather
for algo in recursive-doubling halving-doubling binomial knomial double-tree aggregator; do
	t "cost is within 25 % of the simulator: $algo" like_simulator 25 $algo -N 33
done
t "cost is within 25 % of the simulator: a reduce to one" like_simulator 25 knomial -N 16 --coll reduce
t "the published schema accepts what is right, and nothing else" schema_is_right
t "the published schema names all algorithms" schema_names_all
t "no nodes" refused "how many nodes" "$zcoll" plan select
t "nodes that are none" refused "not a number from 1 to 65536" "$zcoll" plan select -N 0
t "no such collective" refused "there are allreduce" "$zcoll" plan select -N 2 --coll x
t "a fabric that is none" fails "L,o,g,G[,gamma]" "$zcoll" plan select -N 2 --fabric 1,2
t "rules that are not there" fails "no/such: No such file" "$zcoll" plan select -N 2 --rules no/such
t "a choice that is none" fails "no algorithm \"rnig\"" "$zcoll" plan select -N 2 --choice rnig
t "an argument too many" refused "unexpected argument" "$zcoll" plan select -N 2 x
t "cost of a file that is not there" fails "no/such" "$zcoll" plan cost no/such
tap_end
