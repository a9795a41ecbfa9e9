// SPDX-License-Identifier: Apache-2.0

package vswitchdb

import (
	"encoding/json"
	"fmt"
	"maps"
)

// columns is a row as the server sends it: of a new row, the columns that are
// not at their default; of a changed row, the columns that changed, as
// differences (ovsdb-server(7), "update2"):
//
//   - a column that holds at most one value: the new value;
//   - a larger set: what was added or removed;
//   - a map: pairs that were added or removed, and the new pair of a key whose
//     value changed.
//
// As a difference from an empty row is the row itself, one set of methods
// reads both. Each leaves its target alone when the column is not there.
//
// libovsdb can decode these too, but it panics on a malformed value.
type columns map[string]json.RawMessage

// text reads a string column.
func (c columns) text(name string, to *string) error {
	return c.read(name, func(raw json.RawMessage) error { return json.Unmarshal(raw, to) })
}

// integer reads an integer column.
func (c columns) integer(name string, to *int64) error {
	return c.read(name, func(raw json.RawMessage) error { return json.Unmarshal(raw, to) })
}

// optionalText reads a column that holds a string or nothing; nothing is "".
func (c columns) optionalText(name string, to *string) error {
	return optional(c, name, to)
}

// optionalInteger reads a column that holds an integer or nothing; nothing is 0.
func (c columns) optionalInteger(name string, to *int) error {
	return optional(c, name, to)
}

func optional[T any](c columns, name string, to *T) error {
	return c.read(name, func(raw json.RawMessage) error {
		values, err := set[T](raw)
		if err != nil {
			return err
		}
		if len(values) > 1 {
			return fmt.Errorf("%d values where at most one can be", len(values))
		}
		*to = *new(T)
		if len(values) == 1 {
			*to = values[0]
		}
		return nil
	})
}

// texts reads a difference of a set of strings.
func (c columns) texts(name string, each func(string)) error {
	return c.read(name, func(raw json.RawMessage) error {
		values, err := set[string](raw)
		for _, value := range values {
			each(value)
		}
		return err
	})
}

// uuids reads a difference of a set of references.
func (c columns) uuids(name string, each func(string)) error {
	return c.read(name, func(raw json.RawMessage) error {
		values, err := set[uuid](raw)
		for _, value := range values {
			each(string(value))
		}
		return err
	})
}

// pairs applies a difference to a map of strings. The map in *to is replaced,
// not modified, as readers may hold it.
func (c columns) pairs(name string, to *map[string]string) error {
	return c.read(name, func(raw json.RawMessage) error {
		difference, err := pairs(raw)
		if err != nil {
			return err
		}
		result := maps.Clone(*to)
		if result == nil {
			result = make(map[string]string, len(difference))
		}
		for _, pair := range difference {
			if old, ok := result[pair[0]]; ok && old == pair[1] {
				delete(result, pair[0])
			} else {
				result[pair[0]] = pair[1]
			}
		}
		*to = result
		return nil
	})
}

func (c columns) read(name string, decode func(json.RawMessage) error) error {
	raw, ok := c[name]
	if !ok {
		return nil
	}
	if err := decode(raw); err != nil {
		return fmt.Errorf("%w: column %s: %w: %.80q", ErrMalformed, name, err, raw)
	}
	return nil
}

// uuid is a reference: ["uuid", "..."].
type uuid string

// UnmarshalJSON implements json.Unmarshaler.
func (u *uuid) UnmarshalJSON(text []byte) error {
	var parts []string
	if err := json.Unmarshal(text, &parts); err != nil {
		return err
	}
	if len(parts) != 2 || parts[0] != "uuid" {
		return fmt.Errorf("not a uuid")
	}
	*u = uuid(parts[1])
	return nil
}

// set decodes a set: ["set", [value, ...]], or the value alone if there is one.
func set[T any](raw json.RawMessage) ([]T, error) {
	if inner, ok := tagged(raw, "set"); ok {
		var values []T
		err := json.Unmarshal(inner, &values)
		return values, err
	}
	var value T
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, err
	}
	return []T{value}, nil
}

// pairs decodes a map of strings: ["map", [[key, value], ...]].
func pairs(raw json.RawMessage) ([][2]string, error) {
	inner, ok := tagged(raw, "map")
	if !ok {
		return nil, fmt.Errorf("not a map")
	}
	var all [][]string
	if err := json.Unmarshal(inner, &all); err != nil {
		return nil, err
	}
	result := make([][2]string, 0, len(all))
	for _, pair := range all {
		if len(pair) != 2 {
			return nil, fmt.Errorf("a pair of %d", len(pair))
		}
		result = append(result, [2]string{pair[0], pair[1]})
	}
	return result, nil
}

// tagged returns the content of [tag, content].
func tagged(raw json.RawMessage, tag string) (json.RawMessage, bool) {
	var parts []json.RawMessage
	if json.Unmarshal(raw, &parts) != nil || len(parts) != 2 {
		return nil, false
	}
	var name string
	if json.Unmarshal(parts[0], &name) != nil || name != tag {
		return nil, false
	}
	return parts[1], true
}
