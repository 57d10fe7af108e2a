package reports

import (
	"fmt"
	"strings"
	"time"

	"locklab/checker"
	"locklab/clock"
	"locklab/sim"
)

// seconds writes a true time for people: milliseconds are enough for them.
func seconds(t clock.Time) string {
	if t == clock.Never {
		return "never"
	}
	ms := int64(t) / int64(time.Millisecond)
	return fmt.Sprintf("%d.%03ds", ms/1000, ms%1000)
}

// length writes a duration for people, to the millisecond, or to the
// microsecond where it is shorter than 10 ms.
func length(d time.Duration) string {
	unit := time.Millisecond
	if d.Abs() < 10*time.Millisecond {
		unit = time.Microsecond
	}
	return d.Round(unit).String()
}

// times writes how often.
func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// token writes a fencing token as an addition, "" for none.
func token(n int64, format string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(format, n)
}

// doing names an operation: "its write of 1 with token 33".
func (t *tape) doing(o *checker.Op) string {
	switch o.Kind {
	case checker.Acquire:
		if t.lockless() {
			return "its request to begin"
		}
		return "its request for " + t.nouns().the
	case checker.Renew:
		return "its renewal"
	case checker.Enter:
		return "its entry at the resource"
	case checker.Read:
		return "its read" + token(o.Token, " with token %d")
	case checker.Write, checker.Append:
		return fmt.Sprintf("its %s of %d%s", o.Kind, o.Value, token(o.Token, " with token %d"))
	case checker.Release:
		return "its release"
	}
	return "its " + o.Kind.String()
}

// carrying names what a message carries: "client-1's write of 1".
func (t *tape) carrying(m *message) string {
	o := t.op(m.op)
	if o == nil || t.client(m.from) < 0 && t.client(m.to) < 0 {
		return fmt.Sprintf("a message from %s to %s (%s)", t.proc(m.from), t.proc(m.to), m.text)
	}
	what := t.clientName(o.Client) + "'s " + strings.TrimPrefix(t.doing(o), "its ")
	if m.reply {
		return fmt.Sprintf("the answer of %s to %s", t.proc(m.from), what)
	}
	return what + " to " + t.proc(m.to)
}

// phaseWords say what a client is about to do in each phase.
var phaseWords = [...]string{
	sim.PhaseAcquire: "its request for the lock", sim.PhaseRead: "its read", sim.PhaseWork: "its work",
	sim.PhaseWrite: "its write", sim.PhaseRenew: "its renewal", sim.PhaseRelease: "its release", sim.PhaseThink: "its pause for thought", sim.PhaseSend: "",
}

// trigger says where a fault's trigger lies, as an addition: " before its
// write". A time says nothing that the line does not.
func (t *tape) trigger(f *sim.Fault) string {
	victim, _, _ := strings.Cut(f.On[0], ".")
	place := func(word string, p sim.PlacePattern) string {
		what := phaseWords[p.Phase]
		if what == "" || p.Proc == "" {
			return fmt.Sprintf(" %s %s", word, p)
		}
		if p.Proc != victim {
			what = p.Proc + "'s " + strings.TrimPrefix(what, "its ")
		}
		if p.Section > 0 && t.res.Params.Sections > 1 {
			what += fmt.Sprintf(" in section %d", p.Section)
		}
		return " " + word + " " + what
	}
	switch {
	case !f.Trigger.Before.IsZero():
		return place("before", f.Trigger.Before)
	case !f.Trigger.After.IsZero():
		return place("after", f.Trigger.After)
	case f.Trigger.When.Kind != sim.MilestoneNone:
		return " " + moment(f.Trigger.When, victim)
	}
	return ""
}

// moment says when a milestone strikes somebody whose own it may be.
func moment(m sim.Milestone, victim string) string {
	whose, whom := m.Who+"'s", m.Who
	if m.Who == victim {
		whose, whom = "its own", "it"
	}
	if m.N == 1 {
		switch m.Kind {
		case sim.Granted:
			return "as soon as the lock is granted to " + whom
		case sim.Expired:
			return "as soon as " + strings.Replace(whose, "its own", "its", 1) + " lock expires"
		case sim.Released:
			return "as soon as " + strings.Replace(whose, "its own", "its", 1) + " lock is released"
		}
	}
	return "at " + whose + strings.TrimPrefix(m.String(), m.Who+"'s")
}

// until says how long a fault lasts, as an addition.
func (t *tape) until(f *sim.Fault) string {
	switch {
	case f.Until.Kind != sim.MilestoneNone:
		return " until " + strings.TrimPrefix(strings.TrimPrefix(moment(f.Until, ""), "as soon as "), "at ")
	case !f.For.IsZero():
		return " for " + t.span(f.For)
	}
	return ""
}

// span writes a span of a plan with what its parameter stands for.
func (t *tape) span(s sim.Span) string {
	d, err := s.Resolve(t.res.Params.Spans)
	if err != nil {
		return s.String()
	}
	return d.String()
}

// link writes a link as people do.
func link(on string) string {
	from, to, both := strings.Cut(on, "->")
	if !both {
		return "from " + from
	}
	return "from " + strings.TrimSpace(from) + " to " + strings.TrimSpace(to)
}

// strikes is the sentence for a fault that begins. Crashes have their own.
func (t *tape) strikes(f *sim.Fault) string {
	on := f.On[0]
	many := "messages"
	if bounded := !f.For.IsZero() || f.Until.Kind != sim.MilestoneNone; f.Count == 1 || f.Count == 0 && !bounded {
		many = "the next message"
	} else if f.Count > 1 {
		many = fmt.Sprintf("the next %d messages", f.Count)
	}
	switch f.Kind {
	case sim.Pause:
		return on + " is paused" + t.trigger(f)
	case sim.Stall:
		return "the task " + on + " is stalled" + t.trigger(f)
	case sim.Freeze:
		return on + "'s machine is suspended" + t.trigger(f)
	case sim.Crash:
		return on + " is to crash" + t.trigger(f)
	case sim.ClockStep:
		return fmt.Sprintf("the wall clock of %s jumps by %s", on, signed(t.span(f.By)))
	case sim.ClockRate:
		return fmt.Sprintf("the clocks of %s run %s", on, rate(f.Rate))
	case sim.ClockOffset:
		return fmt.Sprintf("the wall clock of %s is %s wrong%s", on, signed(t.span(f.By)), t.until(f))
	case sim.DropRequest:
		return fmt.Sprintf("%s %s will be lost%s", many, link(on), t.until(f))
	case sim.DropReply:
		return fmt.Sprintf("%s in answer to one %s will be lost%s", many, link(on), t.until(f))
	case sim.Delay:
		if !f.By.IsZero() {
			return fmt.Sprintf("%s %s will take %s longer%s", many, link(on), t.span(f.By), t.until(f))
		}
		return fmt.Sprintf("the next message %s will be held up in the network%s", link(on), t.until(f))
	case sim.Duplicate:
		return fmt.Sprintf("%s %s will arrive twice%s", many, link(on), t.until(f))
	case sim.Reorder:
		return fmt.Sprintf("%s %s will be overtaken%s", many, link(on), t.until(f))
	case sim.Partition:
		return fmt.Sprintf("the network splits: %s", partition(f))
	case sim.Cut:
		if f.Mode == "silent" {
			return fmt.Sprintf("the connections %s are cut, and nobody is told", link(on))
		}
		return fmt.Sprintf("the connections %s are cut", link(on))
	case sim.FsyncStall:
		return "the disk of " + on + " completes no fsync" + t.until(f)
	case sim.LoseUnsynced:
		return "the disk of " + on + " loses what was not yet fsynced"
	case sim.Failover:
		text := fmt.Sprintf("a failover at %s%s: a replica is promoted as it stands", on, t.trigger(f))
		if f.Mode == "demoted" {
			return text + ", and the old primary takes no more writes"
		}
		return text + ", and the old primary lives on, untold"
	case sim.Evict:
		return fmt.Sprintf("%s evicts the key %q%s, as under memory pressure", on, f.Key, t.trigger(f))
	case sim.Overwrite:
		return fmt.Sprintf("another service writes the key %q at %s%s, without a time to live", f.Key, on, t.trigger(f))
	case sim.RestoreSnapshot:
		return fmt.Sprintf("an operator puts back the disk of %s as it was %s ago", on, t.span(f.By))
	}
	return f.Kind.String() + " strikes " + on
}

// heals is the sentence for a fault that ends, "" where another line says it.
func (t *tape) heals(f *sim.Fault) string {
	on := f.On[0]
	switch f.Kind {
	case sim.Stall:
		return "the task " + on + " goes on"
	case sim.ClockRate:
		return "the clocks of " + on + " run at their true rate again"
	case sim.ClockOffset:
		return "the wall clock of " + on + " is put back"
	case sim.Delay:
		if f.By.IsZero() {
			return "the messages held up " + link(on) + " go on their way"
		}
		return "messages " + link(on) + " pass as before"
	case sim.DropRequest, sim.DropReply, sim.Duplicate, sim.Reorder:
		return "messages " + link(on) + " pass as before"
	case sim.Partition:
		return "the network is whole again"
	case sim.FsyncStall:
		return "the disk of " + on + " completes its fsyncs again"
	}
	return ""
}

func partition(f *sim.Fault) string {
	others := "everybody else"
	if len(f.From) > 0 {
		others = strings.Join(f.From, ", ")
	}
	how := "nothing passes between %s and %s"
	if f.OneWay {
		how = "nothing passes from %s to %s"
	}
	if f.Mode == "hold" {
		how += "; it is held until the split heals"
	}
	return fmt.Sprintf(how, strings.Join(f.On, ", "), others)
}

// rate writes parts per billion in the unit that fits.
func rate(ppb int64) string {
	how := "fast"
	if ppb < 0 {
		ppb, how = -ppb, "slow"
	}
	switch {
	case ppb%10_000_000 == 0:
		return fmt.Sprintf("%d %% %s", ppb/10_000_000, how)
	case ppb%1000 == 0:
		return fmt.Sprintf("%d parts per million %s", ppb/1000, how)
	}
	return fmt.Sprintf("%d parts per billion %s", ppb, how)
}

func signed(d string) string {
	if strings.HasPrefix(d, "-") {
		return d
	}
	return "+" + d
}
