package reports

// nouns are the words for what a design hands out.
type nouns struct {
	noun     string // "its lock ended"
	the      string // "asks for the lock"
	acquires string // "acquires the lock for section 1"
	holds    string // "believes that it holds the lock"
	holding  string // "crashes, holding the lock"; "" where nothing is held
	releases string // "releases the lock"; "" where nothing is given back
	isHis    string // "the lock is client-1's"
}

// nouns returns the words for the run's design, going by what its history says
// of it.
func (t *tape) nouns() nouns {
	switch h := t.h; {
	case h.Parties > 0:
		return nouns{noun: "barrier", the: "the barrier", acquires: "passes the barrier", holds: "has passed the barrier"}
	case h.Quota:
		return nouns{noun: "quota", the: "the quota", acquires: "is let in", holds: "was let in",
			isHis: "client-1 counts in this window"}
	case t.permits():
		return nouns{noun: "permit", the: "a permit", acquires: "acquires a permit", holds: "holds a permit",
			holding: "holding a permit", releases: "returns its permit", isHis: "client-1 has a permit"}
	}
	return nouns{noun: "lock", the: "the lock", acquires: "acquires the lock", holds: "holds the lock",
		holding: "holding the lock", releases: "releases the lock", isHis: "the lock is client-1's"}
}

// permits reports whether several may hold at once, as of a semaphore. Of a
// queue's jobs each has one holder.
func (t *tape) permits() bool { return t.h.Capacity > 1 && !t.h.Once && !t.h.Quota && t.h.Parties == 0 }
