package workload

import (
	"maps"
	"slices"
	"time"
)

// interval is a time from begin to end.
type interval struct{ begin, end time.Duration }

func (i interval) took() time.Duration { return i.end - i.begin }

func (i interval) meets(o interval) bool { return i.begin <= o.end && o.begin <= i.end }

// pause is an interval of one session.
type pause struct {
	interval
	session int
}

// pauses returns, of every success, the time from when it was due, or the first failed statement
// before it, and of sessions that still wait, the time until now.
func (s seen) pauses() []pause {
	var out []pause
	since := map[int]time.Duration{}
	for _, one := range s.samples {
		first, waits := since[one.session]
		switch {
		case one.failed && !waits:
			since[one.session] = one.due
		case one.failed:
		case waits:
			out = append(out, pause{interval{first, one.end}, one.session})
			delete(since, one.session)
		default:
			out = append(out, pause{interval{one.due, one.end}, one.session})
		}
	}
	for _, session := range slices.Sorted(maps.Keys(s.running)) {
		out = append(out, pause{interval{s.running[session], s.until}, session})
	}
	return out
}

// gaps returns the times between two successes, of any session.
func (s seen) gaps() []interval {
	var out []interval
	last := time.Duration(0)
	for _, one := range s.samples {
		if !one.failed {
			out = append(out, interval{last, one.end})
			last = one.end
		}
	}
	return append(out, interval{last, s.until})
}

// count fills in what was seen in an interval.
func (s seen) count(o *Operation, start time.Time, when interval) {
	for _, one := range s.samples {
		if when.meets(interval{one.due, one.end}) {
			o.Statements++
		}
	}
	for _, f := range s.failures {
		due := f.Due.Sub(start)
		switch {
		case !when.meets(interval{due, due + f.Took.Duration}):
		case f.Long:
			o.FailedLong++
		default:
			o.Failed++
		}
	}
	at := func(t time.Duration) bool { return when.meets(interval{t, t}) }
	for _, r := range s.refusals {
		if at(r.At.Sub(start)) {
			o.Refused++
		}
	}
	for _, t := range s.reconnections {
		if at(t) {
			o.Reconnections++
		}
	}
	for _, p := range s.pauses() {
		if when.meets(p.interval) {
			o.Pause = roundDuration(max(o.Pause.Duration, p.took()))
		}
	}
	for _, g := range s.gaps() {
		if when.meets(g) {
			o.Gap = roundDuration(max(o.Gap.Duration, g.took()))
		}
	}
}

// seconds tells the statements second by second.
func (s seen) seconds(start time.Time) []Second {
	all := map[int]*Second{}
	at := func(t time.Duration) *Second {
		n := int(t / time.Second)
		if all[n] == nil {
			all[n] = &Second{Second: n}
		}
		return all[n]
	}
	latencies := map[int][]time.Duration{}
	for _, one := range s.samples {
		second := at(one.end)
		if one.failed {
			second.Failed++
			continue
		}
		second.Succeeded++
		latencies[second.Second] = append(latencies[second.Second], one.end-one.due)
	}
	for _, r := range s.refusals {
		at(r.At.Sub(start)).Refused++
	}
	out := make([]Second, 0, len(all))
	for _, n := range slices.Sorted(maps.Keys(all)) {
		if l := latencies[n]; len(l) > 0 {
			slices.Sort(l)
			all[n].Median, all[n].Longest = toMilliseconds(l[len(l)/2]), toMilliseconds(l[len(l)-1])
		}
		out = append(out, *all[n])
	}
	return out
}

func toMilliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
