package sim

// Slab hands out zeroed values from chunks that a Reset takes back all at
// once, for what lives as long as a run. The zero Slab is ready for use.
type Slab[T any] struct {
	chunks [][]T
	used   int
}

const slabChunk = 64

// Get returns a zero value that is the caller's until the next Reset.
func (s *Slab[T]) Get() *T {
	chunk, i := s.used/slabChunk, s.used%slabChunk
	if chunk == len(s.chunks) {
		s.chunks = append(s.chunks, make([]T, slabChunk))
	}
	s.used++
	v := &s.chunks[chunk][i]
	var zero T
	*v = zero
	return v
}

// Reset takes everything back. Chunks of an unusually long run are let go.
func (s *Slab[T]) Reset() {
	const keep = 64
	if len(s.chunks) > keep {
		clear(s.chunks[keep:])
		s.chunks = s.chunks[:keep]
	}
	s.used = 0
}
