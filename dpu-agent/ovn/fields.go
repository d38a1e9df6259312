// SPDX-License-Identifier: Apache-2.0

package ovn

import (
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/ovn-uplink/ovn-uplink/dpu-agent/ovsdb"
)

const idsColumn = "external_ids"

// field is a column of a row with its value: a string, *string, int, []string or map[string]string.
type field struct {
	column string
	value  any
}

// layouts are, by row struct, the columns that are written and where they are.
var layouts sync.Map

type column struct {
	name  string
	index int
}

func layout(t reflect.Type) []column {
	if known, ok := layouts.Load(t); ok {
		return known.([]column)
	}
	var columns []column
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		if _, refers := tag.Lookup("refs"); !refers && tag.Get("ovsdb") != "_uuid" {
			columns = append(columns, column{name: tag.Get("ovsdb"), index: i})
		}
	}
	layouts.Store(t, columns)
	return columns
}

// fieldsOf are the columns of a row that are written by its own, not by rows that it refers to.
func fieldsOf(r row) []field {
	v := reflect.ValueOf(r).Elem()
	columns := layout(v.Type())
	fields := make([]field, len(columns))
	for i, c := range columns {
		fields[i] = field{column: c.name, value: v.Field(c.index).Interface()}
	}
	return fields
}

// newRow is what to insert for a row.
func newRow(r row) ovsdb.Row {
	out := ovsdb.Row{}
	for _, f := range fieldsOf(r) {
		if !reflect.ValueOf(f.value).IsZero() {
			out[f.column] = cell(f.value)
		}
	}
	return out
}

// changes is what to update so that a row becomes as it should be; empty if it is. Of external_ids only those of this
// package matter: others may have put notes there.
func changes(is, want row) ovsdb.Row {
	var out ovsdb.Row
	old := fieldsOf(is)
	for i, f := range fieldsOf(want) {
		if f.column == idsColumn {
			if contains(is.ids(), want.ids()) {
				continue
			}
			merged := maps.Clone(is.ids())
			maps.Copy(merged, want.ids())
			f.value = merged
		}
		if !same(old[i].value, f.value) {
			if out == nil {
				out = ovsdb.Row{}
			}
			out[f.column] = cell(f.value)
		}
	}
	return out
}

func contains(all, some map[string]string) bool {
	for key, value := range some {
		if all[key] != value {
			return false
		}
	}
	return true
}

// same tells whether two values of a column are the same in OVSDB, where sets have no order.
func same(a, b any) bool {
	switch a := a.(type) {
	case *string:
		b := b.(*string)
		return (a == nil) == (b == nil) && value(a) == value(b)
	case []string:
		b := b.([]string)
		return slices.Equal(a, b) || len(a) == len(b) && slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
	case map[string]string:
		return maps.Equal(a, b.(map[string]string))
	}
	return a == b
}

// cell is a value as a transaction has it.
func cell(v any) any {
	switch v := v.(type) {
	case *string:
		if v == nil {
			return ovsdb.Set{}
		}
		return ovsdb.Set{GoSet: []any{*v}}
	case []string:
		set := ovsdb.Set{GoSet: make([]any, len(v))}
		for i, element := range v {
			set.GoSet[i] = element
		}
		return set
	case map[string]string:
		m := ovsdb.Map{GoMap: make(map[any]any, len(v))}
		for key, element := range v {
			m.GoMap[key] = element
		}
		return m
	}
	return v
}
