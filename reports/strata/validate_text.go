package strata

import (
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// written is how a number must be written: with so many decimals at most, or as an integer.
type written struct {
	path     string // a star stands for any one name or index
	decimals int
}

const asInteger = -2

// writing says how the numbers of each place are written (ref; rounds and extensions: ours). A number anywhere must do
// without an exponent.
var writing = []written{
	{"/schema_version", asInteger},
	{"/run/required_duration_s", durationDecimals},
	{"/run/optional_duration_s", durationDecimals},
	{"/hardware/gpus/*/device_index", asInteger},
	{"/hardware/gpus/*/memory_bytes", asInteger},
	{"/hardware/gpus/*/power_limit_w", asMeasured},
	{"/hardware/ram_bytes", asInteger},
	{"/model/files/*/bytes", asInteger},
	{"/configuration/context_tokens", asInteger},
	{"/configuration/server_capacity", asInteger},
	{"/request_counts/*/*", asInteger},
	{"/requests/*/repetition", asInteger},
	{"/requests/*/seed", asInteger},
	{"/requests/*/max_output_tokens", asInteger},
	{"/requests/*/concurrency", asInteger},
	{"/requests/*/round", asInteger},
	{"/requests/*/tokens/*", asInteger},
	{"/requests/*/timings/prompt_s", engineDecimals},
	{"/requests/*/timings/decode_s", engineDecimals},
	{"/requests/*/timings/*", clientDecimals},
	{"/requests/*/metrics/*", rateDecimals},
	{"/summaries/*/concurrency", asInteger},
	{"/summaries/*/median", rateDecimals},
	{"/summaries/*/min", rateDecimals},
	{"/summaries/*/max", rateDecimals},
	{"/summaries/*/n", asInteger},
	{"/concurrency_rounds/*/concurrency", asInteger},
	{"/concurrency_rounds/*/round", asInteger},
	{"/concurrency_rounds/*/output_tokens", asInteger},
	{"/concurrency_rounds/*/*", rateDecimals},
	{"/quality/passed", asInteger},
	{"/quality/total", asInteger},
	{"/quality/categories/*/*", asInteger},
	{"/extensions/server_requests_before_run", asInteger},
	{"/extensions/request_checks/*/*", asInteger},
	{"/extensions/client_decode_tps/*", rateDecimals},
	{"/extensions/repetition_drift/*/*", rateDecimals},
	{"/extensions/clock_resolution_s", clockDecimals},
	{"/extensions/gpu_states/*/readings/*/device_index", asInteger},
	{"/extensions/gpu_states/*/readings/*/*", asMeasured},
	{"/extensions/findings/*/*/count", asInteger},
}

var (
	integerForm = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)
	floatForm   = regexp.MustCompile(`^-?(0|[1-9][0-9]*)\.([0-9]|[0-9]*[1-9])$`)
)

// numbers checks how numbers are written.
func (v *validation) numbers() {
	for n := range v.root.all() {
		if n.kind != '0' {
			continue
		}
		if strings.ContainsAny(n.raw, "eE") {
			v.fault(n, "expected a number without an exponent, received %s", n.raw)
			continue
		}
		decimals, ruled := writingOf(n.at)
		switch {
		case !ruled:
		case decimals == asInteger && !integerForm.MatchString(n.raw):
			v.fault(n, "expected an integer, received %s", n.raw)
		case decimals == asInteger:
		case !floatForm.MatchString(n.raw):
			v.fault(n, "expected a decimal point and no trailing zero but the first, received %s", n.raw)
		case decimals != asMeasured && len(n.raw)-strings.Index(n.raw, ".")-1 > decimals:
			v.fault(n, "expected at most %d decimals, received %s", decimals, n.raw)
		}
	}
}

func writingOf(at jsontext.Pointer) (decimals int, ruled bool) {
	i := slices.IndexFunc(writing, func(w written) bool { return matches(string(at), w.path) })
	if i < 0 {
		return 0, false
	}
	return writing[i].decimals, true
}

// matches compares a pointer with a path step by step.
func matches(at, path string) bool {
	for at != "" && path != "" {
		step, rest, _ := strings.Cut(at[1:], "/")
		want, more, _ := strings.Cut(path[1:], "/")
		if want != "*" && want != step {
			return false
		}
		if (rest == "") != (more == "") {
			return false
		}
		if rest == "" {
			return true
		}
		at, path = "/"+rest, "/"+more
	}
	return at == path
}

// missing checks that every null has its reason and every reason its null, in document order.
func (v *validation) missing() {
	list := v.root.get("missing")
	if !list.is('{') {
		return
	}
	var nulls []string
	for n := range v.root.all() {
		if n.null() && !matches(string(n.at), "/missing/*") {
			nulls = append(nulls, string(n.at))
			if list.get(string(n.at)) == nil {
				v.fault(n, "this is null, and the list of missing values does not say why")
			}
		}
	}
	place := make(map[string]int, len(nulls))
	for i, at := range nulls {
		place[at] = i
	}
	last := -1
	for at, entry := range list.fields() {
		i, ok := place[at]
		switch {
		case !ok:
			v.fault(entry, "this explains a null, and there is none at its pointer")
		case i < last:
			v.fault(entry, "this stands after the reason of a later null: reasons are in document order")
		default:
			last = i
		}
	}
}
