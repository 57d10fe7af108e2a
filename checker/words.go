package checker

import "fmt"

// The words below are the command's vocabulary: they appear in its output, in
// scenario files and in recorded histories.

var (
	findingWords = [...]string{
		Overlap: "overlap", LeaseBroken: "lease-broken", Phantom: "phantom",
		ForeignRelease: "foreign-release", TokenOrder: "token-order",
		SpuriousLoss: "spurious-loss", OverCapacity: "over-capacity",
		RefusedLate: "refused", StaleWrite: "stale-write", TwoWriters: "two-writers",
		LostUpdate: "lost-update", DoubleApply: "double-apply", WriteLost: "write-lost",
		SelfRejected: "self-rejected", Stuck: "stuck",
	}
	lockWords    = [...]string{LockKept: "kept", LockOverlap: "overlap", LockBroken: "broken"}
	verdictWords = [...]string{
		VerdictSafe: "safe", VerdictFenced: "fenced", VerdictVacuous: "vacuous",
		VerdictStuck: "stuck", VerdictLostUpdate: "lost-update", VerdictTwoWriters: "two-writers",
	}
	kindWords = [...]string{
		Acquire: "acquire", Renew: "renew", Enter: "enter", Read: "read",
		Write: "write", Append: "append", Release: "release",
	}
	outcomeWords  = [...]string{Unknown: "unknown", OK: "ok", Refused: "refused"}
	decisionWords = [...]string{Undecided: "undecided", Accepted: "accepted", Rejected: "rejected"}
	endWords      = [...]string{
		NotEnded: "not-ended", EndExpired: "expired", EndReleased: "released",
		EndTaken: "taken", EndLost: "lost",
	}
	lossWords = [...]string{
		StillBelieves: "believes", LossReleased: "released", LossCrashed: "crashed", LossLearned: "learned",
	}
	promiseWords = [...]string{NoPromise: "none", LeasePromise: "lease", SessionPromise: "session"}
	dataWords    = [...]string{Register: "register", List: "list"}
)

// String returns the finding's word, such as "two-writers".
func (k FindingKind) String() string { return word(findingWords[:], int(k)) }

// String returns the answer's word: "kept", "overlap" or "broken".
func (a LockAnswer) String() string { return word(lockWords[:], int(a)) }

// String returns the verdict's word, such as "fenced".
func (v Verdict) String() string { return word(verdictWords[:], int(v)) }

// String returns the operation's word, such as "write".
func (k Kind) String() string { return word(kindWords[:], int(k)) }

// String returns "unknown", "ok" or "refused".
func (o Outcome) String() string { return word(outcomeWords[:], int(o)) }

// String returns "undecided", "accepted" or "rejected".
func (d Decision) String() string { return word(decisionWords[:], int(d)) }

// String returns how the tenure ended, such as "expired".
func (e End) String() string { return word(endWords[:], int(e)) }

// String returns how the belief ended, such as "crashed".
func (l Loss) String() string { return word(lossWords[:], int(l)) }

// String returns "none", "lease" or "session".
func (p Promise) String() string { return word(promiseWords[:], int(p)) }

// String returns "register" or "list".
func (d Data) String() string { return word(dataWords[:], int(d)) }

// ParseFindingKind returns the finding that the word names.
func ParseFindingKind(s string) (FindingKind, error) {
	k, err := parseWord(findingWords[:], "finding", s)
	return FindingKind(k), err
}

// ParseLockAnswer returns the answer that the word names.
func ParseLockAnswer(s string) (LockAnswer, error) {
	a, err := parseWord(lockWords[:], "lock answer", s)
	return LockAnswer(a), err
}

// ParseVerdict returns the verdict that the word names.
func ParseVerdict(s string) (Verdict, error) {
	v, err := parseWord(verdictWords[:], "verdict", s)
	return Verdict(v), err
}

func word(words []string, i int) string {
	if i < len(words) && words[i] != "" {
		return words[i]
	}
	return fmt.Sprintf("unnamed(%d)", i)
}

func parseWord(words []string, what, s string) (int, error) {
	known := make([]string, 0, len(words))
	for i, w := range words {
		if w == s && s != "" {
			return i, nil
		}
		if w != "" {
			known = append(known, w)
		}
	}
	return 0, fmt.Errorf("unknown %s %q, want one of %q", what, s, known)
}
