package checker

// checkBarrier reports over-capacity for a barrier: who passed it before all
// parties had come to it. A round of the barrier is the sections of one number,
// one of each client; a client has come to it when it has first called for it,
// and counts once, however often it calls.
func (c *Checker) checkBarrier() {
	opened := make(map[int32]Instant) // by section: when the last party came
	come := make(map[int32]int)
	seen := make(map[sectionKey]bool)
	for i := range c.h.Ops {
		op := &c.h.Ops[i]
		if op.Kind != Acquire || seen[keyOf(op)] {
			continue
		}
		seen[keyOf(op)] = true
		if come[op.Section]++; come[op.Section] == c.h.Parties {
			opened[op.Section] = op.Invoke
		}
	}
	for _, i := range c.beliefs {
		op := c.tenures[i].op
		if at, ok := opened[op.Section]; !ok || op.Return.Before(at) {
			c.add(OverCapacity, op.Return.At, op)
		}
	}
}

// comeTo counts the clients that had called for a section of the given number
// before an instant.
func (h *History) comeTo(section int32, before Instant) int {
	come := make(map[int32]bool)
	for i := range h.Ops {
		if op := &h.Ops[i]; op.Kind == Acquire && op.Section == section && op.Invoke.Before(before) {
			come[op.Client] = true
		}
	}
	return len(come)
}
