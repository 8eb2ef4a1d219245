package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

// shape writes a tree so that two readings of an expression are the same exactly if their shapes are. Durations that
// are computed are written as such: their value hangs on the query.
func shape(expr parser.Expr) string {
	switch n := expr.(type) {
	case *parser.NumberLiteral:
		if math.IsNaN(n.Val) {
			return "NaN"
		}
		return fmt.Sprintf("%d", math.Float64bits(n.Val))
	case *parser.StringLiteral:
		return fmt.Sprintf("'%x'", n.Val)
	case *parser.ParenExpr:
		return "(" + shape(n.Expr) + ")"
	case *parser.UnaryExpr:
		return n.Op.String() + shape(n.Expr)
	case *parser.VectorSelector:
		return selector(n)
	case *parser.MatrixSelector:
		return shape(n.VectorSelector) + "[" + span(n.Range.Nanoseconds(), n.RangeExpr) + "]"
	case *parser.SubqueryExpr:
		at := moved(n.OriginalOffset.Nanoseconds(), n.OriginalOffsetExpr, n.Timestamp, n.StartOrEnd)
		step := span(n.Step.Nanoseconds(), n.StepExpr)
		return fmt.Sprintf("{%s}[%s:%s]%s", shape(n.Expr), span(n.Range.Nanoseconds(), n.RangeExpr), step, at)
	case *parser.Call:
		return n.Func.Name + "(" + list(n.Args) + ")"
	case *parser.AggregateExpr:
		how := "by"
		if n.Without {
			how = "without"
		}
		args := parser.Expressions{n.Expr}
		if n.Param != nil {
			args = parser.Expressions{n.Param, n.Expr}
		}
		return fmt.Sprintf("%s %s%s(%s)", n.Op, how, names(n.Grouping), list(args))
	case *parser.BinaryExpr:
		return fmt.Sprintf("<%s %s%s %s>", shape(n.LHS), n.Op, matching(n), shape(n.RHS))
	}
	return fmt.Sprintf("%T", expr)
}

func list(exprs parser.Expressions) string {
	var written []string
	for _, one := range exprs {
		written = append(written, shape(one))
	}
	return strings.Join(written, ", ")
}

func names(labels []string) string {
	var written []string
	for _, one := range labels {
		written = append(written, fmt.Sprintf("%x", one))
	}
	return "(" + strings.Join(written, ",") + ")"
}

func selector(n *parser.VectorSelector) string {
	matchers := n.LabelMatchers
	if n.Name != "" {
		matchers = matchers[:len(matchers)-1]
	}
	var written []string
	for _, one := range matchers {
		written = append(written, fmt.Sprintf("%x%s%x", one.Name, one.Type, one.Value))
	}
	mode := ""
	if n.Anchored {
		mode = "anchored"
	}
	if n.Smoothed {
		mode = "smoothed"
	}
	at := moved(n.OriginalOffset.Nanoseconds(), n.OriginalOffsetExpr, n.Timestamp, n.StartOrEnd)
	return fmt.Sprintf("%s{%s}%s%s", n.Name, strings.Join(written, ","), mode, at)
}

func span(nanoseconds int64, expr *parser.DurationExpr) string {
	if expr != nil {
		return "computed"
	}
	return fmt.Sprintf("%d", nanoseconds)
}

func moved(offset int64, expr *parser.DurationExpr, at *int64, startOrEnd parser.ItemType) string {
	written := ""
	if offset != 0 || expr != nil {
		written += " offset " + span(offset, expr)
	}
	if at != nil {
		written += fmt.Sprintf(" @ %d", *at)
	} else if startOrEnd == parser.START || startOrEnd == parser.END {
		written += " @ " + startOrEnd.String()
	}
	return written
}

func matching(n *parser.BinaryExpr) string {
	written := ""
	if n.ReturnBool {
		written += " bool"
	}
	match := n.VectorMatching
	if match == nil {
		return written
	}
	if match.On || len(match.MatchingLabels) > 0 {
		how := "ignoring"
		if match.On {
			how = "on"
		}
		written += " " + how + names(match.MatchingLabels)
	}
	switch match.Card {
	case parser.CardManyToOne:
		written += " left" + names(match.Include)
	case parser.CardOneToMany:
		written += " right" + names(match.Include)
	}
	if match.FillValues.LHS != nil || match.FillValues.RHS != nil {
		written += " fill"
	}
	return written
}
