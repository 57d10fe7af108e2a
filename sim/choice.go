package sim

import (
	"fmt"
	"math/bits"
)

// Choice is one non-deterministic decision: a whole number from Lo to Hi,
// known by its place.
type Choice struct {
	Place  Place
	Key    uint64 // the place as one number, the same in every world
	Lo, Hi int64
}

// Chooser answers choices. A chooser must depend on nothing but the choice and
// what it was built from, so that a run can be repeated.
type Chooser interface {
	Choose(c Choice) int64
}

// Seeded answers every choice from the seed and the place alone. One more or
// one fewer draw elsewhere never shifts another.
type Seeded uint64

// Choose implements Chooser.
func (s Seeded) Choose(c Choice) int64 {
	span := uint64(c.Hi) - uint64(c.Lo) + 1
	x := mix(uint64(s) ^ mix(c.Key))
	if span == 0 { // the full range of 64 bits
		return int64(x)
	}
	scaled, _ := bits.Mul64(x, span)
	return c.Lo + int64(scaled)
}

// Overridden answers the choices it knows by their key and leaves the others
// to Base. An answer outside the choice's range is clamped to it.
type Overridden struct {
	Base    Chooser
	Answers map[uint64]int64
}

// Choose implements Chooser.
func (o Overridden) Choose(c Choice) int64 {
	if v, ok := o.Answers[c.Key]; ok {
		return min(max(v, c.Lo), c.Hi)
	}
	return o.Base.Choose(c)
}

// Override returns a chooser that follows the plan's overrides and leaves the
// rest to base.
func (p Plan) Override(base Chooser) Chooser {
	if len(p.Choices) == 0 {
		return base
	}
	answers := make(map[uint64]int64, len(p.Choices))
	for _, c := range p.Choices {
		at := c.At
		place := Place{Section: at.Section, Phase: at.Phase, Op: at.Op, Point: at.Point}
		answers[place.key(nameKey(at.Proc))] = c.Value
	}
	return Overridden{Base: base, Answers: answers}
}

// mix is the finaliser of SplitMix64 (Steele, Lea and Flood, 2014). It is
// fixed for good: every recorded seed depends on it.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// nameKey turns a process's name into a number that does not depend on the
// world (FNV-1a).
func nameKey(name string) uint64 {
	h := uint64(14695981039346656037)
	for i := 0; i < len(name); i++ {
		h = (h ^ uint64(name[i])) * 1099511628211
	}
	return h
}

// key folds a place into one number, the same in every world.
func (p Place) key(name uint64) uint64 {
	lower := uint64(p.Section)<<32 | uint64(uint32(p.Op))
	return mix(name^mix(lower)) + uint64(p.Phase)<<8 + uint64(p.Point)
}

// choose asks the chooser for a number from lo to hi at a place.
func (w *World) choose(p Place, lo, hi int64) int64 {
	if lo >= hi {
		return lo
	}
	c := Choice{Place: p, Key: p.key(w.procs[p.Proc].key), Lo: lo, Hi: hi}
	v := w.chooser.Choose(c)
	if v < lo || v > hi {
		panic(fmt.Sprintf("sim: chooser answered %d at %s, outside %d to %d", v, w.PlaceName(p), lo, hi))
	}
	return v
}

// Draw asks for a number from lo to hi at a place of the caller's own: for what
// is decided outside every program.
func (w *World) Draw(at Place, lo, hi int64) int64 { return w.choose(at, lo, hi) }

// PlaceName writes a place with its process's name.
func (w *World) PlaceName(p Place) string { return p.name(w.procs[p.Proc].name) }
