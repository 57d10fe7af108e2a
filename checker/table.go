package checker

// table numbers the different values it is asked about, from 0, in the order
// of their first mention: a map without allocation in the steady state.
type table struct {
	slots []slot // a power of two, never full
	round uint32 // slots of an earlier round count as empty
	keys  []int64
}

type slot struct {
	key   int64
	index int32
	round uint32
}

// reset empties the table and makes room for n values.
func (t *table) reset(n int) {
	t.keys = t.keys[:0]
	t.round++
	size := 16
	for size < 2*n {
		size *= 2
	}
	if size > len(t.slots) || t.round == 0 {
		t.slots, t.round = make([]slot, max(size, len(t.slots))), 1
	}
}

// find returns the slot where the value is, or would be.
func (t *table) find(v int64) *slot {
	mask := uint64(len(t.slots) - 1)
	for i := uint64(v) * 0x9E3779B97F4A7C15 >> 32; ; i++ { // Fibonacci hashing
		s := &t.slots[i&mask]
		if s.round != t.round || s.key == v {
			return s
		}
	}
}

// number returns the value's number, a new one if it was not known.
func (t *table) number(v int64) int32 {
	s := t.find(v)
	if s.round != t.round {
		*s = slot{key: v, index: int32(len(t.keys)), round: t.round}
		t.keys = append(t.keys, v)
	}
	return s.index
}

// lookup returns the value's number, or none.
func (t *table) lookup(v int64) int32 {
	if s := t.find(v); s.round == t.round {
		return s.index
	}
	return none
}
