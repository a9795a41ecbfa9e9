// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/flowgate/flowgate/ofctrl"
	"github.com/flowgate/flowgate/ofctrl/flowtext"
	"github.com/flowgate/flowgate/portstatus"
)

// template is flows with placeholders for one port: {ofport}, {name}, {mac},
// {ip} and {iface-id}. mac and ip come from external_ids attached-mac and
// ip-address.
type template struct {
	file string
	text string
}

func readTemplate(file string) (*template, error) {
	text, err := os.ReadFile(file)
	return &template{file, string(text)}, err
}

// flows fills the template in for a port and parses it.
func (t *template) flows(port portstatus.Port) ([]ofctrl.Message, error) {
	values := map[string]string{
		"{ofport}":   strconv.FormatUint(uint64(port.Number), 10),
		"{name}":     port.Name,
		"{mac}":      port.ExternalIDs["attached-mac"],
		"{ip}":       port.ExternalIDs["ip-address"],
		"{iface-id}": port.ExternalIDs["iface-id"],
	}
	text := t.text
	for placeholder, value := range values {
		if value == "" && strings.Contains(text, placeholder) {
			return nil, fmt.Errorf("%s: port %s has no %s", t.file, port.Name, placeholder)
		}
		text = strings.ReplaceAll(text, placeholder, value)
	}
	return parseFlows(t.file, strings.NewReader(text))
}

// readFlows reads a file of flows to add.
func readFlows(file string) ([]ofctrl.Message, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return parseFlows(file, bytes.NewReader(text))
}

func parseFlows(file string, r io.Reader) ([]ofctrl.Message, error) {
	var msgs []ofctrl.Message
	for flow, err := range flowtext.ParseFile(r, nil) {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if flow.Mod.Command != flowtext.Add {
			return nil, fmt.Errorf("%s:%d: %v: only flows to add can be restored", file, flow.Line, flow.Mod.Command)
		}
		msgs = append(msgs, flow.Mod)
	}
	return msgs, nil
}
