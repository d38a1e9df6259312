// SPDX-License-Identifier: Apache-2.0

package ovsdb

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime"

	"github.com/ovn-org/libovsdb/cache"
	"github.com/ovn-org/libovsdb/model"
)

// Content is what the followed tables held at one moment: no transaction is in it by half. It does not change.
type Content struct {
	tables map[string]map[string]model.Model
}

// Rows gives the rows of a table by UUID; T is the struct that Config.Tables has for it. The rows are shared and
// not to be changed. A nil Content has no rows.
func Rows[T any](c *Content, table string) map[string]*T {
	if c == nil {
		return nil
	}
	rows := make(map[string]*T, len(c.tables[table]))
	for uuid, row := range c.tables[table] {
		typed, same := row.(*T)
		if !same { // decoded into a struct that lacks what the server's schema lacks
			typed = new(T)
			copyTagged(reflect.ValueOf(row).Elem(), reflect.ValueOf(typed).Elem())
		}
		rows[uuid] = typed
	}
	return rows
}

// maxReads bounds how often the copy is read again because an update came in between.
const maxReads = 1000

// read takes a Content out of libovsdb's copy. libovsdb applies an update row by row and hands out no lock over
// several tables. But asking for a table waits for an update that is being applied, and a changed row is another
// pointer: if two passes find the same pointers, no update was under way in the first.
func read(copy *cache.TableCache, f fit, root string) (*Content, error) {
	if copy == nil {
		return nil, errDisconnected
	}
	last := pass(copy, f)
	for range maxReads {
		next := pass(copy, f)
		if maps.EqualFunc(last, next, maps.Equal) {
			if len(next[root]) == 0 {
				return nil, fmt.Errorf("table %s has no row: the database is not set up, or this server gives an empty copy of it", root)
			}
			return &Content{tables: next}, nil
		}
		last = next
		runtime.Gosched()
	}
	return nil, errors.New("the database changes faster than it can be read")
}

func pass(copy *cache.TableCache, f fit) map[string]map[string]model.Model {
	tables := make(map[string]map[string]model.Model, len(f.models))
	for table := range f.models {
		tables[table] = copy.Table(table).RowsShallow()
	}
	return tables
}
