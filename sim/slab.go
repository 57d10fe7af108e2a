package sim

// slab hands out zeroed values from chunks that a reset takes back all at
// once: everything in a world dies with the run.
type slab[T any] struct {
	chunks [][]T
	used   int
}

const slabChunk = 64

func (s *slab[T]) get() *T {
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

// reset takes everything back. Chunks of an unusually long run are let go.
func (s *slab[T]) reset() {
	const keep = 64
	if len(s.chunks) > keep {
		clear(s.chunks[keep:])
		s.chunks = s.chunks[:keep]
	}
	s.used = 0
}
