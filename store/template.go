package store

import (
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"text/template/parse"
)

// templates are statements with conditions, by name. They are written in the language of
// text/template, and only as much of it is understood as they use. text/template itself
// calls methods by name, for which the linker keeps every exported method of every type:
// with it the program is 3 MB larger.
type templates map[string]*parse.Tree

// mustParse reads all files of one folder. They are part of the program, so what is wrong
// with them is a bug.
func mustParse(files fs.FS, pattern string) templates {
	all := templates{}
	names, err := fs.Glob(files, pattern)
	if err != nil {
		panic(fmt.Sprintf("store: %v", err))
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			panic(fmt.Sprintf("store: %v", err))
		}
		_, base, _ := strings.Cut(name, "/")
		maps.Copy(all, parsed(base, string(text)))
	}
	return all
}

// parsed is one file's statement, and the parts that it defines.
func parsed(name, text string) templates {
	trees, err := parse.Parse(name, text, "", "", map[string]any{"eq": true, "ne": true, "not": true})
	if err != nil {
		panic(fmt.Sprintf("store: statement: %v", err))
	}
	return trees
}

// render gives the text of a statement.
func (t templates) render(name string, data map[string]any) string {
	var b strings.Builder
	t.write(&b, t[name].Root, data)
	return b.String()
}

func (t templates) write(b *strings.Builder, node parse.Node, data map[string]any) {
	switch n := node.(type) {
	case *parse.ListNode:
		for _, each := range n.Nodes {
			t.write(b, each, data)
		}
	case *parse.TextNode:
		b.Write(n.Text)
	case *parse.ActionNode:
		fmt.Fprint(b, value(n.Pipe, data))
	case *parse.IfNode:
		if value(n.Pipe, data).(bool) {
			t.write(b, n.List, data)
		} else if n.ElseList != nil {
			t.write(b, n.ElseList, data)
		}
	case *parse.TemplateNode:
		t.write(b, t[n.Name].Root, data)
	default:
		panic(fmt.Sprintf("store: statements can't hold %s", node))
	}
}

// value is what stands between two braces: a field, not of one, or eq or ne of two.
func value(node parse.Node, data map[string]any) any {
	switch n := node.(type) {
	case *parse.PipeNode:
		if len(n.Cmds) == 1 {
			return call(n.Cmds[0].Args, data)
		}
	case *parse.FieldNode:
		if field, ok := data[strings.Join(n.Ident, ".")]; ok {
			return field
		}
	case *parse.StringNode:
		return n.Text
	}
	panic(fmt.Sprintf("store: statements can't hold %s", node))
}

func call(args []parse.Node, data map[string]any) any {
	switch {
	case len(args) == 1:
		return value(args[0], data)
	case len(args) == 2 && args[0].String() == "not":
		return !value(args[1], data).(bool)
	case len(args) == 3 && args[0].String() == "eq":
		return value(args[1], data) == value(args[2], data)
	case len(args) == 3 && args[0].String() == "ne":
		return value(args[1], data) != value(args[2], data)
	}
	panic(fmt.Sprintf("store: statements can't hold %v", args))
}
