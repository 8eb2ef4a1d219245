// Command parser says how Prometheus reads expressions.
//
// It reads one JSON string per line from standard input and writes one verdict per line: whether the expression is
// valid with every feature flag on, of which type it is, which flags it needs, and otherwise the first error with its
// place in bytes. It stops where flags are more than a list of what is needed: where an expression is valid with some
// flags and invalid with more of them. With the argument `functions` it writes the table of functions instead.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/prometheus/prometheus/promql/parser"
)

type feature struct {
	name   string
	enable func(*parser.Options)
}

var features = []feature{
	{"promql-experimental-functions", func(o *parser.Options) { o.EnableExperimentalFunctions = true }},
	{"promql-duration-expr", func(o *parser.Options) { o.ExperimentalDurationExpr = true }},
	{"promql-extended-range-selectors", func(o *parser.Options) { o.EnableExtendedRangeSelectors = true }},
	{"promql-binop-fill-modifiers", func(o *parser.Options) { o.EnableBinopFillModifiers = true }},
}

type verdict struct {
	Valid bool     `json:"valid"`
	Type  string   `json:"type,omitempty"`
	Shape string   `json:"shape,omitempty"`
	Needs []string `json:"needs,omitempty"`
	Error string   `json:"error,omitempty"`
	Start int      `json:"start,omitempty"`
}

func main() {
	var err error
	if len(os.Args) > 1 && os.Args[1] == "functions" {
		err = json.NewEncoder(os.Stdout).Encode(parser.Functions)
	} else {
		err = answerAll(os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "parser:", err)
		os.Exit(1)
	}
}

func answerAll(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 1<<20), 1<<24)
	written := bufio.NewWriter(out)
	answers := json.NewEncoder(written)
	answers.SetEscapeHTML(false)
	for lines.Scan() {
		var expr string
		if err := json.Unmarshal(lines.Bytes(), &expr); err != nil {
			return fmt.Errorf("a line is not a JSON string: %w", err)
		}
		answer, err := judge(expr)
		if err != nil {
			return err
		}
		if err := answers.Encode(answer); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return written.Flush()
}

func judge(expr string) (verdict, error) {
	root, err := parse(expr, 1<<len(features)-1)
	if err != nil {
		return refused(err), nil
	}
	answer := verdict{Valid: true, Type: string(root.Type()), Shape: shape(root)}
	needed := 0
	all := 1<<len(features) - 1
	for i, one := range features {
		if _, err := parse(expr, all&^(1<<i)); err != nil {
			answer.Needs = append(answer.Needs, one.name)
			needed |= 1 << i
		}
	}
	for set := 0; set <= all; set++ {
		if _, err := parse(expr, set); (err == nil) != (set&needed == needed) {
			return answer, fmt.Errorf("the flags of %q are no list of what is needed", expr)
		}
	}
	return answer, nil
}

func parse(expr string, set int) (parser.Expr, error) {
	var options parser.Options
	for i, one := range features {
		if set&(1<<i) != 0 {
			one.enable(&options)
		}
	}
	return parser.NewParser(options).ParseExpr(expr)
}

func refused(err error) verdict {
	answer := verdict{Error: err.Error()}
	var found parser.ParseErrors
	if errors.As(err, &found) && len(found) > 0 {
		answer.Error, answer.Start = found[0].Err.Error(), int(found[0].PositionRange.Start)
	}
	return answer
}
