// SPDX-License-Identifier: Apache-2.0

package ovsdb

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/ovn-org/libovsdb/model"
	"github.com/ovn-org/libovsdb/ovsdb"
)

const uuidColumn = "_uuid"

// fit is how the row structs of a Config fit to the schema of a server.
type fit struct {
	model model.DatabaseModel
	// columns are those to monitor, by table and sorted.
	columns map[string][]string
	// missing are the optional columns that the server does not have, as table.column, sorted.
	missing []string
}

// fitTo decides what to monitor on a server with the given schema. libovsdb refuses a struct with a column that the
// schema lacks; such a column is added to the schema and just never asked for.
func fitTo(schema ovsdb.DatabaseSchema, tables map[string]any) (fit, error) {
	f := fit{columns: map[string][]string{}}
	models := map[string]model.Model{}
	for table, row := range tables {
		models[table] = row
		for _, field := range reflect.VisibleFields(reflect.TypeOf(row).Elem()) {
			column, tagged := field.Tag.Lookup("ovsdb")
			switch {
			case !tagged || column == uuidColumn:
			case has(schema, table, column, field.Type):
				f.columns[table] = append(f.columns[table], column)
			case field.Tag.Get("optional") == "true":
				f.missing = append(f.missing, table+"."+column)
				if err := add(schema, table, column, field.Type); err != nil {
					return fit{}, err
				}
			default:
				return fit{}, fmt.Errorf("the server's schema %s has no column %s.%s of type %s", schema.Version, table, column, field.Type)
			}
		}
		slices.Sort(f.columns[table])
	}
	slices.Sort(f.missing)
	client, err := model.NewClientDBModel(schema.Name, models)
	if err != nil {
		return fit{}, err
	}
	var errs []error
	if f.model, errs = model.NewDatabaseModel(schema, client); len(errs) > 0 {
		return fit{}, fmt.Errorf("the row structs do not fit to the server's schema: %v", errs)
	}
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

// add adds a column for a field of the given type to a schema, in place of one that has another type.
func add(schema ovsdb.DatabaseSchema, table, column string, field reflect.Type) error {
	kind := map[string]any{"min": 0, "max": "unlimited"}
	switch field.Kind() {
	case reflect.Pointer:
		kind["key"], kind["max"] = atom(field.Elem()), 1
	case reflect.Slice:
		kind["key"] = atom(field.Elem())
	case reflect.Map:
		kind["key"], kind["value"] = atom(field.Key()), atom(field.Elem())
	default:
		kind["key"], kind["min"], kind["max"] = atom(field), 1, 1
	}
	text, err := json.Marshal(map[string]any{"type": kind})
	if err != nil {
		return err
	}
	added := new(ovsdb.ColumnSchema)
	if err := json.Unmarshal(text, added); err != nil {
		return fmt.Errorf("column %s.%s: %w", table, column, err)
	}
	t, known := schema.Tables[table]
	if !known {
		t.Columns = map[string]*ovsdb.ColumnSchema{}
	}
	t.Columns[column] = added
	schema.Tables[table] = t
	return nil
}

// atom is the atomic type of OVSDB for a Go type.
func atom(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int:
		return ovsdb.TypeInteger
	case reflect.Float64:
		return ovsdb.TypeReal
	case reflect.Bool:
		return ovsdb.TypeBoolean
	default:
		return ovsdb.TypeString
	}
}
