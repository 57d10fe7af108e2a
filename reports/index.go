package reports

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"

	"locklab/scenarios"
	"locklab/sim"
)

//go:embed index.css
var indexCSS string

//go:embed index.js
var indexJS string

// storiesSize is how many bytes of data the diagrams may have before they are
// compressed, to about a seventh. It keeps the page below 5 MB.
const storiesSize = 20_000_000

const indexTitle = "locklab: distributed locks under faults"

// WriteIndex writes the page of a comparison, index.html: the matrix, and for
// each of its cells the shortest story with its diagram. The file stands alone
// as a Page does, and like it depends on what it shows alone. Each story is run
// again from its plan; one that does not come out as its plan says is an error.
func WriteIndex(w io.Writer, c *scenarios.Comparison) error {
	x := newIndex(c)
	if err := x.addFigures(); err != nil {
		return err
	}
	if err := replayed(x.stories(), x.addStory); err != nil {
		return err
	}
	x.data.pageData = x.page.data
	x.data.Title = indexTitle
	x.data.Texts = x.page.texts.all
	data, err := zipped(&x.data)
	if err != nil {
		return err
	}
	_, err = writePage(w, indexTitle, "application/gzip", data, pageCSS+indexCSS, indexJS+pageJS)
	return err
}

// zipped writes JSON, compressed with gzip, in base64: a tenth of its size.
func zipped(data any) ([]byte, error) {
	var out bytes.Buffer
	encode := base64.NewEncoder(base64.StdEncoding, &out)
	zip, err := gzip.NewWriterLevel(encode, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	err = errors.Join(json.NewEncoder(zip).Encode(data), zip.Close(), encode.Close())
	return out.Bytes(), err
}

// replay is a story that was run again. Its runner, which the result belongs
// to, must be closed.
type replay struct {
	runner *scenarios.Runner
	result *scenarios.Result
	err    error
}

// replayed runs stories again, several at once, and hands them over in their
// order. After an error it hands over no more.
func replayed(stories []*scenarios.Story, use func(*scenarios.Story, *scenarios.Result) error) error {
	ready := make([]chan replay, len(stories))
	for i := range ready {
		ready[i] = make(chan replay, 1)
	}
	room := make(chan struct{}, runtime.GOMAXPROCS(0)+1) // for runs that were not handed over yet
	go func() {
		for i, s := range stories {
			room <- struct{}{}
			go func() { ready[i] <- replayStory(s) }()
		}
	}()
	var failed error
	for i, s := range stories {
		r := <-ready[i]
		if failed == nil {
			failed = r.err
		}
		if failed == nil {
			failed = use(s, r.result)
		}
		if r.runner != nil {
			r.runner.Close()
		}
		<-room
	}
	return failed
}

func replayStory(s *scenarios.Story) (out replay) {
	file, err := scenarios.LoadPlanFile([]byte(s.Plan), s.File())
	if err != nil {
		return replay{err: err}
	}
	c, err := file.Case()
	if err != nil {
		return replay{err: fmt.Errorf("%s: %w", s.File(), err)}
	}
	c.Repeat = s.Command
	if out.runner, err = scenarios.NewRunner(c); err != nil {
		return replay{err: fmt.Errorf("%s: %w", s.File(), err)}
	}
	if out.result, err = out.runner.Run(file.Seed, sim.TraceRecord); err != nil {
		out.err = fmt.Errorf("%s: %w", s.File(), err)
		return out
	}
	if hash := fmt.Sprintf("%016x", out.result.Hash); file.TraceHash != "" && hash != file.TraceHash {
		out.err = fmt.Errorf("%s: its trace hash is %s, the plan says %s", s.File(), hash, file.TraceHash)
		return out
	}
	out.result.Report.Explain(out.result.History)
	return out
}
