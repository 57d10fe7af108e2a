package scenarios

import (
	"errors"
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Limits of a file. They are far above what a person writes, and keep the YAML
// parser, parts of which take time that grows with the square of the input and
// stack that grows with its nesting, within a fraction of a second.
const (
	fileMax    = 256 << 10 // bytes
	lineMax    = 10_000    // lines
	blankMax   = 1_000     // blank lines
	nestingMax = 20        // brackets, or dashes on one line
)

// Load reads a scenario. file is the name that messages show, and where the
// file gives no name of its own, the source of the scenario's name. Every
// error is an *InputError: one line that says where, what, and what would be
// right.
func Load(data []byte, file string) (*Scenario, error) {
	root, err := parseFile(data, file)
	if err != nil {
		return nil, err
	}
	return readScenario(root)
}

func readScenario(root yamlNode) (*Scenario, error) {
	s := &Scenario{
		Name:   strings.TrimSuffix(path.Base(root.file), path.Ext(root.file)),
		Params: DefaultParams(),
	}
	var plan planReader
	params := paramReader{params: &s.Params}
	err := root.mapping("a scenario", []key{
		{"name", func(n yamlNode) error { return n.readName(&s.Name) }},
		{"title", func(n yamlNode) error { return n.readText(&s.Title) }},
		{"story", func(n yamlNode) error { return n.readText(&s.Story) }},
		{"source", func(n yamlNode) error { return n.readTexts(&s.Source) }},
		{"design", func(n yamlNode) error { return s.refer(aDesign, n, n.readNames(&s.Designs)) }},
		{"resource", func(n yamlNode) error { return s.refer(aResource, n, n.readNames(&s.Resources)) }},
		{"clients", params.one("clients")},
		{"sections", params.one("sections")},
		{"workload", params.one("workload")},
		{"params", params.rest},
		{"plan", plan.read},
		{"choices", plan.readChoices},
		{"witnesses", func(n yamlNode) error { return readWitnesses(n, &s.Witnesses) }},
		{"stuck_after", params.one("stuck_after")},
		{"expect", func(n yamlNode) error { return s.readExpect(n) }},
		{"questions", func(n yamlNode) error { return n.readTexts(&s.Questions) }},
		{"answers", func(n yamlNode) error { return readAnswers(n, &s.Answers) }},
	})
	if err != nil {
		return nil, err
	}
	if err := params.check(root.pos()); err != nil {
		return nil, err
	}
	if s.Plan, err = plan.finish(&s.Params); err != nil {
		return nil, err
	}
	s.faults = plan.faults
	if err := plan.checkSections(s.Params.Sections); err != nil {
		return nil, err
	}
	if err := checkWitnesses(s); err != nil {
		return nil, err
	}
	return s, nil
}

// readAnswers reads the answers that a scenario gives: all of them, so that no
// reader has to guess.
func readAnswers(n yamlNode, out *[]Answer) error {
	asked := answerKeys()
	answers := make([]Answer, len(asked))
	keys := make([]key, len(asked))
	for i, q := range asked {
		answers[i].Question = q.question
		keys[i] = key{q.key, func(n yamlNode) error { return n.readText(&answers[i].Answer) }}
	}
	if err := n.mapping("answers", keys); err != nil {
		return err
	}
	for i, q := range asked {
		if answers[i].Answer == "" {
			return n.pos().Errorf("answers need %s: %s; they are %s", q.key, q.question, strings.Join(keyNames(keys), ", "))
		}
	}
	*out = answers
	return nil
}

func readWitnesses(n yamlNode, out *[]Witness) error {
	return n.list("a witness", func(item yamlNode) error {
		w := Witness{Pos: item.pos()}
		err := item.readText(&w.Text)
		*out = append(*out, w)
		return err
	})
}

func (s *Scenario) readExpect(n yamlNode) error {
	return n.list("an expectation", func(item yamlNode) error {
		e := Expectation{Pos: item.pos()}
		err := item.mapping("an expectation", []key{
			{"design", func(n yamlNode) error { return s.refer(aDesign, n, n.readPatterns(&e.Designs)) }},
			{"resource", func(n yamlNode) error { return s.refer(aResource, n, n.readPatterns(&e.Resources)) }},
			{"verdict", func(n yamlNode) error { return n.readWord("verdict", Verdicts(), &e.Verdict) }},
			{"lock", func(n yamlNode) error { return n.readWord("lock answer", LockAnswers(), &e.Lock) }},
			{"why", func(n yamlNode) error { return n.readText(&e.Why) }},
		})
		if err == nil && e.Verdict == "" {
			err = e.Pos.Errorf("an expectation needs a verdict: %s", strings.Join(Verdicts(), ", "))
		}
		s.Expect = append(s.Expect, e)
		return err
	})
}

// refer remembers where names or patterns stand that have just been read, for
// CheckNames. err is what reading them said.
func (s *Scenario) refer(what string, n yamlNode, err error) error {
	if err != nil {
		return err
	}
	return n.oneOrMore("a name", func(item yamlNode) error {
		text, err := item.scalar()
		s.references = append(s.references, reference{what, text, item.pos()})
		return err
	})
}

// paramReader reads parameters and remembers where they stand, for what can
// only be checked when all are known.
type paramReader struct {
	params *Params
	at     map[string]Pos
}

// one reads the parameter of that name.
func (r *paramReader) one(name string) func(yamlNode) error {
	return func(n yamlNode) error {
		text, err := n.scalar()
		if err != nil {
			return err
		}
		if r.at == nil {
			r.at = map[string]Pos{}
		}
		r.at[name] = n.pos()
		if err := r.params.Set(name, text); err != nil {
			return n.pos().Errorf("%s", err)
		}
		return nil
	}
}

// rest reads the params of a scenario: all but those that stand at its top.
func (r *paramReader) rest(n yamlNode) error {
	return n.mapping("params", r.keys(func(name string) func(yamlNode) error {
		switch name {
		case "clients", "sections", "workload", "stuck_after":
			return func(n yamlNode) error {
				return n.pos().Errorf("%s does not belong under params; move it to the top level", name)
			}
		}
		return r.one(name)
	}))
}

// all reads the params of a plan file.
func (r *paramReader) all(n yamlNode) error { return n.mapping("params", r.keys(r.one)) }

func (r *paramReader) keys(read func(name string) func(yamlNode) error) []key {
	var keys []key
	for _, q := range parameters() {
		keys = append(keys, key{q.Name, read(q.Name)})
	}
	return keys
}

// check validates what the parameters must keep among themselves.
func (r *paramReader) check(top Pos) error {
	err := r.params.Validate()
	if err == nil {
		return nil
	}
	if pe := (*ParamError)(nil); errors.As(err, &pe) {
		if pos, ok := r.at[pe.Name]; ok {
			top = pos
		}
	}
	return top.Errorf("%s", err)
}

// parseFile is the border to the YAML parser: what comes back is one document,
// cheap to walk, or a mistake of one line.
func parseFile(data []byte, file string) (root yamlNode, err error) {
	top := Pos{File: file, Line: 1, Column: 1}
	defer func() {
		// The parser has panicked on odd input before, so none may pass.
		if p := recover(); p != nil {
			root, err = yamlNode{}, top.Errorf("this is not YAML that can be read; check indentation, quotes and brackets")
		}
	}()
	text, err := checkText(data, top)
	if err != nil {
		return yamlNode{}, err
	}
	tokens := lexer.Tokenize(text)
	if err := checkTokens(tokens, file); err != nil {
		return yamlNode{}, err
	}
	// Repeated keys are our own to refuse, with a better message.
	tree, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return yamlNode{}, yamlMistake(err, top)
	}
	return onlyDocument(tree, top)
}

// checkText refuses what is too large or no text, and returns the text.
func checkText(data []byte, top Pos) (string, error) {
	if len(data) > fileMax {
		return "", top.Errorf("the file has %d bytes; allowed are %d", len(data), fileMax)
	}
	if !utf8.Valid(data) {
		return "", top.Errorf("the file is not UTF-8 text")
	}
	text := strings.TrimPrefix(strings.ReplaceAll(string(data), "\r\n", "\n"), "\ufeff")
	line, blank := 0, 0
	for l := range strings.SplitSeq(text, "\n") {
		line++
		if strings.TrimSpace(l) == "" {
			blank++
		}
		if i := strings.IndexFunc(l, isControl); i >= 0 {
			return "", Pos{top.File, line, utf8.RuneCountInString(l[:i]) + 1}.Errorf("a control character; write it as an escape in double quotes")
		}
	}
	if line > lineMax || blank > blankMax {
		return "", top.Errorf("the file has %d lines, %d of them blank; allowed are %d and %d", line, blank, lineMax, blankMax)
	}
	return text, nil
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// checkTokens refuses what scenarios have no use for, and nesting that would
// cost the parser its stack.
func checkTokens(tokens token.Tokens, file string) error {
	depth, dashes, line := 0, 0, 0
	for _, t := range tokens {
		pos := position(file, t)
		if t.Position.Line != line {
			line, dashes = t.Position.Line, 0
		}
		switch t.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			return pos.Errorf("anchors, aliases and merge keys (& * <<) are not read; write the value out, or quote a text that begins with %s", t.Value)
		case token.TagType:
			return pos.Errorf("tags such as %s are not read; leave it out", t.Value)
		case token.MappingKeyType:
			return pos.Errorf("keys marked with ? are not read; write key: value")
		case token.DirectiveType:
			return pos.Errorf("directives are not read; leave the line out")
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType:
			dashes++
		}
		if depth > nestingMax || dashes > nestingMax {
			return pos.Errorf("nested deeper than %d levels; a scenario needs three", nestingMax)
		}
	}
	return nil
}

// yamlMistake turns an error of the parser into one line with its position.
func yamlMistake(err error, top Pos) error {
	var syntax interface {
		GetToken() *token.Token
		GetMessage() string
	}
	if !errors.As(err, &syntax) {
		return top.Errorf("this is not YAML that can be read: %s", err)
	}
	if t := syntax.GetToken(); t != nil && t.Position != nil {
		top = position(top.File, t)
	}
	return top.Errorf("this is not YAML that can be read: %s; check indentation, quotes and brackets", syntax.GetMessage())
}

func onlyDocument(tree *ast.File, top Pos) (yamlNode, error) {
	if len(tree.Docs) == 0 || tree.Docs[0].Body == nil && len(tree.Docs) == 1 {
		return yamlNode{}, top.Errorf("the file is empty; write at least name: and plan:")
	}
	if len(tree.Docs) > 1 {
		if d := tree.Docs[1]; d.Start != nil {
			top = position(top.File, d.Start)
		}
		return yamlNode{}, top.Errorf("a second document begins here; write one a file")
	}
	return yamlNode{tree.Docs[0].Body, top.File}, nil
}

func position(file string, t *token.Token) Pos {
	return Pos{File: file, Line: t.Position.Line, Column: t.Position.Column}
}

// yamlNode is a node of the file under the name that messages show.
type yamlNode struct {
	node ast.Node
	file string
}

// key is one key of a mapping and how its value is read.
type key struct {
	name string
	read func(yamlNode) error
}

func (n yamlNode) pos() Pos {
	node := n.node
	// A block mapping's own token is its first colon; people look at its key.
	if m, ok := node.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		node = m.Values[0].Key
	}
	if node == nil || node.GetToken() == nil {
		return Pos{File: n.file, Line: 1, Column: 1}
	}
	return position(n.file, node.GetToken())
}

// kind names what the node is, for people.
func (n yamlNode) kind() string {
	switch n.node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.NullNode, nil:
		return "nothing"
	case *ast.StringNode, *ast.LiteralNode:
		return "a text"
	case *ast.BoolNode:
		return "true or false"
	}
	return "a number"
}

// mapping reads the keys of a mapping in the file's order. what names the
// mapping for messages.
func (n yamlNode) mapping(what string, keys []key) error {
	m, ok := n.node.(*ast.MappingNode)
	if !ok {
		return n.pos().Errorf("%s is written as key: value lines, got %s", what, n.kind())
	}
	seen := make(map[string]Pos, len(m.Values))
	for _, v := range m.Values {
		at := yamlNode{v.Key, n.file}
		name, err := at.scalar()
		if err != nil {
			return err
		}
		k := findKey(keys, name)
		if k == nil {
			return at.pos().Errorf("%s", unknown("key in "+what, name, keyNames(keys)))
		}
		if first, again := seen[name]; again {
			return at.pos().Errorf("%s stands twice in %s; the first is in line %d", name, what, first.Line)
		}
		seen[name] = at.pos()
		if err := k.read(yamlNode{v.Value, n.file}); err != nil {
			return err
		}
	}
	return nil
}

func findKey(keys []key, name string) *key {
	for i := range keys {
		if keys[i].name == name {
			return &keys[i]
		}
	}
	return nil
}

func keyNames(keys []key) []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.name
	}
	return names
}

// list reads every item of a list. what names one item.
func (n yamlNode) list(what string, each func(yamlNode) error) error {
	s, ok := n.node.(*ast.SequenceNode)
	if !ok {
		return n.pos().Errorf("want a list, each item of which is %s, got %s", what, n.kind())
	}
	for _, v := range s.Values {
		if err := each(yamlNode{v, n.file}); err != nil {
			return err
		}
	}
	return nil
}

// oneOrMore reads a list, or a single item that stands for a list of one.
func (n yamlNode) oneOrMore(what string, each func(yamlNode) error) error {
	if _, ok := n.node.(*ast.SequenceNode); ok {
		return n.list(what, each)
	}
	return each(n)
}

// scalar returns the text of a single value of any kind, as the file spells it.
//
// A text must not hold what a terminal would obey instead of showing it.
func (n yamlNode) scalar() (string, error) {
	switch v := n.node.(type) {
	case *ast.StringNode:
		return v.Value, n.printable(v.Value)
	case *ast.LiteralNode:
		return strings.TrimSpace(v.Value.Value), n.printable(v.Value.Value)
	case *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return v.GetToken().Value, nil
	}
	return "", n.pos().Errorf("want a single value, got %s; write just one", n.kind())
}

// printable refuses control characters other than tabs and ends of lines, and
// those that turn the direction of writing (Unicode Standard Annex 9).
func (n yamlNode) printable(text string) error {
	for _, r := range text {
		if unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\r' || unicode.Is(unicode.Bidi_Control, r) {
			return n.pos().Errorf("the character %U cannot be shown; leave it out", r)
		}
	}
	return nil
}

// readText reads a text for people. Numbers and the like want quotes, lest
// 1.10 and 1.1 be the same to some other reader of the file.
func (n yamlNode) readText(out *string) error {
	switch n.node.(type) {
	case *ast.StringNode, *ast.LiteralNode:
	case *ast.NullNode:
		return n.pos().Errorf("want a text, got nothing; write one or leave the key out")
	default:
		return n.pos().Errorf("want a text, got %s; put a text that looks like one in quotes", n.kind())
	}
	text, err := n.scalar()
	if err == nil && strings.TrimSpace(text) == "" {
		err = n.pos().Errorf("want a text, got an empty one; write one or leave the key out")
	}
	*out = text
	return err
}

func (n yamlNode) readTexts(out *[]string) error {
	return n.oneOrMore("a text", func(item yamlNode) error {
		*out = append(*out, "")
		return item.readText(&(*out)[len(*out)-1])
	})
}

// readWord reads one of a few words.
func (n yamlNode) readWord(what string, known []string, out *string) error {
	text, err := n.scalar()
	if err != nil {
		return err
	}
	for _, k := range known {
		if k == text {
			*out = text
			return nil
		}
	}
	return n.pos().Errorf("%s", unknown(what, text, known))
}

// readName reads the name of a scenario, a design or a resource.
func (n yamlNode) readName(out *string) error {
	return n.readMatching(isName, "a name is lower-case words with - and /, such as redis/lua-release", out)
}

func (n yamlNode) readNames(out *[]string) error {
	return n.oneOrMore("a name", func(item yamlNode) error {
		*out = append(*out, "")
		return item.readName(&(*out)[len(*out)-1])
	})
}

func (n yamlNode) readPatterns(out *[]string) error {
	return n.oneOrMore("a pattern", func(item yamlNode) error {
		*out = append(*out, "")
		return item.readMatching(isPattern, "a pattern is a name such as redis/lua-release, or redis/* for all of them", &(*out)[len(*out)-1])
	})
}

func (n yamlNode) readMatching(ok func(string) bool, rule string, out *string) error {
	text, err := n.scalar()
	if err != nil {
		return err
	}
	if !ok(text) {
		return n.pos().Errorf("cannot read %q; %s", text, rule)
	}
	*out = text
	return nil
}

// Compiled expressions are constants that Go cannot write as such.
var (
	namePattern  = regexp.MustCompile(`^[a-z0-9]+([-_.][a-z0-9]+)*(/[a-z0-9]+([-_.][a-z0-9]+)*)*$`)
	globPattern  = regexp.MustCompile(`^[a-z0-9/*._-]+$`)
	actorPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
)

func isName(s string) bool    { return namePattern.MatchString(s) }
func isPattern(s string) bool { return globPattern.MatchString(s) }
func isActor(s string) bool   { return actorPattern.MatchString(s) }
