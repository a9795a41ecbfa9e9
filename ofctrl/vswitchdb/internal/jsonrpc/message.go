// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"encoding/json"
)

// message is whatever the server sends: a request, a notification (a request
// without an id) or a reply (no method).
type message struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
	ID     json.RawMessage `json:"id"`
}

func (m message) isNotification() bool { return isNull(m.ID) }

// refusal returns the error of a reply, if it has one.
func (m message) refusal() (string, bool) {
	if isNull(m.Error) {
		return "", false
	}
	var text string
	if json.Unmarshal(m.Error, &text) == nil {
		return text, true
	}
	return string(m.Error), true
}

func isNull(member json.RawMessage) bool {
	return len(member) == 0 || string(member) == "null"
}

type request struct {
	Method string `json:"method"`
	Params any    `json:"params"`
	ID     uint64 `json:"id"`
}

type response struct {
	Result json.RawMessage `json:"result"`
	Error  any             `json:"error"`
	ID     json.RawMessage `json:"id"`
}
