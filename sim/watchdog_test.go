package sim

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

func TestWatchdogNamesTheStuckRun(t *testing.T) {
	stuck := make(chan string, 8)
	d := NewWatchdog(30*time.Millisecond, func(label string) { stuck <- label })
	defer d.Close()
	busy, lazy := d.Worker(), d.Worker()
	lazy.Begin(func() string { return "seed 7" })
	var got string
	for n := 0; got == ""; n++ { // runs that end do not trouble it
		busy.Begin(func() string { return fmt.Sprint("seed ", 1000+n) })
		select {
		case got = <-stuck:
		case <-time.After(time.Millisecond):
		}
		busy.End()
	}
	if got != "seed 7" {
		t.Errorf("the watchdog named %q, want seed 7", got)
	}
	time.Sleep(100 * time.Millisecond)
	if len(stuck) > 0 {
		t.Error("it barked again")
	}
}

func TestWatchdogKeepsQuiet(t *testing.T) {
	d := NewWatchdog(time.Second, func(label string) { t.Errorf("it barked at %s", label) })
	defer d.Close()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			w := d.Worker()
			for range 10_000 {
				w.Begin(func() string { return "a short run" })
				w.End()
			}
		})
	}
	wg.Wait()
	d.Close() // twice is fine
}

func BenchmarkWatchdog(b *testing.B) {
	d := NewWatchdog(time.Minute, func(string) {})
	defer d.Close()
	w := d.Worker()
	label := func() string { return "" }
	for b.Loop() {
		w.Begin(label)
		w.End()
	}
}
