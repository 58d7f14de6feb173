// Renders the templates of a chart as Helm does, with Go's own template engine and the functions that the chart uses.
// Standard input: {"folder", "data"}. Standard output: {"<template>": "<text>"}.
package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"
)

type request struct {
	Folder string         `json:"folder"`
	Data   map[string]any `json:"data"`
}

func main() {
	var asked request
	check(json.NewDecoder(os.Stdin).Decode(&asked))
	all := template.New("chart").Option("missingkey=error")
	all.Funcs(template.FuncMap{
		"include": func(name string, data any) (string, error) {
			var text strings.Builder
			err := all.ExecuteTemplate(&text, name, data)
			return text.String(), err
		},
		"toYaml": toYaml,
		"nindent": func(spaces int, text string) string {
			indent := "\n" + strings.Repeat(" ", spaces)
			return indent + strings.ReplaceAll(text, "\n", indent)
		},
		// Numbers of YAML and JSON are floating point here, as in Helm.
		"int64": func(value any) (int64, error) {
			number, isNumber := value.(float64)
			if !isNumber {
				return 0, fmt.Errorf("%v is no number", value)
			}
			return int64(number), nil
		},
		"quote":      func(value any) string { return fmt.Sprintf("%q", fmt.Sprint(value)) },
		"join":       join,
		"sha256sum":  func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) },
		"trunc":      func(most int, text string) string { return text[:min(most, len(text))] },
		"trimSuffix": func(end, text string) string { return strings.TrimSuffix(text, end) },
		"default": func(other, value any) any {
			if value == nil || value == "" {
				return other
			}
			return value
		},
		"required": func(message string, value any) (any, error) {
			if value == nil || value == "" {
				return nil, fmt.Errorf("%s", message)
			}
			return value, nil
		},
	})
	files, err := filepath.Glob(filepath.Join(asked.Folder, "templates", "*"))
	check(err)
	_, err = all.ParseFiles(files...)
	check(err)
	rendered := map[string]string{}
	for _, file := range files {
		name := filepath.Base(file)
		if strings.HasPrefix(name, "_") {
			continue
		}
		var text strings.Builder
		check(all.ExecuteTemplate(&text, name, asked.Data))
		rendered[name] = text.String()
	}
	check(json.NewEncoder(os.Stdout).Encode(rendered))
}

// Members and entries on lines of their own, as Helm has them. What is in them is JSON, which is YAML.
func toYaml(value any) string {
	var lines []string
	switch some := value.(type) {
	case map[string]any:
		for name, each := range some {
			lines = append(lines, fmt.Sprintf("%s: %s", inJson(name), inJson(each)))
		}
		sort.Strings(lines)
	case []any:
		for _, each := range some {
			lines = append(lines, "- "+inJson(each))
		}
	}
	if len(lines) == 0 {
		return inJson(value)
	}
	return strings.Join(lines, "\n")
}

func inJson(value any) string {
	text, err := json.Marshal(value)
	check(err)
	return string(text)
}

func join(separator string, values []any) string {
	texts := make([]string, len(values))
	for index, value := range values {
		texts[index] = fmt.Sprint(value)
	}
	return strings.Join(texts, separator)
}

func min(a, b int) int {
	if a < b {
		return a
	}
	return b
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
