// SPDX-License-Identifier: Apache-2.0

package ovsdb

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/ovn-org/libovsdb/model"
	"github.com/ovn-org/libovsdb/ovsdb"
)

const uuidColumn = "_uuid"

// fit is how the row structs of a Config fit to the schema of a server.
type fit struct {
	// models has the struct that the rows of a table are decoded into: the caller's, or one without the fields that
	// the server has no column for, because libovsdb refuses a struct with an unknown column.
	models map[string]model.Model
	// columns are those to monitor, sorted. libovsdb takes no list for "all columns of the schema", which would
	// bring the statistics of every interface every five seconds.
	columns map[string][]string
	// missing are the optional columns left out, as table.column, sorted.
	missing []string
}

// fitTo decides what to monitor on a server with the given schema.
func fitTo(schema ovsdb.DatabaseSchema, tables map[string]any) (fit, error) {
	f := fit{models: map[string]model.Model{}, columns: map[string][]string{}}
	for table, row := range tables {
		var known []reflect.StructField
		var columns, missing []string
		for _, field := range reflect.VisibleFields(reflect.TypeOf(row).Elem()) {
			column, tagged := field.Tag.Lookup("ovsdb")
			if !tagged {
				continue
			}
			if !has(schema, table, column, field.Type) {
				if column != uuidColumn && field.Tag.Get("optional") != "true" {
					return fit{}, fmt.Errorf("the server's schema %s has no column %s.%s of type %s", schema.Version, table, column, field.Type)
				}
				missing = append(missing, table+"."+column)
				continue
			}
			known = append(known, reflect.StructField{Name: field.Name, Type: field.Type, Tag: field.Tag})
			if column != uuidColumn {
				columns = append(columns, column)
			}
		}
		f.missing = append(f.missing, missing...)
		if len(columns) == 0 {
			continue // the table is absent, and all its columns are optional
		}
		slices.Sort(columns)
		f.columns[table] = columns
		f.models[table] = row
		if len(missing) > 0 {
			f.models[table] = reflect.New(structOf(table, known)).Interface()
		}
	}
	slices.Sort(f.missing)
	return f, nil
}

// has tells whether a table has a column that a field of the given type can hold.
func has(schema ovsdb.DatabaseSchema, table, column string, field reflect.Type) bool {
	t := schema.Table(table)
	if t == nil {
		return false
	}
	c := t.Column(column)
	return c != nil && ovsdb.NativeType(c) == field
}

// structOf makes a struct type for the rows of a table. libovsdb knows tables by the type of their rows, and Go
// takes two types with the same fields for one: a field named after the table keeps them apart.
func structOf(table string, fields []reflect.StructField) reflect.Type {
	mark := reflect.StructField{Name: "Of_" + table, Type: reflect.TypeFor[struct{}]()}
	return reflect.StructOf(append(fields, mark))
}

// copyTagged copies the columns of a row into a struct that has all of its fields.
func copyTagged(from, to reflect.Value) {
	for i := range from.NumField() {
		if field := from.Type().Field(i); field.Tag != "" {
			to.FieldByName(field.Name).Set(from.Field(i))
		}
	}
}
