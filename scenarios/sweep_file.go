package scenarios

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// A sweep's file is JSON Lines: the SweepSpec as a header, then one Unit a
// line. For a reader of the file each unit also names its cell and the first of
// its seeds; locklab goes by the number alone.

// ErrTruncated is in the error for a file that ends within a line: what comes
// before can be used.
var ErrTruncated = errors.New("the file ends within this line; it is left out")

// unitLine is a unit as it is written.
type unitLine struct {
	Unit
	Cell int    `json:"cell"`
	From uint64 `json:"from"`
}

// SweepHeader returns the first line of a sweep's file.
func SweepHeader(spec *SweepSpec) ([]byte, error) { return jsonLine(spec) }

// SweepLine returns a unit's line of a sweep's file.
func SweepLine(spec *SweepSpec, u Unit) ([]byte, error) {
	line := unitLine{Unit: u}
	line.Cell, line.From, _ = spec.span(u.Number)
	return jsonLine(line)
}

func jsonLine(v any) ([]byte, error) {
	line, err := json.Marshal(v)
	return append(line, '\n'), err
}

// WriteTo writes the result as a sweep's file, its units in order.
func (r *SweepResult) WriteTo(w io.Writer) (int64, error) {
	out := bufio.NewWriter(w)
	written := int64(0)
	put := func(line []byte, err error) error {
		if err != nil {
			return err
		}
		n, err := out.Write(line)
		written += int64(n)
		return err
	}
	if err := put(SweepHeader(&r.Spec)); err != nil {
		return written, err
	}
	for _, n := range r.numbers() {
		if err := put(SweepLine(&r.Spec, r.units[n])); err != nil {
			return written, err
		}
	}
	return written, out.Flush()
}

// ReadSweep reads a sweep's file. It returns how many bytes of the file are
// complete lines. The error wraps ErrTruncated if the last line is not; the
// result is then good. Any other error is one line, with file and line.
func ReadSweep(in io.Reader, name string) (*SweepResult, int64, error) {
	r := bufio.NewReader(in)
	complete := int64(0)
	var result *SweepResult
	for line := 1; ; line++ {
		raw, err := r.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF) && len(raw) == 0:
			if result == nil {
				return nil, 0, fmt.Errorf("%s:1: the file is empty; a sweep's file begins with a header", name)
			}
			return result, complete, nil
		case errors.Is(err, io.EOF) && result != nil:
			return result, complete, fmt.Errorf("%s:%d: %w", name, line, ErrTruncated)
		case err != nil && !errors.Is(err, io.EOF):
			return nil, 0, fmt.Errorf("%s: %w", name, err)
		}
		if result == nil {
			result, err = readHeader(raw)
		} else {
			err = result.readUnit(raw)
		}
		if err != nil {
			return nil, 0, fmt.Errorf("%s:%d: %w", name, line, err)
		}
		complete += int64(len(raw))
	}
}

func readHeader(raw []byte) (*SweepResult, error) {
	var probe map[string]json.RawMessage
	if json.Unmarshal(raw, &probe) != nil || probe["sweep"] == nil {
		return nil, errors.New(`this is not the header of a sweep's file; locklab sweep --out writes one`)
	}
	var spec SweepSpec
	if err := json.Unmarshal(raw, &spec); err != nil {
		return nil, fmt.Errorf("header: %s", jsonProblem(err))
	}
	switch {
	case spec.Format != sweepFormat:
		return nil, fmt.Errorf("field sweep: version %d of the format is not known, want %d", spec.Format, sweepFormat)
	case spec.Runs < 1 || spec.Runs > sweepRunsMax:
		return nil, fmt.Errorf("field runs: %d is out of range", spec.Runs)
	case spec.Seed > ^uint64(0)-uint64(spec.Runs):
		return nil, fmt.Errorf("field seed: %d is out of range", spec.Seed)
	case spec.Block < unitRunsMin || spec.Block > unitRunsMax:
		return nil, fmt.Errorf("field block: %d is out of range, want %d to %d", spec.Block, unitRunsMin, unitRunsMax)
	case len(spec.Cells) == 0:
		return nil, errors.New("field cells: there are none")
	case spec.Shards < 0 || spec.Shard < 0 || spec.Shard > spec.Shards || spec.Shards > 0 && spec.Shard == 0:
		return nil, fmt.Errorf("field shard: there is no shard %d of %d", spec.Shard, spec.Shards)
	}
	return NewSweepResult(spec), nil
}

func (r *SweepResult) readUnit(raw []byte) error {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return nil
	}
	u := Unit{Number: -1}
	if err := json.Unmarshal(raw, &u); err != nil {
		return errors.New(jsonProblem(err))
	}
	return r.Add(u)
}

// jsonProblem says what is wrong with a line, without the names of Go's types.
func jsonProblem(err error) string {
	var typed *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &typed) && typed.Field != "":
		return fmt.Sprintf("field %s: cannot be a %s", typed.Field, typed.Value)
	case errors.As(err, &typed), errors.As(err, &syntax):
		return "want a JSON object"
	}
	return oneLine(err.Error())
}
