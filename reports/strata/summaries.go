package strata

import (
	"fmt"
	"slices"

	"plumbline/corpus"
	"plumbline/harness/measure"
)

// metric is one figure that is summed up over the repetitions of a case.
type metric struct{ name, unit string }

// metrics in the order of the document (ref).
var metrics = []metric{
	{"prompt_tps", "tokens/s"}, {"decode_tps", "tokens/s"}, {"ttft_s", "s"}, {"first_answer_s", "s"}, {"total_s", "s"},
}

// observation is what a summary takes from one performance request. The validator makes it from a document's text, the
// builder from its rows; a metric without a value has a reason instead.
type observation struct {
	id, caseID, status string
	values             map[string]float64
	reasons            map[string]string
	// clientRate says that the decode rate is from the client's clock: there is a rate, but no engine seconds.
	clientRate bool
}

// summary is a Summary before its numbers are written.
type summary struct {
	caseID           string
	metric           metric
	median, min, max float64
	included         []string
	excluded         []Exclusion
}

// summarise sums up every metric for every case, cases in order of their first request. Truncated requests count; failed
// and skipped ones are excluded, and so is a client's rate in a run that has engine's rates.
func summarise(observations []observation) []summary {
	engineRates := slices.ContainsFunc(observations, func(o observation) bool {
		_, known := o.values["decode_tps"]
		return known && o.replied() && !o.clientRate
	})
	var cases []string
	for _, o := range observations {
		if !slices.Contains(cases, o.caseID) {
			cases = append(cases, o.caseID)
		}
	}
	var all []summary
	for _, c := range cases {
		for _, m := range metrics {
			s := summary{caseID: c, metric: m, included: []string{}, excluded: []Exclusion{}}
			var values []float64
			for _, o := range observations {
				if o.caseID != c {
					continue
				}
				if reason := o.excludedFrom(m, engineRates); reason != "" {
					s.excluded = append(s.excluded, Exclusion{o.id, reason})
					continue
				}
				s.included = append(s.included, o.id)
				values = append(values, o.values[m.name])
			}
			if len(values) > 0 {
				s.median, s.min, s.max = median(values), slices.Min(values), slices.Max(values)
			}
			all = append(all, s)
		}
	}
	return all
}

func (o observation) replied() bool {
	return o.status != string(measure.Failed) && o.status != string(measure.Skipped)
}

// excludedFrom says why the request is not in the summary of a metric; "" when it is.
func (o observation) excludedFrom(m metric, engineRates bool) string {
	_, known := o.values[m.name]
	switch {
	case !o.replied():
		return fmt.Sprintf(excludedStatus, o.status)
	case !known:
		return o.reasons[m.name]
	case m.name == "decode_tps" && o.clientRate && engineRates:
		return excludedBasis
	}
	return ""
}

// median is the middle value, or the mean of the middle two.
func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	mid := len(v) / 2
	if len(v)%2 == 1 {
		return v[mid]
	}
	return v[mid-1] + (v[mid]-v[mid-1])/2
}

func (b *builder) summaries(requests []Request) []Summary {
	var observations []observation
	for _, r := range requests {
		if r.Phase == corpus.PhasePerformance {
			observations = append(observations, observe(r))
		}
	}
	summaries := []Summary{}
	for _, s := range summarise(observations) {
		row := Summary{
			Phase: corpus.PhasePerformance, CaseID: s.caseID, Concurrency: 1, Metric: s.metric.name, Unit: s.metric.unit,
			Median: None[Number](whyNothingToSum), Min: None[Number](whyNothingToSum), Max: None[Number](whyNothingToSum),
			N: len(s.included), Included: s.included, Excluded: s.excluded,
		}
		if row.N > 0 {
			row.Median, row.Min, row.Max = b.number(s.median, rateDecimals), b.number(s.min, rateDecimals), b.number(s.max, rateDecimals)
		}
		summaries = append(summaries, row)
	}
	return summaries
}

func observe(r Request) observation {
	o := observation{id: r.ID, caseID: r.CaseID, status: r.Status, values: map[string]float64{}, reasons: map[string]string{}}
	for name, n := range r.metrics() {
		if v, known := n.Get(); known {
			o.values[name] = v.Float64()
		} else {
			o.reasons[name] = n.Reason()
		}
	}
	_, rate := r.Metrics.DecodeTPS.Get()
	_, seconds := r.Timings.Decode.Get()
	o.clientRate = rate && !seconds
	return o
}

// metrics are the figures of a request that summaries are made of, by name.
func (r *Request) metrics() map[string]Null[Number] {
	return map[string]Null[Number]{
		"prompt_tps": r.Metrics.PromptTPS, "decode_tps": r.Metrics.DecodeTPS,
		"ttft_s": r.Timings.TTFT, "first_answer_s": r.Timings.FirstAnswer, "total_s": r.Timings.Total,
	}
}
