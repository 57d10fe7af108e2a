package reports

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"io"
	"net/url"
	"strconv"
	"strings"

	"locklab/scenarios"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

// Page is one HTML file with any number of stories: a space-time diagram for
// each, its story beside it, and a chooser. The file stands alone: it loads
// nothing, and its Content-Security-Policy forbids it to. The same stories,
// added in the same order, give the same bytes.
type Page struct {
	texts     pageText
	data      pageData
	scenarios map[string]int // by name and title: position in data.Scenarios
}

// NewPage returns a page without stories. An empty title takes the title of
// the first story's scenario.
func NewPage(title string) *Page {
	return &Page{data: pageData{Title: title}, scenarios: map[string]int{}}
}

// Add adds a run, which must have been recorded with sim.TraceRecord. The
// page keeps nothing of the result.
func (p *Page) Add(res *scenarios.Result) {
	story := storyOf(res, &p.texts)
	story.Scenario = p.scenarioOf(res.Scenario)
	p.data.Stories = append(p.data.Stories, story)
}

// Len is the number of stories.
func (p *Page) Len() int { return len(p.data.Stories) }

// scenarioOf finds or adds what the stories of a scenario share. A bare plan
// has no scenario and shares an empty one.
func (p *Page) scenarioOf(s *scenarios.Scenario) int {
	if s == nil {
		s = &scenarios.Scenario{}
	}
	key := s.Name + "\x00" + s.Title
	if n, ok := p.scenarios[key]; ok {
		return n
	}
	d := scenarioData{Name: p.texts.of(scenarioName(s)), Title: p.texts.of(s.Title), Story: p.texts.of(strings.TrimSpace(s.Story))}
	for _, t := range s.Source {
		d.Sources = append(d.Sources, p.texts.of(t))
	}
	for _, t := range s.Questions {
		d.Questions = append(d.Questions, p.texts.of(t))
	}
	n := len(p.data.Scenarios)
	p.data.Scenarios = append(p.data.Scenarios, d)
	p.scenarios[key] = n
	return n
}

// planName stands for the scenario of a run that has none.
const planName = "plan"

func scenarioName(s *scenarios.Scenario) string {
	if s == nil || s.Name == "" {
		return planName
	}
	return s.Name
}

// Anchor is the fragment, "#" included, that opens a page at one story.
func Anchor(c *scenarios.Case, seed uint64) string {
	parts := []string{scenarioName(c.Scenario), c.Design.Name, c.Resource.Name, strconv.FormatUint(seed, 10)}
	for i, p := range parts {
		p = strings.ReplaceAll(url.PathEscape(p), "%2F", "/") // keep redis/lua-token readable
		parts[i] = strings.ReplaceAll(p, "@", "%40")          // the script separates the step with it
	}
	return "#" + strings.Join(parts, ",")
}

// WriteTo implements io.WriterTo: it writes the page.
func (p *Page) WriteTo(w io.Writer) (int64, error) {
	data := p.data
	data.Texts = p.texts.all
	if data.Title == "" && len(data.Scenarios) > 0 {
		data.Title = data.Texts[data.Scenarios[0].Title]
	}
	if data.Title == "" {
		data.Title = "locklab"
	}
	// encoding/json writes <, > and & as escapes, so that no text can end the
	// script element it stands in.
	text, err := json.Marshal(data)
	if err != nil {
		return 0, err
	}
	return writePage(w, data.Title, "application/json", text, pageCSS, pageJS)
}

// writePage writes a page that stands alone: its data, its style and its script
// are all in it. The data must be safe to stand in a script element.
func writePage(w io.Writer, title, dataType string, data []byte, style, script string) (int64, error) {
	tmpl, err := template.New("page").Parse(pageHTML)
	if err != nil {
		return 0, err
	}
	var out bytes.Buffer
	err = tmpl.Execute(&out, map[string]any{
		"Title": title, "Policy": contentPolicy(style, script), "Style": template.CSS(style), "Script": template.JS(script),
		"DataType": dataType, "Data": template.JS(data),
	})
	if err != nil {
		return 0, err
	}
	return out.WriteTo(w)
}

// contentPolicy allows our own style and script by their hashes, and nothing
// else: no network, no other script, whatever the data contain.
func contentPolicy(style, script string) string {
	return "default-src 'none'; script-src " + sourceHash(script) + "; style-src " + sourceHash(style) +
		"; img-src data:; base-uri 'none'; form-action 'none'"
}

func sourceHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// HTML writes a page with the given runs.
func HTML(w io.Writer, results []*scenarios.Result) error {
	p := NewPage("")
	for _, res := range results {
		p.Add(res)
	}
	_, err := p.WriteTo(w)
	return err
}
