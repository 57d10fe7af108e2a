package scenarios

import (
	"cmp"
	"encoding/json"
	"errors"
	"math/bits"
	"slices"
	"time"
)

// Spread is how a measure was distributed over runs. It keeps how many runs
// had which length, each rounded down by less than 1/64, so that its size does
// not grow with the runs. Spreads of different runs add up, in any order.
type Spread struct {
	lengths []lengthCount // ascending
	longest time.Duration // exact
}

// lengthCount is how many runs had a length.
type lengthCount struct {
	length time.Duration
	runs   int64
}

// spreadBits is how many of a length's leading bits are kept.
const spreadBits = 7

// rounded keeps the leading bits; Endless stays what it is.
func rounded(d time.Duration) time.Duration {
	if n := bits.Len64(uint64(d)) - spreadBits; n > 0 && d != Endless {
		return d >> n << n
	}
	return d
}

// see counts one run.
func (s *Spread) see(d time.Duration) {
	s.longest = max(s.longest, d)
	s.count(lengthCount{rounded(d), 1})
}

func (s *Spread) count(c lengthCount) {
	i, found := slices.BinarySearchFunc(s.lengths, c.length, func(a lengthCount, d time.Duration) int { return cmp.Compare(a.length, d) })
	if found {
		s.lengths[i].runs += c.runs
		return
	}
	s.lengths = slices.Insert(s.lengths, i, c)
}

func (s *Spread) add(o *Spread) {
	s.longest = max(s.longest, o.longest)
	for _, c := range o.lengths {
		s.count(c)
	}
}

func (s *Spread) equal(o *Spread) bool {
	return s.longest == o.longest && slices.Equal(s.lengths, o.lengths)
}

// Runs is how many runs were measured.
func (s *Spread) Runs() int64 {
	runs := int64(0)
	for _, c := range s.lengths {
		runs += c.runs
	}
	return runs
}

// Percentile is the shortest length that at least so many of a hundred runs did
// not exceed (nearest rank); 0 if no run was measured.
func (s *Spread) Percentile(hundredths int64) time.Duration {
	rank := (s.Runs()*hundredths + 99) / 100
	for _, c := range s.lengths {
		if rank -= c.runs; rank <= 0 {
			return c.length
		}
	}
	return 0
}

// Longest is the longest length, exactly.
func (s *Spread) Longest() time.Duration { return s.longest }

// spreadJSON is a spread in a sweep's file, in nanoseconds.
type spreadJSON struct {
	Longest int64      `json:"longest"`
	Lengths [][2]int64 `json:"lengths"` // a length, and how many runs had it
}

// MarshalJSON implements json.Marshaler.
func (s Spread) MarshalJSON() ([]byte, error) {
	out := spreadJSON{Longest: int64(s.longest)}
	for _, c := range s.lengths {
		out.Lengths = append(out.Lengths, [2]int64{int64(c.length), c.runs})
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Spread) UnmarshalJSON(data []byte) error {
	var in spreadJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	*s = Spread{longest: time.Duration(in.Longest)}
	last := time.Duration(-1)
	for _, pair := range in.Lengths {
		c := lengthCount{time.Duration(pair[0]), pair[1]}
		if c.length <= last || c.runs < 1 || rounded(c.length) != c.length {
			return errors.New("lengths must ascend, with their runs")
		}
		s.lengths, last = append(s.lengths, c), c.length
	}
	if rounded(s.longest) != max(last, 0) {
		return errors.New("the longest must be one of the lengths")
	}
	return nil
}
