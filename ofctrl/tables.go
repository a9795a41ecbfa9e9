// SPDX-License-Identifier: Apache-2.0

package ofctrl

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"

	"github.com/flowgate/flowgate/internal/ofp"
	"github.com/flowgate/flowgate/internal/oxm"
)

// TableConfig is what can be set of a flow table with a TableMod.
type TableConfig struct {
	// Eviction lets a full table drop a flow that has a time-out to make room
	// for another. How many flows are full is for the database to say:
	// Flow_Table rows, ovs-vswitchd.conf.db(5).
	Eviction bool
	// VacancyEvents asks for an OFPT_TABLE_STATUS when the room in the table
	// falls below VacancyDown percent or rises above VacancyUp. Such messages
	// come only when Conn.SetAsync lets them.
	VacancyEvents          bool
	VacancyDown, VacancyUp uint8
}

// Bits of a table's configuration and its properties. OpenFlow 1.5.1, 7.3.4.
const (
	tableEviction      = 1 << 2
	tableVacancyEvents = 1 << 3

	tablePropVacancy = 3
)

// TableMod is OFPT_TABLE_MOD: it configures a table, or with TableAll each. It
// sets all of a table's configuration, so begin with what Conn.Tables gives. It
// can not be in a bundle. The switch does not answer it: Exec it.
//
// What a packet meets that no flow of a table matches can not be set here: it
// is dropped unless a flow of priority 0 says otherwise.
type TableMod struct {
	Table uint8
	TableConfig
}

// AppendBinary appends the message. OpenFlow 1.5.1, 7.3.4.
func (m TableMod) AppendBinary(b []byte) ([]byte, error) {
	start := len(b)
	b = ofp.AppendHeader(b, ofp.TypeTableMod, 0)
	b = append(b, m.Table, 0, 0, 0)
	config := uint32(0)
	if m.Eviction {
		config |= tableEviction
	}
	if m.VacancyEvents {
		config |= tableVacancyEvents
	}
	b = binary.BigEndian.AppendUint32(b, config)
	if m.VacancyEvents {
		b = ofp.AppendProperty(b, tablePropVacancy, []byte{m.VacancyDown, m.VacancyUp, 0, 0})
	}
	return ofp.Finish(b, start)
}

// MarshalBinary returns the message.
func (m TableMod) MarshalBinary() ([]byte, error) { return m.AppendBinary(nil) }

// Table is the configuration of one flow table as the switch describes it.
type Table struct {
	Table uint8
	TableConfig
	// Vacancy is the room in the table in percent, told with VacancyEvents
	// only.
	Vacancy uint8
}

// Tables yields the configuration of every flow table: OFPMP_TABLE_DESC.
func (c *Conn) Tables(ctx context.Context) iter.Seq2[Table, error] {
	return entries(ctx, c, statsRequest(ofp.MultipartTableDesc, nil), parseTable)
}

func parseTable(b []byte) (Table, []byte, error) {
	const fixed = 8
	entry, err := cut16(b, 0, fixed)
	if err != nil {
		return Table{}, nil, err
	}
	config := binary.BigEndian.Uint32(entry[4:])
	t := Table{Table: entry[2], TableConfig: TableConfig{
		Eviction: config&tableEviction != 0, VacancyEvents: config&tableVacancyEvents != 0,
	}}
	for prop, err := range ofp.Properties(entry[fixed:]) {
		if err != nil {
			return Table{}, nil, err
		}
		if prop.Type == tablePropVacancy && len(prop.Value) >= 3 {
			t.VacancyDown, t.VacancyUp, t.Vacancy = prop.Value[0], prop.Value[1], prop.Value[2]
		}
	}
	return t, b[len(entry):], nil
}

// TableStatusReason says why a table status was sent. OpenFlow 1.5.1, 7.4.5.
type TableStatusReason uint8

// The reasons of 7.4.5.
const (
	TableVacancyDown TableStatusReason = 3 // there is less room than TableConfig.VacancyDown
	TableVacancyUp   TableStatusReason = 4 // there is more room than TableConfig.VacancyUp again
)

// String is the reason in ovs-ofctl's spelling.
func (r TableStatusReason) String() string {
	switch r {
	case TableVacancyDown:
		return "vacancy_down"
	case TableVacancyUp:
		return "vacancy_up"
	}
	return fmt.Sprint(uint8(r))
}

// TableStatus decodes an OFPT_TABLE_STATUS. OpenFlow 1.5.1, 7.4.5.
func (f Frame) TableStatus() (TableStatusReason, Table, error) {
	const table = 16
	if ofp.Type(f.Type) != ofp.TypeTableStatus || len(f.Raw) < table || f.Raw[0] != ofp.Version {
		return 0, Table{}, fmt.Errorf("%w: %v is no table status", ErrMalformed, f)
	}
	t, _, err := parseTable(f.Raw[table:])
	return TableStatusReason(f.Raw[8]), t, err
}

// TableFeatures say what flows one table can hold.
type TableFeatures struct {
	Table      uint8
	Name       string // from the database: Flow_Table.name
	MaxEntries uint32 // an upper bound

	// The bits of the metadata field that a flow can match and write.
	MetadataMatch, MetadataWrite uint64
	Eviction, VacancyEvents      bool // can be had

	Hit  TableAbilities // of flows
	Miss TableAbilities // of the flow that takes what no other does

	// Match are the fields that a flow can match, and Required those of them
	// that it must.
	Match    []MatchField
	Required []string
}

// TableAbilities are what flows of a table can do. Bit n of a mask stands for
// the instruction, or the action, of type n: OpenFlow 1.5.1, 7.2.4 and 7.2.6.
type TableAbilities struct {
	Instructions                 uint32
	NextTables                   []uint8
	WriteActions, ApplyActions   uint32
	WriteSetField, ApplySetField []string // names of fields as in ovs-fields(7)
}

// MatchField is a field that flows can match.
type MatchField struct {
	Name     string // as in ovs-fields(7)
	Maskable bool   // bit by bit
}

// TableFeatures yields what each flow table can do. Open vSwitch says the same
// of each but for NextTables, in 1.2 MB. OFPMP_TABLE_FEATURES.
func (c *Conn) TableFeatures(ctx context.Context) iter.Seq2[TableFeatures, error] {
	return entries(ctx, c, statsRequest(ofp.MultipartTableFeatures, nil), parseTableFeatures)
}

// Properties of table features; one for the miss flow is higher by one.
const (
	featureInstructions  = 0
	featureNextTables    = 2
	featureWriteActions  = 4
	featureApplyActions  = 6
	featureMatch         = 8
	featureWildcards     = 10
	featureWriteSetField = 12
	featureApplySetField = 14
	featuresEnd          = 16
)

func parseTableFeatures(b []byte) (TableFeatures, []byte, error) {
	const fixed, name, nameLen = 64, 8, 32
	entry, err := cut16(b, 0, fixed)
	if err != nil {
		return TableFeatures{}, nil, err
	}
	be := binary.BigEndian
	text, _, _ := bytes.Cut(entry[name:name+nameLen], []byte{0})
	capabilities := be.Uint32(entry[56:])
	t := TableFeatures{
		Table: entry[2], Name: string(text), MaxEntries: be.Uint32(entry[60:]),
		MetadataMatch: be.Uint64(entry[40:]), MetadataWrite: be.Uint64(entry[48:]),
		Eviction: capabilities&tableEviction != 0, VacancyEvents: capabilities&tableVacancyEvents != 0,
	}
	var seen uint32
	var wildcards []string
	for prop, err := range ofp.Properties(entry[fixed:]) {
		if err != nil {
			return TableFeatures{}, nil, err
		}
		if prop.Type >= featuresEnd {
			continue // an experimenter's
		}
		seen |= 1 << prop.Type
		switch prop.Type {
		case featureMatch:
			t.Match, err = matchFields(prop.Value)
		case featureWildcards:
			wildcards, err = fieldNames(prop.Value)
		default:
			to := &t.Hit
			if prop.Type%2 != 0 {
				to = &t.Miss
			}
			err = to.add(prop.Type&^1, prop.Value)
		}
		if err != nil {
			return TableFeatures{}, nil, err
		}
	}
	t.Miss.inherit(&t.Hit, seen)
	for _, f := range t.Match {
		if !f.Maskable && !slices.Contains(wildcards, f.Name) {
			t.Required = append(t.Required, f.Name)
		}
	}
	return t, b[len(entry):], nil
}

// add reads one property.
func (a *TableAbilities) add(typ uint16, value []byte) (err error) {
	switch typ {
	case featureInstructions:
		a.Instructions, err = typeMask(value)
	case featureNextTables:
		a.NextTables = slices.Clone(value)
	case featureWriteActions:
		a.WriteActions, err = typeMask(value)
	case featureApplyActions:
		a.ApplyActions, err = typeMask(value)
	case featureWriteSetField:
		a.WriteSetField, err = fieldNames(value)
	case featureApplySetField:
		a.ApplySetField, err = fieldNames(value)
	}
	return err
}

// inherit takes over from the flows what was not said of the miss flow.
func (a *TableAbilities) inherit(hit *TableAbilities, seen uint32) {
	said := func(typ int) bool { return seen&(1<<(typ+1)) != 0 }
	if !said(featureInstructions) {
		a.Instructions = hit.Instructions
	}
	if !said(featureNextTables) {
		a.NextTables = hit.NextTables
	}
	if !said(featureWriteActions) {
		a.WriteActions = hit.WriteActions
	}
	if !said(featureApplyActions) {
		a.ApplyActions = hit.ApplyActions
	}
	if !said(featureWriteSetField) {
		a.WriteSetField = hit.WriteSetField
	}
	if !said(featureApplySetField) {
		a.ApplySetField = hit.ApplySetField
	}
}

// typeMask reads a list of (type, length) headers. Those of experimenters and
// types beyond the mask are left out.
func typeMask(b []byte) (mask uint32, err error) {
	for len(b) > 0 {
		id, err := cut16(b, 2, 4)
		if err != nil {
			return 0, err
		}
		if t := binary.BigEndian.Uint16(id); t < 32 {
			mask |= 1 << t
		}
		b = b[len(id):]
	}
	return mask, nil
}

// matchFields reads a list of OXM headers.
func matchFields(b []byte) ([]MatchField, error) {
	list := make([]MatchField, 0, len(b)/4)
	for len(b) > 0 {
		h, _, masked, n, err := oxm.ReadHeader(b)
		if err != nil {
			return nil, fmt.Errorf("%w: list of fields: %w", ErrMalformed, err)
		}
		list = append(list, MatchField{Name: fieldName(h), Maskable: masked})
		b = b[n:]
	}
	return list, nil
}

func fieldNames(b []byte) ([]string, error) {
	fields, err := matchFields(b)
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	return names, err
}

func fieldName(h oxm.Header) string {
	if f := oxm.ByHeader(h); f != nil {
		return f.Name
	}
	if h.Experimenter() {
		return fmt.Sprintf("%#x:%d", h.Vendor, h.Number)
	}
	return fmt.Sprintf("%#x:%d", h.Class, h.Number)
}
