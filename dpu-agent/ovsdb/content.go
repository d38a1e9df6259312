// SPDX-License-Identifier: Apache-2.0

package ovsdb

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/ovn-org/libovsdb/model"
	"github.com/ovn-org/libovsdb/ovsdb"
	"github.com/ovn-org/libovsdb/updates"
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
		if typed, ok := row.(*T); ok {
			rows[uuid] = typed
		}
	}
	return rows
}

// replica is the copy of the followed tables as it is built from updates. It has one user at a time.
type replica struct {
	model  model.DatabaseModel
	tables map[string]map[string]model.Model
	// frozen are the tables as they were last given out, without those that changed since.
	frozen map[string]map[string]model.Model
}

func newReplica(m model.DatabaseModel) *replica {
	r := &replica{model: m, tables: map[string]map[string]model.Model{}, frozen: map[string]map[string]model.Model{}}
	for table := range m.Types() {
		r.tables[table] = map[string]model.Model{}
	}
	return r
}

// apply takes in the update of an update2 notification, or what monitor_cond replies (ovsdb-server(7)). It is one
// transaction or several, each whole.
func (r *replica) apply(text json.RawMessage) (err error) {
	defer func() {
		// libovsdb takes values for what they should be, and panics if they are not.
		if p := recover(); p != nil {
			err = fmt.Errorf("an update has a value of the wrong type: %v", p)
		}
	}()
	var update ovsdb.TableUpdates2
	if err := json.Unmarshal(text, &update); err != nil {
		return fmt.Errorf("an update cannot be read: %w", err)
	}
	for table, rows := range update {
		delete(r.frozen, table)
		for uuid, row := range rows {
			if err := r.applyRow(table, uuid, *row); err != nil {
				return fmt.Errorf("an update of row %s of table %s cannot be applied: %w", uuid, table, err)
			}
		}
	}
	return nil
}

func (r *replica) applyRow(table, uuid string, row ovsdb.RowUpdate2) error {
	rows, followed := r.tables[table]
	if !followed {
		return errors.New("the table is not followed")
	}
	current, exists := rows[uuid]
	if !exists && row.Initial == nil && row.Insert == nil {
		return errors.New("there is no such row")
	}
	var changes updates.ModelUpdates
	if err := changes.AddRowUpdate2(r.model, table, uuid, current, row); err != nil {
		return err
	}
	return changes.ForEachModelUpdate(table, func(uuid string, _, changed model.Model) error {
		if changed == nil {
			delete(rows, uuid)
		} else {
			rows[uuid] = changed
		}
		return nil
	})
}

// content gives out what the tables hold now.
func (r *replica) content() *Content {
	for table, rows := range r.tables {
		if r.frozen[table] == nil {
			r.frozen[table] = maps.Clone(rows)
		}
	}
	return &Content{tables: maps.Clone(r.frozen)}
}
