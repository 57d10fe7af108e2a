package reports

import (
	"bytes"
	"strings"
)

type indexFigure struct {
	Title   int    `json:"title"`   // text
	Reading int    `json:"reading"` // text
	SVG     string `json:"svg"`
}

// addFigures adds the comparison's pictures, but for those of the matrix, which
// the page draws itself. It shows each as an image of its own, in which no
// script runs.
func (x *index) addFigures() error {
	figures := Figures(x.c)
	for i := range figures {
		f := &figures[i]
		if strings.HasPrefix(f.Name, "matrix") {
			continue
		}
		var b bytes.Buffer
		if err := f.WriteSVG(&b); err != nil {
			return err
		}
		x.data.Report.Figures = append(x.data.Report.Figures, indexFigure{Title: x.text(f.Title), Reading: x.text(f.Reading), SVG: b.String()})
	}
	return nil
}
